//! A version: one state of a row.
//!
//! ```text
//!  0  word: u64         the older version's address or 0, flags, and the length of a short image
//!  8  image_bytes: u64  length of a long image; a short one has no such word
//!  8 or 16  image       a PostgreSQL heap tuple; its first 18 bytes are the engine's stamp:
//!      0 xid: u64       the (sub)transaction that made it      (t_choice)
//!      8 cid: u32       the command of that transaction        (t_choice)
//!     12 tid: 3 x u16   block high, block low, offset          (t_ctid)
//!     18 body           t_infomask2, t_infomask, t_hoff, null bitmap, data: what is logged and checkpointed
//!
//! word: bits 0..3 and 59..64 length, 3..48 address (a multiple of 8), 48..59 hints and kind, see `flags`
//! ```
//!
//! So a scan hands the tuple out in place, and `xmin`, `cmin` and `ctid` of the tuple come out right.
//!
//! Invariants:
//! - Everything but the word's address and flags is written before the version is published and never changes.
//! - The address in a published version's word changes only under the anchor's latch (unlink, prune), flags at any time by anybody: so both
//!   by instructions that leave the rest of the word alone.
//! - Hint flags are only ever added, and only once they are true for ever. (APPLYING is no hint: replay takes it off.)
//! - Tombstones and lock entries have an image of [`IMAGE_BYTES_MIN`] bytes: the stamp and padding.

use super::anchor::Head;
use super::strength::LockStrength;
use crate::ids::{CommandId, Slot, Xid};
use crate::sync::{AtomicU64, Ordering, order_unless_broken};
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
    /// Of a state: no lock entry lies below it. Locks come on top, so it stays true. (The bit is one of a lock entry's strength.)
    pub const NO_LOCKS_BELOW: u32 = 1 << STRENGTH_SHIFT;
    /// Replay is still working on it: entries may be missing, and the row's LSN is not its own yet. Nobody judges it; taken off when it is
    /// complete.
    pub const APPLYING: u32 = 1 << 10;
    /// Bits there are.
    pub(super) const BITS: u32 = 11;
}

/// Bytes of the longest image whose length fits into the word: with the word, a block of 256 bytes.
const SHORT_IMAGE_BYTES_MAX: usize = 248;
/// Where in the word the flags are.
const FLAGS_SHIFT: u32 = 48;
const FLAGS: u64 = ((1 << flags::BITS) - 1) << FLAGS_SHIFT;
/// Where in the word the address is.
const ADDRESS: u64 = (1 << FLAGS_SHIFT) - 8;
/// The length's low bits lie below the address, the others above the flags. 0: the image is a long one.
const LENGTH_LOW_BITS: u32 = 3;
const LENGTH_LOW: u64 = (1 << LENGTH_LOW_BITS) - 1;
const LENGTH_HIGH_SHIFT: u32 = FLAGS_SHIFT + flags::BITS;

const _: () = assert!(
    (SHORT_IMAGE_BYTES_MAX as u64) < 1 << (LENGTH_LOW_BITS + u64::BITS - LENGTH_HIGH_SHIFT)
);

/// What every version begins with.
#[repr(C)]
pub struct Version {
    word: AtomicU64,
}

