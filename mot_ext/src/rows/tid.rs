//! Tuple ids of tables of the access method: a row and one of its versions (table_am/README.md,
//! "Tuple ids").
use crate::transaction::wait::tid_of;
use crate::transaction::xact;
use mot_engine::{
    ALIAS_BITS, Alias, ORDINALS, Ordinal, ROWS_PER_BLOCK, RowId, TableRef, VersionRef,
};
use pgrx::pg_sys;

/// The highest block number: the top bit is kept for ids that an index of another access method
/// could store.
const BLOCK_MAX: u64 = (1 << 31) - 1;

/// The lowest offset of an alias, and the bits of it that the offset has: from 32,769 to 49,152, so
/// that no value to which core gives a meaning of its own is among them.
const ALIAS_OFFSETS: u16 = 0x8001;
const ALIAS_OFFSET_BITS: u32 = 14;

const _: () = assert!(ALIAS_BITS == u32::BITS + ALIAS_OFFSET_BITS);

/// Blocks that the tuple ids of a table's rows have.
pub fn blocks(table: TableRef) -> pg_sys::BlockNumber {
    let blocks = table.row_ids_end().0.div_ceil(ROWS_PER_BLOCK);
    blocks.min(BLOCK_MAX) as pg_sys::BlockNumber
}

/// What a tuple id names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    pub row: RowId,
    pub state: State,
}

/// Which of a row's states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// One with this ordinal.
    Ordinal(Ordinal),
    /// This one of the transaction's own, by its alias.
    Own(VersionRef),
}

impl Name {
    /// Whether it is this version of the row.
    pub fn is(self, version: VersionRef) -> bool {
        match self.state {
            State::Ordinal(ordinal) => version.ordinal() == ordinal,
            State::Own(own) => version == own,
        }
    }
}

/// The tuple id of a version of a row.
#[inline]
pub fn of(table: TableRef, row: RowId, version: VersionRef) -> pg_sys::ItemPointerData {
    if !version.is_known_committed()
        && let Some(alias) = xact::alias(table, row, version)
    {
        return of_alias(alias);
    }
    of_ordinal(row, version.ordinal())
}

fn of_ordinal(row: RowId, ordinal: Ordinal) -> pg_sys::ItemPointerData {
    debug_assert!(row.0 < ROWS_MAX);
    tid_of(row, ordinal)
}

fn of_alias(alias: Alias) -> pg_sys::ItemPointerData {
    let low = alias.0 & ((1 << ALIAS_OFFSET_BITS) - 1);
    at(alias.0 >> ALIAS_OFFSET_BITS, ALIAS_OFFSETS + low as u16)
}

fn at(block: u64, offset: u16) -> pg_sys::ItemPointerData {
    pg_sys::ItemPointerData {
        ip_blkid: pg_sys::BlockIdData {
            bi_hi: (block >> 16) as u16,
            bi_lo: block as u16,
        },
        ip_posid: offset,
    }
}

fn block_of(tid: pg_sys::ItemPointerData) -> u64 {
    u64::from(tid.ip_blkid.bi_hi) << 16 | u64::from(tid.ip_blkid.bi_lo)
}

/// What a tuple id names in a table; `None` for one that no version there can have.
#[inline]
pub fn name(table: TableRef, tid: pg_sys::ItemPointerData) -> Option<Name> {
    let block = block_of(tid);
    let place = tid.ip_posid.checked_sub(1)?;
    if u64::from(place) >= ROWS_PER_BLOCK * u64::from(ORDINALS) {
        return own(table, alias_of(tid)?);
    }
    if block > BLOCK_MAX {
        return None;
    }
    Some(Name {
        row: RowId(block * ROWS_PER_BLOCK + u64::from(place / ORDINALS)),
        state: State::Ordinal(Ordinal(place % ORDINALS)),
    })
}

fn alias_of(tid: pg_sys::ItemPointerData) -> Option<Alias> {
    let low = tid.ip_posid.checked_sub(ALIAS_OFFSETS)?;
    let is_alias = low >> ALIAS_OFFSET_BITS == 0;
    is_alias.then(|| Alias(block_of(tid) << ALIAS_OFFSET_BITS | u64::from(low)))
}

#[cold]
fn own(table: TableRef, alias: Alias) -> Option<Name> {
    let (of, row, version) = xact::aliased(alias)?;
    (of == table && !version.is_tombstone()).then_some(Name {
        row,
        state: State::Own(version),
    })
}

/// The row id from which on no tuple id names a row.
pub const ROWS_MAX: u64 = (BLOCK_MAX + 1) * ROWS_PER_BLOCK;

/// Numbers of tuple ids: a half-open range, in the order of tuple ids.
pub type Numbers = std::ops::Range<u64>;

/// A tuple id's number.
pub fn number(tid: pg_sys::ItemPointerData) -> u64 {
    block_of(tid) << u16::BITS | u64::from(tid.ip_posid)
}

/// The numbers from one tuple id to another, both included. Neither need be one that a version has.
pub fn numbers(lowest: pg_sys::ItemPointerData, highest: pg_sys::ItemPointerData) -> Numbers {
    number(lowest)..number(highest) + 1
}

/// The row ids among which those are whose tuple ids, other than aliases, have these numbers.
pub fn rows(numbers: &Numbers) -> std::ops::Range<RowId> {
    let first = (numbers.start >> u16::BITS) * ROWS_PER_BLOCK;
    let end = ((numbers.end >> u16::BITS) + 1) * ROWS_PER_BLOCK;
    RowId(first)..RowId(end)
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
