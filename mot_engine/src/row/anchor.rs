//! An anchor: where a row's chain of versions begins.
//!
//! 16 bytes a row: the head word (address of the newest version and flag bits) and the LSN of the
//! row's last logged change. A free row id's head word has [`Head::FREE`] and the number of the
//! next free row id instead of an address.
//!
//! What may touch what when:
//! - Readers load the head, nothing else.
//! - Writers publish by compare-and-swap of the whole word; it fails while the latch bit is set or
//!   if anything changed.
//! - A process that unlinks or prunes holds the latch bit: a few instructions, never across a
//!   `Clock` call.
//! - A sweep, or a tidy-up after the session's earlier commits, sets [`Head::QUIESCENT`]
//!   by compare-and-swap of the whole word: the version it has read is still on top then.
//! - `lsn` only rises, also when the row id is freed and used again: replay tells by it what the
//!   row already has. It is stored by the committing session, which owns the row, and by replay,
//!   together with the version's LOGGED flag ([`Anchor::mark_version`]): a reader that finds the
//!   same unmarked word before and after walking the chain knows that LSN and flags belong
//!   together.

use super::version::{VersionRef, flags};
use crate::ids::{Lsn, RowId};
use crate::sync::{AtomicU64, Ordering, fence, is_broken, order_unless_broken, pause};

/// A row's anchor in its table's directory.
#[repr(C)]
pub struct Anchor {
    head: AtomicU64,
    /// Twice the LSN; odd while a version is being marked as logged.
    lsn: AtomicU64,
}

const _: () = assert!(size_of::<Anchor>() == 16);

/// A head word: an address (48 bits, 8-byte aligned) and flags around it.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Head(pub(crate) u64);

impl Head {
    const LATCH: u64 = 1;
    /// Some version of this row changed a key: entries must be compared with the version seen.
    pub const KEYS_MOVED: u64 = 1 << 1;
    /// The last logged change was rolled back, or keys are being appended
    /// (`transaction/reform.rs`): the next change is logged as a whole.
    pub const FULL_IMAGE_NEXT: u64 = 1 << 2;
    /// The chain holds a row-lock entry.
    pub const HAS_LOCKS: u64 = 1 << 48;
    /// A process removes index entries of versions already taken out of this chain. Only its setter
    /// may give the row id away, and no other takes versions with keys of their own out meanwhile:
    /// so a row id is never reused while an entry of its former row is still to go.
    pub const CLEANING: u64 = 1 << 49;
    /// The row id is on the free list; the address bits hold the next free row id.
    pub const FREE: u64 = 1 << 50;
    /// An entry of a version taken out could not be removed and still leads here: the row id is
    /// never given away, whatever becomes of its chain.
    pub const ENTRY_LEFT: u64 = 1 << 51;
    /// The chain is one committed version and nothing is to be done: a sweep need not look
    /// at it. Not among the flags that stay when the address changes: whatever comes on top takes
    /// it away.
    pub(crate) const QUIESCENT: u64 = 1 << 52;
    const ADDRESS: u64 = (1 << 48) - 8;
    const FLAGS: u64 = Head::KEYS_MOVED
        | Head::FULL_IMAGE_NEXT
        | Head::HAS_LOCKS
        | Head::CLEANING
        | Head::ENTRY_LEFT;

    /// No version, no flags.
    pub(crate) fn empty() -> Head {
        Head(0)
    }

    /// The newest version.
    pub fn version(self) -> Option<VersionRef> {
        if self.0 & Head::FREE != 0 {
            return None;
        }
        // SAFETY: the address bits of a head that is not FREE hold 0 or a published version; the
        // caller is pinned.
        unsafe { VersionRef::from_address(self.0 & Head::ADDRESS) }
    }

    /// The newest state of the row, resolved or not. The caller is pinned, as for `version`.
    pub fn newest_data(self) -> Option<VersionRef> {
        let mut at = self.version();
        while let Some(version) = at.filter(VersionRef::is_lock) {
            at = version.next();
        }
        at
    }

    /// Whether a flag is set.
    pub fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    pub(crate) fn is_free(self) -> bool {
        self.0 & Head::FREE != 0
    }

    /// Never used, or given back and taken again: no chain.
    pub(crate) fn is_empty(self) -> bool {
        self.version().is_none()
    }

    /// Whether the row id of a row that is gone may be used by another one.
    pub(crate) fn may_be_given_away(self) -> bool {
        self.is_empty() && !self.is_free() && !self.has(Head::ENTRY_LEFT)
    }

    /// Whether there is a chain, without looking at it: no pin is needed.
    pub(crate) fn has_chain(self) -> bool {
        self.address() != 0
    }

