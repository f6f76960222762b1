//! A version: one state of a row.
//!
//! ```text
//!  0  next: u64         the older version, or 0
//!  8  image_bytes: u32  length of the image
//! 12  flags: u32        hints and kind, see `flags`
//! 16  image             a PostgreSQL heap tuple; its first 18 bytes are the engine's stamp:
//!     16 xid: u64       the (sub)transaction that made it      (t_choice)
//!     24 cid: u32       the command of that transaction        (t_choice)
//!     28 tid: 3 x u16   block high, block low, offset          (t_ctid)
//!     34 body           t_infomask2, t_infomask, t_hoff, null bitmap, data: what is logged and checkpointed
//! ```
//!
//! So a scan hands the tuple out in place, and `xmin`, `cmin` and `ctid` of the tuple come out right.
//!
//! Invariants:
//! - Everything but `next` and `flags` is written before the version is published and never changes.
//! - `next` of a published version changes only under the anchor's latch (unlink, prune).
//! - Hint flags are only ever added, and only once they are true for ever. (APPLYING is no hint: replay takes it off.)
//! - Tombstones and lock entries have an image of [`IMAGE_BYTES_MIN`] bytes: the stamp and padding.

use super::anchor::Head;
use crate::ids::{CommandId, Slot, Xid};
use crate::sync::{AtomicU32, AtomicU64, Ordering, order_unless_broken};
use std::ptr::NonNull;

/// Bytes of an image that belong to the engine.
pub const STAMP_BYTES: usize = 18;

/// Bytes of the shortest image: the stamp, rounded up to words.
pub const IMAGE_BYTES_MIN: usize = 24;

/// A tombstone's image: the stamp.
pub(crate) const TOMBSTONE_IMAGE: [u8; IMAGE_BYTES_MIN] = [0; IMAGE_BYTES_MIN];

/// Flags of a version.
pub mod flags {
    /// The maker committed (hint).
    pub const COMMITTED: u32 = 1;
    /// The maker aborted (hint).
    pub const ABORTED: u32 = 1 << 1;
    /// The row is deleted.
    pub const TOMBSTONE: u32 = 1 << 2;
    /// Not a state of the row but a row lock.
    pub const LOCK_ONLY: u32 = 1 << 3;
    /// Its log record is written; the anchor's LSN is at least that record's.
    pub const LOGGED: u32 = 1 << 4;
    /// A key of some index differs from the version below.
    pub const KEYS_CHANGED: u32 = 1 << 5;
    /// A key of some unique index differs from the version below, or from that below the transaction's own earlier ones.
    pub const UNIQUE_KEYS_CHANGED: u32 = 1 << 6;
    /// The table's counters count it as committed, though its transaction is only prepared: taken back by who takes it out.
    pub const COUNTED_EARLY: u32 = 1 << 7;
    /// Strength of a lock entry, two bits.
    pub const STRENGTH_SHIFT: u32 = 8;
    /// Replay is still working on it: entries may be missing, and the row's LSN is not its own yet. Nobody judges it; taken off when it is
    /// complete.
    pub const APPLYING: u32 = 1 << 10;
}

/// Strength of a row lock, with PostgreSQL's conflict table.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
#[repr(u8)]
pub enum LockStrength {
    /// FOR KEY SHARE
    KeyShare = 0,
    /// FOR SHARE
    Share = 1,
    /// FOR NO KEY UPDATE, and an UPDATE that changes no key of a unique index
    NoKeyUpdate = 2,
    /// FOR UPDATE, DELETE, and an UPDATE of a unique key
    Update = 3,
}

impl LockStrength {
    /// PostgreSQL's table of conflicting row locks ("Row-Level Locks" in its manual).
    pub fn conflicts(self, other: LockStrength) -> bool {
        use LockStrength::*;
        match self {
            KeyShare => other == Update,
            Share => other >= NoKeyUpdate,
            NoKeyUpdate => other >= Share,
            Update => true,
        }
    }

    fn from_bits(bits: u32) -> LockStrength {
        match bits & 3 {
            0 => LockStrength::KeyShare,
            1 => LockStrength::Share,
            2 => LockStrength::NoKeyUpdate,
            _ => LockStrength::Update,
        }
    }
}

