//! Tuple ids of tables of the access method: a row and one of its versions (README, "Tuple ids").
use mot_engine::{ORDINALS, Ordinal, Slot, VersionRef};
use pgrx::pg_sys;

/// Rows that share a block number. With the ordinals of each they take the offsets 1 to 32,768.
const ROWS_PER_BLOCK: u64 = 4;

/// The highest block number: the top bit is kept for ids that an index of another access method
/// could store.
const BLOCK_MAX: u64 = (1 << 31) - 1;

const _: () = assert!(ROWS_PER_BLOCK * ORDINALS as u64 <= 1 << 15);

/// What a tuple id names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    pub row: Slot,
    pub ordinal: Ordinal,
}

/// The tuple id of a version of a row.
#[inline]
pub fn of(row: Slot, version: VersionRef) -> pg_sys::ItemPointerData {
    of_name(Name {
        row,
        ordinal: version.ordinal(),
    })
}

/// A name as a tuple id.
#[inline]
pub fn of_name(name: Name) -> pg_sys::ItemPointerData {
    let block = name.row.0 / ROWS_PER_BLOCK;
    debug_assert!(block <= BLOCK_MAX && name.ordinal.0 < ORDINALS);
    let offset = (name.row.0 % ROWS_PER_BLOCK) as u16 * ORDINALS + name.ordinal.0 + 1;
    pg_sys::ItemPointerData {
        ip_blkid: pg_sys::BlockIdData {
            bi_hi: (block >> 16) as u16,
            bi_lo: block as u16,
        },
        ip_posid: offset,
    }
}

/// What a tuple id names; `None` for one that no version has.
#[inline]
pub fn name(tid: pg_sys::ItemPointerData) -> Option<Name> {
    let block = u64::from(tid.ip_blkid.bi_hi) << 16 | u64::from(tid.ip_blkid.bi_lo);
    let place = tid.ip_posid.checked_sub(1)?;
    if block > BLOCK_MAX || u64::from(place) >= ROWS_PER_BLOCK * u64::from(ORDINALS) {
        return None;
    }
    Some(Name {
        row: Slot(block * ROWS_PER_BLOCK + u64::from(place / ORDINALS)),
        ordinal: Ordinal(place % ORDINALS),
    })
}

/// The row id from which on no tuple id names a row.
pub const ROWS_MAX: u64 = (BLOCK_MAX + 1) * ROWS_PER_BLOCK;

/// Offsets of a block that a version can have.
const OFFSETS: u64 = ROWS_PER_BLOCK * ORDINALS as u64;

/// Numbers of names: a half-open range, in the order of tuple ids.
pub type Numbers = std::ops::Range<u64>;

/// A name's number.
pub fn number(row: Slot, version: VersionRef) -> u64 {
    row.0 * u64::from(ORDINALS) + u64::from(version.ordinal().0)
}

/// The numbers of the names from one tuple id to another, both included. Neither need be one that a
/// version has.
pub fn numbers(lowest: pg_sys::ItemPointerData, highest: pg_sys::ItemPointerData) -> Numbers {
    let first_of_block = |tid: pg_sys::ItemPointerData| {
        let block = u64::from(tid.ip_blkid.bi_hi) << 16 | u64::from(tid.ip_blkid.bi_lo);
        block * OFFSETS
    };
    let start = first_of_block(lowest) + u64::from(lowest.ip_posid).saturating_sub(1).min(OFFSETS);
    start..first_of_block(highest) + u64::from(highest.ip_posid).min(OFFSETS)
}

/// The row ids that the numbers are of.
pub fn rows(numbers: &Numbers) -> std::ops::Range<Slot> {
    let ordinals = u64::from(ORDINALS);
    Slot(numbers.start / ordinals)..Slot(numbers.end.div_ceil(ordinals))
}

/// Whether two tuple ids are one.
pub fn same(a: pg_sys::ItemPointerData, b: pg_sys::ItemPointerData) -> bool {
    a.ip_blkid.bi_hi == b.ip_blkid.bi_hi
        && a.ip_blkid.bi_lo == b.ip_blkid.bi_lo
        && a.ip_posid == b.ip_posid
}

/// `ItemPointerSetMovedPartitions`: the row went to another partition.
pub const MOVED_AWAY: pg_sys::ItemPointerData = pg_sys::ItemPointerData {
    ip_blkid: pg_sys::BlockIdData {
        bi_hi: u16::MAX,
        bi_lo: u16::MAX,
    },
    ip_posid: 0xfffd,
};
