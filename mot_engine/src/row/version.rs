//! A version: one state of a row.
//!
//! ```text
//! the image: a PostgreSQL heap tuple; its first 18 bytes are the engine's
//!  0  xid, low half: u32   t_xmin         the (sub)transaction that made it
//!  4  cid: u32             t_xmax         the command of that transaction
//!  8  word: u64            t_cid, t_ctid  below
//! 16  xid, high part: u16  t_ctid
//! 18  body: what is logged and checkpointed
//!                          t_infomask2, t_infomask, t_hoff, null bitmap, data
//!
//! -8  image_bytes: u64     in front of an image that is longer than the word can say
//!
//! word: bits 0..3 and 59..64  length of a short image
//!            3..48            the older version's address (a multiple of 8), or 0
//!            48..59           hints and kind, see `flags`
//! ```
//!
//! So a version costs nothing but its tuple, and a scan hands the tuple out in place: its columns
//! and `xmin` come out right; `xmax`, `cmin` and `cmax` are for the code that shows it.
//!
//! Invariants:
//! - Everything but the word is written before the version is published and never changes. So
//!   no code makes a slice of an image: it would have the word in it, which others change.
//!   [`VersionRef::body`] is a slice.
//! - The address in a published version's word changes only under the anchor's latch (unlink,
//!   prune), flags at any time by any process: so both by instructions that leave the rest of the
//!   word alone.
//! - Hint flags are only ever added, and only once they are true for ever. (APPLYING is no hint:
//!   replay takes it off.)
//! - Tombstones and lock entries have an image of [`IMAGE_BYTES_MIN`] bytes: the stamp and padding.

use super::anchor::Head;
use super::strength::LockStrength;
use crate::ids::{CommandId, Xid};
use crate::key::tail_bytes;
use crate::sync::{AtomicU64, Ordering, order_unless_broken};
use std::ptr::NonNull;

/// Bytes of an image that belong to the engine: its stamp.
pub const STAMP_BYTES: usize = crate::key::BODY_OFFSET_BYTES;

/// Bytes of the shortest image: the stamp, rounded up to words.
pub const IMAGE_BYTES_MIN: usize = 24;

/// Bytes of the shortest body.
pub const BODY_BYTES_MIN: usize = IMAGE_BYTES_MIN - STAMP_BYTES;

/// The body of a version without columns: a tombstone's, a lock entry's.
pub(crate) const EMPTY_BODY: [u8; BODY_BYTES_MIN] = [0; BODY_BYTES_MIN];

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
    /// A value of some unique index differs from the version below, or from that below the
    /// transaction's own earlier ones. Its key may be the same, as of 1.0 and 1.00.
    pub const UNIQUE_KEYS_CHANGED: u32 = 1 << 6;
    /// The table's counters count it as committed, though its transaction is only prepared: taken
    /// back by the process that takes it out.
    pub const COUNTED_EARLY: u32 = 1 << 7;
    /// Strength of a lock entry, two bits.
    pub const STRENGTH_SHIFT: u32 = 8;
    /// Of a state: no lock entry is below it. Locks come on top, so it stays true. (The bit is
    /// one of a lock entry's strength.)
    pub const NO_LOCKS_BELOW: u32 = 1 << STRENGTH_SHIFT;
    /// Of a state: it took the place of the one right below it, which differs in its tail alone
    /// (`transaction/reform.rs`). (The bit is one of a lock entry's strength.)
    pub const REFORMED: u32 = 1 << (STRENGTH_SHIFT + 1);
    /// Replay is still working on it: entries may be missing, and the row's LSN is not its own yet.
    /// No process resolves it; taken off when it is complete.
    pub const APPLYING: u32 = 1 << 10;
    /// Bits there are.
    pub(super) const BITS: u32 = 11;
}

/// Bytes of the longest image whose length fits into the word.
const SHORT_IMAGE_BYTES_MAX: usize = 255;
/// Where in the word the flags are.
const FLAGS_SHIFT: u32 = 48;
const FLAGS: u64 = ((1 << flags::BITS) - 1) << FLAGS_SHIFT;
/// Where in the word the address is.
const ADDRESS: u64 = (1 << FLAGS_SHIFT) - 8;
/// The length's low bits lie below the address, the others above the flags. 0: the image is a long
/// one.
const LENGTH_LOW_BITS: u32 = 3;
const LENGTH_LOW: u64 = (1 << LENGTH_LOW_BITS) - 1;
const LENGTH_HIGH_SHIFT: u32 = FLAGS_SHIFT + flags::BITS;