/// The header in front of an image.
#[repr(C, align(16))]
pub struct Version {
    pub(crate) next: AtomicU64,
    pub(crate) image_bytes: u32,
    pub(crate) flags: AtomicU32,
}

const _: () = assert!(size_of::<Version>() == 16);

/// Bytes of the arena block of a version with such an image.
pub fn block_bytes(image_bytes: usize) -> usize {
    (size_of::<Version>() + image_bytes).next_multiple_of(16)
}

/// A version in the arena. Valid while pinned, or while a snapshot that sees it is registered.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct VersionRef(pub(crate) NonNull<Version>);

impl VersionRef {
    /// The version at an address taken from an anchor or a `next` word.
    ///
    /// # Safety
    /// `address` is 0 or points to a published version that is still protected (see the type).
    pub(crate) unsafe fn from_address(address: u64) -> Option<VersionRef> {
        NonNull::new(address as *mut Version).map(VersionRef)
    }

    /// The address, for an anchor or a `next` word.
    pub fn address(self) -> u64 {
        self.0.as_ptr() as u64
    }

    pub(crate) fn header(&self) -> &Version {
        // SAFETY: a VersionRef points to a live version (type contract); its header is atomics and constants.
        unsafe { self.0.as_ref() }
    }

    /// Writes a new version into `block`, unpublished: only the caller can reach it.
    ///
    /// # Safety
    /// `block` is an unshared block of at least `block_bytes(image.len())` bytes, 16-byte aligned; `image` is at least
    /// [`IMAGE_BYTES_MIN`] long.
    pub(crate) unsafe fn write(
        block: NonNull<u8>,
        image: &[u8],
        xid: Xid,
        cid: CommandId,
        slot: Slot,
        flags: u32,
    ) -> VersionRef {
        debug_assert!(image.len() >= IMAGE_BYTES_MIN);
        // SAFETY: the caller's.
        unsafe { VersionRef::write_body(block, Some(&image[STAMP_BYTES..]), xid, cid, slot, flags) }
    }

    /// As `write`, from what follows the stamp; `None` makes a tombstone's image.
    ///
    /// # Safety
    /// `block` is an unshared, 16-byte aligned block that is large enough for the image.
    pub(crate) unsafe fn write_body(
        block: NonNull<u8>,
        body: Option<&[u8]>,
        xid: Xid,
        cid: CommandId,
        slot: Slot,
        flags: u32,
    ) -> VersionRef {
        let body = body.unwrap_or(&TOMBSTONE_IMAGE[STAMP_BYTES..]);
        let version = block.cast::<Version>();
        // SAFETY: the block is ours and large enough (caller).
        unsafe {
            version.write(Version {
                next: AtomicU64::new(0),
                image_bytes: (STAMP_BYTES + body.len()) as u32,
                flags: AtomicU32::new(flags),
            });
            let at = version.add(1).cast::<u8>();
            at.add(STAMP_BYTES)
                .copy_from_nonoverlapping(NonNull::from(body).cast(), body.len());
            at.cast::<u64>().write(xid.0);
            at.add(8).cast::<u32>().write(cid.0);
            let (block, offset) = slot.to_tid();
            let tid = at.add(12).cast::<u16>();
            tid.write((block >> 16) as u16);
            tid.add(1).write(block as u16);
            tid.add(2).write(offset);
        }
        VersionRef(version)
    }

    /// The transaction that made it.
    pub fn xid(&self) -> Xid {
        // SAFETY: the stamp follows the header and never changes after publication.
        Xid(unsafe { self.0.add(1).cast::<u64>().read() })
    }

    /// The command that made it.
    pub fn cid(&self) -> CommandId {
        // SAFETY: as for `xid`.
        CommandId(unsafe { self.0.add(1).cast::<u32>().add(2).read() })
    }

    /// The row it belongs to.
    pub fn slot(&self) -> Slot {
        // SAFETY: as for `xid`.
        let (high, low, offset) = unsafe {
            let tid = self.0.add(1).cast::<u16>().add(6);
            (tid.read(), tid.add(1).read(), tid.add(2).read())
        };
        let block = (u32::from(high) << 16) | u32::from(low);
        Slot::from_tid(block, offset).expect("a version's stamp holds a slot")
    }