    /// Where the newest version is, or was; 0: there is none. Nothing is followed, so no pin is
    /// needed.
    pub(crate) fn address(self) -> u64 {
        match self.0 & Head::FREE {
            0 => self.0 & Head::ADDRESS,
            _ => 0,
        }
    }

    /// The same flags with another address.
    pub(crate) fn with_address(self, address: u64) -> Head {
        debug_assert_eq!(address & !Head::ADDRESS, 0);
        Head((self.0 & Head::FLAGS) | address)
    }

    pub(crate) fn with_flags(self, flags: u64) -> Head {
        Head(self.0 | flags)
    }

    pub(crate) fn without_flags(self, flags: u64) -> Head {
        Head(self.0 & !flags)
    }

    /// A head that differs at most in the latch bit and the flags: the same chain on top.
    pub(crate) fn same_chain(self, other: Head) -> bool {
        self.0 & (Head::ADDRESS | Head::FREE) == other.0 & (Head::ADDRESS | Head::FREE)
    }
}

impl Anchor {
    /// An anchor outside a directory.
    #[cfg(test)]
    pub(crate) fn new() -> Anchor {
        Anchor {
            head: AtomicU64::new(0),
            lsn: AtomicU64::new(0),
        }
    }

    /// The head without its latch bit.
    pub fn head(&self) -> Head {
        Head(self.head.load(Ordering::Acquire) & !Head::LATCH)
    }

    /// LSN of the row's last logged change.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.lsn.load(Ordering::Acquire) >> 1)
    }

    /// Marks `version` as logged by a record that ends at `lsn`, which is above all before. By the
    /// row's owner, or by replay. From now on the LSN is that of the row's newest state, so
    /// differences against it may be logged again; only the owner knows that: the transaction that
    /// committed before may still be tidying up while a later change is logged and rolled back.
    /// Called through `TableRef::mark_logged`, which informs checkpoints, too.
    pub(crate) fn mark_version(&self, version: VersionRef, lsn: Lsn) {
        let lsn = lsn.max(self.lsn());
        if !is_broken("log: the odd word of a mark") {
            self.lsn.store(lsn.0 << 1 | 1, Ordering::Release);
        }
        // A reader of the flag (it is a release) sees the odd word or a later one, and looks again.
        version.add_flags(flags::LOGGED);
        if self.head().has(Head::FULL_IMAGE_NEXT) {
            let mut latched = self.latch();
            latched.head = latched.head.without_flags(Head::FULL_IMAGE_NEXT);
        }
        self.lsn.store(lsn.0 << 1, Ordering::Release);
    }

    /// Whether the row's last logged change was rolled back, or keys are being appended
    /// (`transaction/reform.rs`). Asked after a look at the chain: a process that takes a version
    /// out unlinks it first and stores the head, with its flags, when it lets go of the latch.
    pub(crate) fn needs_full_image(&self) -> bool {
        self.wait_unlatched();
        self.head().has(Head::FULL_IMAGE_NEXT)
    }

    /// Sets the LSN of an anchor that only the caller uses (loading).
    pub(crate) fn set_lsn(&self, lsn: Lsn) {
        self.lsn.store(lsn.0 << 1, Ordering::Release);
    }

    /// Runs `read` until no version of the row was marked as logged meanwhile; gives the LSN that
    /// belongs to what it saw. The caller is pinned. `read` must start anew each time.
    pub(crate) fn read_with_lsn(&self, mut read: impl FnMut()) -> Lsn {
        let mut turns = 0u32;
        loop {
            let before = self.lsn.load(Ordering::Acquire);
            if before & 1 == 0 {
                read();
                fence(Ordering::Acquire);
                if self.lsn.load(Ordering::Relaxed) == before {
                    return Lsn(before >> 1);
                }
            }
            pause(&mut turns);
        }
    }

    /// Publishes `new` if the head is still `old` and not latched.
    pub(crate) fn publish(&self, old: Head, new: Head) -> bool {
        self.head
            .compare_exchange(
                old.0,
                new.0,
                order_unless_broken(Ordering::AcqRel, "rows: the release of a version"),
                Ordering::Acquire,
            )
            .is_ok()
    }

    /// Whether the version that `head` names is committed and alone ([`VersionRef::is_quiescent`]),
    /// which stays true as long as it is on top. If so, QUIESCENT notes it in the head: of eight
    /// rows that share a dirty bit seven were not changed, as a rule, and a sweep need not wait for
    /// their versions. It is not noted if the row has changed since, or is latched: then another
    /// process will visit the row. The caller is pinned.
    #[inline]
    pub(crate) fn is_quiescent(&self, head: Head) -> bool {
        if head.has(Head::QUIESCENT) {
            return true;
        }
        let is_quiescent = head.version().is_some_and(|newest| newest.is_quiescent());
        if is_quiescent && is_broken("rows: noting as quiescent what is still on top") {
            self.head.fetch_or(Head::QUIESCENT, Ordering::AcqRel);
        } else if is_quiescent {
            let noted = head.with_flags(Head::QUIESCENT);
            let _changed =
                self.head
                    .compare_exchange(head.0, noted.0, Ordering::AcqRel, Ordering::Relaxed);
        }
        is_quiescent
    }

    /// Waits while the latch is held.
    pub(crate) fn wait_unlatched(&self) {
        let mut turns = 0u32;
        while self.head.load(Ordering::Relaxed) & Head::LATCH != 0 {
            pause(&mut turns);
        }
    }

    /// Takes the latch and returns the head. The guard stores a head back.
    pub(crate) fn latch(&self) -> LatchedAnchor<'_> {
        loop {
            let head = self.head();
            let latched = match is_broken("rows: the latch of a chain") {
                true => head.0,
                false => head.0 | Head::LATCH,
            };
            if self
                .head
                .compare_exchange_weak(head.0, latched, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return LatchedAnchor { anchor: self, head };
            }
            self.wait_unlatched();
        }
    }

    /// Makes the row id an element of the free list. Under the latch, though no process reaches the
    /// row id any more. A process that cleans the row too late would else store the old head again.
    pub(crate) fn set_free(&self, next: Option<RowId>) {
        let link = next.map_or(0, |row_id| row_id.0 + 1);
        self.latch().head = Head(Head::FREE | (link << 4));
    }

    /// The next free row id behind this free one.
    pub(crate) fn next_free(&self) -> Option<RowId> {
        let link = (self.head().0 >> 4) & ((1 << 44) - 1);
        (link > 0).then(|| RowId(link - 1))
    }

    /// Takes a row id off the free list: empty, LSN kept.
    pub(crate) fn set_empty(&self) {
        self.latch().head = Head::empty();
    }
}

