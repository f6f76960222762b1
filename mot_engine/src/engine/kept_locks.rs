//! The list of row locks of prepared transactions, in the engine's root. What it is for, and what
//! changes it when, is in `transaction/kept_locks.rs`.

use super::Engine;
use crate::ids::{Lsn, Xid};
use crate::memory::Latch;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The list, in the engine's root. All-zero is an empty one.
#[repr(C)]
pub(crate) struct KeptLocks {
    pub(crate) latch: Latch,
    pub(crate) first: AtomicU64,
    pub(crate) count: AtomicU64,
    /// The largest LSN that a record of the list ever had.
    pub(crate) newest: AtomicU64,
}

impl KeptLocks {
    /// No process is in the middle of a change.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.latch.is_free()
    }

    /// Takes records out of the list, by their addresses, which ascend. Says which were in it:
    /// another process may have taken out some of them, and retires those.
    pub(crate) fn unlink(&self, records: &mut [(u64, bool)]) {
        let _latched = self.latch.lock();
        let mut link = &self.first;
        while let Some(record) = NonNull::new(link.load(Ordering::Relaxed) as *mut KeptRecord) {
            // SAFETY: it is in the list, and stays there as long as the latch is held.
            let record = unsafe { &*record.as_ptr() };
            let address = record.address();
            if let Ok(at) = records.binary_search_by_key(&address, |(address, _)| *address) {
                // A reader that is on it continues: its own link stays.
                link.store(record.next.load(Ordering::Relaxed), Ordering::Release);
                self.count.fetch_sub(1, Ordering::Relaxed);
                records[at].1 = true;
            } else {
                link = &record.next;
            }
        }
    }

    /// The records. The caller is pinned as long as it uses them.
    pub(crate) fn iter<'a>(&self) -> impl Iterator<Item = &'a KeptRecord> + use<'a> {
        let mut at = self.first.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            let record = NonNull::new(at as *mut KeptRecord)?;
            // SAFETY: what is linked is a record; its reader is pinned.
            let record = unsafe { record.as_ref() };
            at = record.next.load(Ordering::Acquire);
            Some(record)
        })
    }
}

/// A record in the arena. Its bytes follow.
#[repr(C)]
pub(crate) struct KeptRecord {
    pub(crate) next: AtomicU64,
    pub(crate) xid: Xid,
    pub(crate) lsn: Lsn,
    pub(crate) length: usize,
}

/// Bytes of the block of a record with so many bytes.
pub(crate) fn kept_block_bytes(length: usize) -> usize {
    size_of::<KeptRecord>() + length
}

impl KeptRecord {
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes follow the header in the same block, and never change.
        unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(self).add(1).cast::<u8>(), self.length)
        }
    }

    pub(crate) fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }
}

impl Engine {
    /// Records of row locks that are kept.
    pub fn kept_lock_records(self) -> u64 {
        self.root().kept_locks.count.load(Ordering::Relaxed)
    }
}