const _: () = assert!(
    (SHORT_IMAGE_BYTES_MAX as u64) < 1 << (LENGTH_LOW_BITS + u64::BITS - LENGTH_HIGH_SHIFT)
);

/// What every version begins with: the stamp, in the places that a heap tuple has for `t_choice`
/// and `t_ctid`.
#[repr(C)]
pub struct Version {
    xid_low: u32,
    cid: u32,
    word: AtomicU64,
    xid_high: u16,
}

const _: () = {
    assert!(std::mem::offset_of!(Version, word) == 8);
    assert!(std::mem::offset_of!(Version, xid_high) + size_of::<u16>() == STAMP_BYTES);
    assert!(size_of::<Version>() <= IMAGE_BYTES_MIN);
    assert!(Xid::MAX.0 >> (u32::BITS + u16::BITS) == 0);
};

/// Bytes in front of an image: its length, if it is a long one.
#[inline]
fn front_bytes(image_bytes: usize) -> usize {
    if image_bytes <= SHORT_IMAGE_BYTES_MAX {
        0
    } else {
        size_of::<u64>()
    }
}

/// The length of a short image, as the word holds it; 0 for a long one.
fn length_bits(image_bytes: usize) -> u64 {
    if image_bytes > SHORT_IMAGE_BYTES_MAX {
        return 0;
    }
    let length = image_bytes as u64;
    length & LENGTH_LOW | (length >> LENGTH_LOW_BITS) << LENGTH_HIGH_SHIFT
}

/// The length a word holds; 0 if the image is a long one.
#[inline]
fn short_length(word: u64) -> usize {
    ((word >> LENGTH_HIGH_SHIFT) << LENGTH_LOW_BITS | word & LENGTH_LOW) as usize
}

/// Bytes of the arena block of a version with such a body.
pub fn block_bytes(body_bytes: usize) -> usize {
    block_bytes_of_image(STAMP_BYTES + body_bytes)
}