/// A latched anchor. Dropping it stores the head back unlatched.
pub(crate) struct LatchedAnchor<'a> {
    anchor: &'a Anchor,
    /// The head to store; change it to change the chain.
    pub(crate) head: Head,
}

impl Drop for LatchedAnchor<'_> {
    fn drop(&mut self) {
        debug_assert!(self.head.0 & Head::LATCH == 0);
        self.anchor.head.store(self.head.0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CommandId, Xid};
    use std::ptr::NonNull;
    use std::sync::atomic::AtomicBool;

    const VERSIONS: u64 = 100_000;
    /// One round meets the few instructions in between only sometimes.
    const ROUNDS: usize = 30;
    /// A version of the shortest image, and more, in words of 16 bytes.
    const BLOCK_WORDS: usize = 3;

    /// A process that reads a row while its versions are being logged gets the LSN of the newest
    /// logged version it saw.
    #[test]
    fn lsn_and_flag_are_read_together() {
        for _ in 0..ROUNDS {
            mark_and_read();
        }
    }

    fn mark_and_read() {
        let anchor = Anchor::new();
        let mut blocks = vec![0u128; BLOCK_WORDS * (VERSIONS as usize + 1)];
        let body = [0; super::super::version::BODY_BYTES_MIN];
        let mut at = |number: u64| {
            let block = &mut blocks[number as usize * BLOCK_WORDS..][..BLOCK_WORDS];
            let block = NonNull::from(block).cast::<u8>();
            // SAFETY: the block is 16-byte aligned, has 48 bytes, and is used once.
            unsafe {
                let (xid, cid) = (Xid(1), CommandId(number as u32));
                VersionRef::write(block, &body, xid, cid, 0).address()
            }
        };
        let addresses: Vec<u64> = (0..=VERSIONS).map(&mut at).collect();
        let version = |number: u64| {
            // SAFETY: the blocks live as long as the test.
            unsafe { VersionRef::from_address(addresses[number as usize]) }.expect("an address")
        };
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..=VERSIONS {
                    let head = anchor.head();
                    version(number).set_next(head);
                    assert!(anchor.publish(head, head.with_address(addresses[number as usize])));
                    anchor.mark_version(version(number), Lsn(number));
                }
                ended.store(true, Ordering::Release);
            });
            while !ended.load(Ordering::Acquire) {
                let mut newest_logged = 0;
                let lsn = anchor.read_with_lsn(|| {
                    let mut next = anchor.head().version();
                    newest_logged = 0;
                    while let Some(version) = next {
                        if version.flags() & flags::LOGGED != 0 {
                            newest_logged = u64::from(version.cid().0);
                            break;
                        }
                        next = version.next();
                    }
                });
                assert_eq!(lsn, Lsn(newest_logged));
            }
        });
        assert_eq!(anchor.lsn(), Lsn(VERSIONS));
    }
}