/// Bytes in front of an image.
#[inline]
fn header_bytes(image_bytes: usize) -> usize {
    if image_bytes <= SHORT_IMAGE_BYTES_MAX {
        size_of::<Version>()
    } else {
        size_of::<Version>() + size_of::<u64>()
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

/// Bytes of the arena block of a version with such an image.
pub fn block_bytes(image_bytes: usize) -> usize {
    (header_bytes(image_bytes) + image_bytes).next_multiple_of(align_of::<Version>())
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
    /// `block` is an unshared block of at least `block_bytes(image.len())` bytes, 8-byte aligned; `image` is at least
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
    /// `block` is an unshared, 8-byte aligned block that is large enough for the image.
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
        let image_bytes = STAMP_BYTES + body.len();
        debug_assert_eq!(flags >> flags::BITS, 0);
        let word = u64::from(flags) << FLAGS_SHIFT | length_bits(image_bytes);
        // SAFETY: the block is ours and large enough (caller).
        unsafe {
            version.write(Version {
                word: AtomicU64::new(word),
            });
            if short_length(word) == 0 {
                version.add(1).cast::<u64>().write(image_bytes as u64);
            }
            let at = block.add(header_bytes(image_bytes));
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
        Xid(unsafe { self.image_ptr().cast::<u64>().read() })
    }

    /// The command that made it.
    pub fn cid(&self) -> CommandId {
        // SAFETY: as for `xid`.
        CommandId(unsafe { self.image_ptr().cast::<u32>().add(2).read() })
    }

    /// The row it belongs to.
    pub fn slot(&self) -> Slot {
        // SAFETY: as for `xid`.
        let (high, low, offset) = unsafe {
            let tid = self.image_ptr().cast::<u16>().add(6);
            (tid.read(), tid.add(1).read(), tid.add(2).read())
        };
        let block = (u32::from(high) << 16) | u32::from(low);
        Slot::from_tid(block, offset).expect("a version's stamp holds a slot")
    }

    /// The tuple, stamp included.
    pub fn image(&self) -> &[u8] {
        let bytes = self.image_bytes();
        // SAFETY: the image follows the header and is immutable while the version is protected.
        unsafe { std::slice::from_raw_parts(self.image_at(bytes), bytes) }
    }

    /// The tuple's address.
    #[inline]
    pub fn image_ptr(&self) -> *const u8 {
        let is_long = short_length(self.word()) == 0;
        let words = 1 + usize::from(is_long);
        // SAFETY: past the header is inside the block.
        unsafe { self.0.as_ptr().add(words).cast() }
    }

    /// Where an image of this length begins.
    #[inline]
    fn image_at(&self, image_bytes: usize) -> *const u8 {
        // SAFETY: past the header is inside the block.
        unsafe { self.0.as_ptr().cast::<u8>().add(header_bytes(image_bytes)) }
    }

    /// The tuple's length.
    #[inline]
    pub fn image_bytes(&self) -> usize {
        match short_length(self.word()) {
            // SAFETY: a long image's length follows the word and never changes after publication.
            0 => unsafe { self.0.add(1).cast::<u64>().read() as usize },
            length => length,
        }
    }

    /// What is logged and checkpointed of the tuple.
    pub fn body(&self) -> &[u8] {
        &self.image()[STAMP_BYTES..]
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

    /// Whether it is a committed state with nothing below it: a row with which there is nothing to do.
    pub(crate) fn is_at_rest(&self) -> bool {
        const VERDICT: u32 = flags::COMMITTED
            | flags::ABORTED
            | flags::TOMBSTONE
            | flags::LOCK_ONLY
            | flags::APPLYING;
        let word = self.word();
        word & (ADDRESS | u64::from(VERDICT) << FLAGS_SHIFT)
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

    /// Whether it is a state that says that no lock entry lies below it.
    #[inline]
    pub(crate) fn ends_locks(&self) -> bool {
        self.flags() & (flags::NO_LOCKS_BELOW | flags::LOCK_ONLY) == flags::NO_LOCKS_BELOW
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
        let word = &self.header().word;
        let rest = word.load(Ordering::Relaxed) & !ADDRESS;
        word.store(rest | below, Ordering::Relaxed);
    }

    /// Puts another version, or none, below it. Under the anchor's latch: nobody else changes the address meanwhile, flags they may.
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
        // SAFETY: the address is 0 or that of a version that is retired, not freed, while anybody who can reach it is pinned.
        unsafe { VersionRef::from_address(self.word() & ADDRESS) }
    }

    /// Bytes of its arena block.
    pub fn block_bytes(&self) -> usize {
        block_bytes(self.image_bytes())
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
            let mut block = vec![0u64; block_bytes(length) / 8];
            let image: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let at = NonNull::new(block.as_mut_ptr().cast()).unwrap();
            let (xid, cid, slot) = (Xid(77 << 32), CommandId(5), Slot(70_000));
            // SAFETY: the vector is large enough and 8-byte aligned.
            let version = unsafe { VersionRef::write(at, &image, xid, cid, slot, 0) };
            let same = || {
                assert_eq!(version.xid(), xid);
                assert_eq!(version.cid(), cid);
                assert_eq!(version.slot(), slot);
                assert_eq!(version.image().len(), length);
                assert_eq!(version.image().as_ptr(), version.image_ptr());
                assert_eq!(version.body(), &image[STAMP_BYTES..]);
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
            assert_eq!(version.image(), {
                let mut stamped = image.clone();
                stamped[..STAMP_BYTES].copy_from_slice(&version.image()[..STAMP_BYTES]);
                stamped
            });
        }
    }

    #[test]
    fn a_short_row_costs_eight_bytes() {
        assert_eq!(block_bytes(48), 56);
        assert_eq!(block_bytes(SHORT_IMAGE_BYTES_MAX), 256);
        assert_eq!(block_bytes(256), 272);
    }
}