fn block_bytes_of_image(image_bytes: usize) -> usize {
    (front_bytes(image_bytes) + image_bytes).next_multiple_of(align_of::<Version>())
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
        // SAFETY: a VersionRef points to a live version (type contract); its header is atomics and
        // constants.
        unsafe { self.0.as_ref() }
    }

    /// Writes a new version into `block`, unpublished: only the caller can reach it.
    ///
    /// # Safety
    /// `block` is an unshared block of at least `block_bytes(body.len())` bytes, 8-byte aligned;
    /// `body` is at least [`BODY_BYTES_MIN`] long.
    pub(crate) unsafe fn write(
        block: NonNull<u8>,
        body: &[u8],
        xid: Xid,
        cid: CommandId,
        flags: u32,
    ) -> VersionRef {
        debug_assert!(body.len() >= BODY_BYTES_MIN);
        debug_assert_eq!(flags >> flags::BITS, 0);
        // Code that starts a transaction's work, or reads one, has looked.
        debug_assert!(xid <= Xid::MAX);
        let image_bytes = STAMP_BYTES + body.len();
        // SAFETY: the block is ours and large enough (caller); the body, which overwrites the
        // padding of the struct, is no part of the block.
        unsafe {
            let image = block.add(front_bytes(image_bytes));
            if image != block {
                block.cast::<u64>().write(image_bytes as u64);
            }
            let version = image.cast::<Version>();
            version.write(Version {
                xid_low: xid.0 as u32,
                cid: cid.0,
                word: AtomicU64::new(u64::from(flags) << FLAGS_SHIFT | length_bits(image_bytes)),
                xid_high: (xid.0 >> u32::BITS) as u16,
            });
            image
                .add(STAMP_BYTES)
                .copy_from_nonoverlapping(NonNull::from(body).cast(), body.len());
            VersionRef(version)
        }
    }

    /// Whether its hint says that its maker committed. Of the own transaction's it says so when
    /// that has ended.
    #[inline]
    pub fn is_known_committed(&self) -> bool {
        self.flags() & flags::COMMITTED != 0
    }

    /// The transaction that made it.
    #[inline]
    pub fn xid(&self) -> Xid {
        let header = self.header();
        Xid(u64::from(header.xid_high) << u32::BITS | u64::from(header.xid_low))
    }

    /// The command that made it.
    #[inline]
    pub fn cid(&self) -> CommandId {
        CommandId(self.header().cid)
    }

    /// The tuple's address. Bytes 4 to 18 are not what a heap tuple has there.
    #[inline]
    pub fn image_ptr(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// The tuple's length.
    #[inline]
    pub fn image_bytes(&self) -> usize {
        match short_length(self.word()) {
            // SAFETY: a long image's length is before it and never changes after publication.
            0 => unsafe { self.0.cast::<u64>().sub(1).read() as usize },
            length => length,
        }
    }

    /// The tuple's length without the computed keys behind it.
    #[inline]
    pub fn tuple_bytes(&self) -> usize {
        self.image_bytes() - tail_bytes(self.body())
    }

    /// The row: what is logged and checkpointed of the tuple.
    #[inline]
    pub fn body(&self) -> &[u8] {
        let bytes = self.image_bytes() - STAMP_BYTES;
        // SAFETY: the body follows the stamp and is immutable while the version is protected.
        unsafe { std::slice::from_raw_parts(self.image_ptr().add(STAMP_BYTES), bytes) }
    }

    #[inline]
    fn word(&self) -> u64 {
        self.header().word.load(Ordering::Acquire)
    }

    /// The flags now.
    #[inline]
    pub fn flags(&self) -> u32 {
        ((self.word() & FLAGS) >> FLAGS_SHIFT) as u32
    }

    pub(crate) fn add_flags(&self, flags: u32) {
        debug_assert_eq!(flags >> flags::BITS, 0);
        let order = order_unless_broken(Ordering::AcqRel, "rows: the release of a flag");
        let bits = u64::from(flags) << FLAGS_SHIFT;
        self.header().word.fetch_or(bits, order);
    }

    /// Replay has done all that belongs to this version.
    pub(crate) fn end_applying(&self) {
        let bit = u64::from(flags::APPLYING) << FLAGS_SHIFT;
        self.header().word.fetch_and(!bit, Ordering::AcqRel);
    }

    /// Whether it is a committed state with nothing below it: a row with which there is nothing to
    /// do.
    pub(crate) fn is_quiescent(&self) -> bool {
        const OUTCOME: u32 = flags::COMMITTED
            | flags::ABORTED
            | flags::TOMBSTONE
            | flags::LOCK_ONLY
            | flags::APPLYING;
        let word = self.word();
        word & (ADDRESS | u64::from(OUTCOME) << FLAGS_SHIFT)
            == u64::from(flags::COMMITTED) << FLAGS_SHIFT
    }

    /// Whether it has keys: it is a state of the row, and not its end.
    pub(crate) fn has_keys(&self) -> bool {
        self.flags() & (flags::LOCK_ONLY | flags::TOMBSTONE) == 0
    }

    /// Whether it says that the row is deleted.
    pub fn is_tombstone(&self) -> bool {
        self.flags() & flags::TOMBSTONE != 0
    }

    /// Whether it is a row lock and not a state.
    pub fn is_lock(&self) -> bool {
        self.flags() & flags::LOCK_ONLY != 0
    }

    /// Whether it is a state that says that no lock entry is below it.
    #[inline]
    pub(crate) fn ends_locks(&self) -> bool {
        self.flags() & (flags::NO_LOCKS_BELOW | flags::LOCK_ONLY) == flags::NO_LOCKS_BELOW
    }

    /// Whether it is this state of its row, or took its place (`transaction/reform.rs`).
    #[inline]
    pub(crate) fn is_or_replaces(self, seen: VersionRef) -> bool {
        self == seen || seen.is_former_image_of(self)
    }

    /// Whether another one took its place.
    #[inline]
    pub(crate) fn is_former_image_of(self, other: VersionRef) -> bool {
        const KIND: u32 = flags::REFORMED | flags::LOCK_ONLY;
        other.flags() & KIND == flags::REFORMED
            && !self.is_lock()
            && self.xid() == other.xid()
            && self.ordinal() == other.ordinal()
    }

    /// Whether it stands for an earlier state of its transaction: it differs in its tail alone.
    /// Both are the caller's own (`Transaction::replace_own`).
    #[inline]
    pub(crate) fn is_own_image_of(self, earlier: VersionRef) -> bool {
        self.ordinal() == earlier.ordinal() && self.cid() == earlier.cid()
    }

    /// Whether it took another one's place.
    pub(crate) fn is_reformed(self) -> bool {
        self.flags() & (flags::REFORMED | flags::LOCK_ONLY) == flags::REFORMED
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

    /// The block it is in, to free or retire it.
    pub(crate) fn block(self) -> NonNull<u8> {
        let front = front_bytes(self.image_bytes());
        // SAFETY: what is before an image belongs to its block.
        unsafe { self.0.cast::<u8>().sub(front) }
    }

    /// Puts it above a chain. Unpublished versions only.
    pub(crate) fn set_next(&self, head: Head) {
        let below = head.version().map_or(0, VersionRef::address);
        let word = &self.header().word;
        let rest = word.load(Ordering::Relaxed) & !ADDRESS;
        word.store(rest | below, Ordering::Relaxed);
    }

    /// Puts another version, or none, below it. Under the anchor's latch: nothing else changes
    /// the address meanwhile, flags they may.
    pub(crate) fn replace_next(&self, below: Option<VersionRef>) {
        let before = self.word() & ADDRESS;
        let after = below.map_or(0, VersionRef::address);
        self.header()
            .word
            .fetch_xor(before ^ after, Ordering::AcqRel);
    }

    /// The older version.
    #[inline]
    pub fn next(&self) -> Option<VersionRef> {
        crate::steps::step();
        // SAFETY: the address is 0 or that of a version that is retired, not freed, while any
        // process that can reach it is pinned.
        unsafe { VersionRef::from_address(self.word() & ADDRESS) }
    }

    /// Bytes of its arena block.
    pub fn block_bytes(&self) -> usize {
        block_bytes_of_image(self.image_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_read_back() {
        let most = SHORT_IMAGE_BYTES_MAX;
        for length in [
            IMAGE_BYTES_MIN,
            40,
            41,
            most - 1,
            most,
            most + 1,
            1000,
            70_000,
        ] {
            let body: Vec<u8> = (STAMP_BYTES..length).map(|at| at as u8).collect();
            let mut block = vec![0u64; block_bytes(body.len()) / 8];
            let at = NonNull::new(block.as_mut_ptr().cast()).unwrap();
            let (xid, cid) = (Xid(Xid::MAX.0 - 77), CommandId(u32::MAX - 5));
            // SAFETY: the vector is large enough and 8-byte aligned.
            let version = unsafe { VersionRef::write(at, &body, xid, cid, 0) };
            let same = || {
                assert_eq!(version.xid(), xid);
                assert_eq!(version.cid(), cid);
                assert_eq!(version.image_bytes(), length);
                assert_eq!(version.block(), at);
                assert_eq!(version.block_bytes(), block_bytes(body.len()));
                assert_eq!(version.body(), body);
                assert_eq!(version.strength(), LockStrength::NoKeyUpdate);
            };
            same();
            assert!(version.next().is_none());
            version.add_flags((1 << flags::BITS) - 1 - flags::LOCK_ONLY - flags::TOMBSTONE);
            version.replace_next(Some(version));
            assert_eq!(version.next(), Some(version));
            version.end_applying();
            assert_eq!(version.flags() & flags::APPLYING, 0);
            assert_ne!(version.flags() & flags::LOGGED, 0);
            version.replace_next(None);
            assert!(version.next().is_none());
            assert_eq!((version.xid(), version.cid()), (xid, cid));
            assert_eq!(version.body(), body);
        }
    }

    #[test]
    fn a_version_costs_its_tuple() {
        let bytes = |image: usize| block_bytes(image - STAMP_BYTES);
        assert_eq!(bytes(IMAGE_BYTES_MIN), 24);
        assert_eq!(bytes(48), 48);
        assert_eq!(bytes(SHORT_IMAGE_BYTES_MAX), 256);
        assert_eq!(bytes(256), 264);
    }
}