    /// The tuple, stamp included.
    pub fn image(&self) -> &[u8] {
        // SAFETY: the image follows the header and is immutable while the version is protected.
        unsafe { std::slice::from_raw_parts(self.image_ptr(), self.image_bytes()) }
    }

    /// The tuple's address.
    pub fn image_ptr(&self) -> *const u8 {
        // SAFETY: one past the header is inside the block.
        unsafe { self.0.as_ptr().add(1).cast() }
    }

    /// The tuple's length.
    pub fn image_bytes(&self) -> usize {
        self.header().image_bytes as usize
    }

    /// What is logged and checkpointed of the tuple.
    pub fn body(&self) -> &[u8] {
        // SAFETY: as for `image`; every image is longer than the stamp.
        unsafe {
            std::slice::from_raw_parts(
                self.image_ptr().add(STAMP_BYTES),
                self.image_bytes() - STAMP_BYTES,
            )
        }
    }

    /// The flags now.
    pub fn flags(&self) -> u32 {
        self.header().flags.load(Ordering::Acquire)
    }

    pub(crate) fn add_flags(&self, flags: u32) {
        let order = order_unless_broken(Ordering::AcqRel, "rows: the release of a flag");
        self.header().flags.fetch_or(flags, order);
    }

    /// Replay has done all that belongs to this version.
    pub(crate) fn end_applying(&self) {
        self.header()
            .flags
            .fetch_and(!flags::APPLYING, Ordering::AcqRel);
    }

    /// Whether it says that the row is deleted.
    pub fn is_tombstone(&self) -> bool {
        self.flags() & flags::TOMBSTONE != 0
    }

    /// Whether it is a row lock and not a state.
    pub fn is_lock(&self) -> bool {
        self.flags() & flags::LOCK_ONLY != 0
    }

    /// Whether it changed a key of some index.
    pub fn changed_keys(&self) -> bool {
        self.flags() & flags::KEYS_CHANGED != 0
    }

    /// The lock a lock entry holds, or the one an unfinished writer holds through its version.
    pub fn strength(&self) -> LockStrength {
        let now = self.flags();
        if now & flags::LOCK_ONLY != 0 {
            LockStrength::from_bits(now >> flags::STRENGTH_SHIFT)
        } else if now & (flags::TOMBSTONE | flags::UNIQUE_KEYS_CHANGED) != 0 {
            LockStrength::Update
        } else {
            LockStrength::NoKeyUpdate
        }
    }

    /// The block it lies in, to free or retire it.
    pub(crate) fn block(self) -> NonNull<u8> {
        self.0.cast()
    }

    /// Puts it above a chain. Unpublished versions only.
    pub(crate) fn set_next(&self, head: Head) {
        let below = head.version().map_or(0, VersionRef::address);
        self.header().next.store(below, Ordering::Relaxed);
    }

    /// The older version.
    pub fn next(&self) -> Option<VersionRef> {
        // SAFETY: a `next` word holds 0 or a version that is retired, not freed, while anybody who can reach it is pinned.
        unsafe { VersionRef::from_address(self.header().next.load(Ordering::Acquire)) }
    }

    /// Bytes of its arena block.
    pub fn block_bytes(&self) -> usize {
        block_bytes(self.image_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::LockStrength::*;
    use super::*;

    #[test]
    fn locks_conflict_as_the_manual_says() {
        let all = [KeyShare, Share, NoKeyUpdate, Update];
        let table = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [true, true, true, true],
        ];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a.conflicts(*b), table[i][j], "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn stamps_read_back() {
        let mut block = vec![0u128; 8];
        let image: Vec<u8> = (0..40).collect();
        let at = NonNull::new(block.as_mut_ptr().cast()).unwrap();
        // SAFETY: the vector is large enough and 16-byte aligned.
        let version =
            unsafe { VersionRef::write(at, &image, Xid(77 << 32), CommandId(5), Slot(70_000), 0) };
        assert_eq!(version.xid(), Xid(77 << 32));
        assert_eq!(version.cid(), CommandId(5));
        assert_eq!(version.slot(), Slot(70_000));
        assert_eq!(version.body(), &image[STAMP_BYTES..]);
        assert_eq!(version.strength(), NoKeyUpdate);
        assert!(version.next().is_none());
    }
}
