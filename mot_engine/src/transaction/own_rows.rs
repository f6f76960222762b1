//! Rows that a transaction has changed often: its states of them, in order.
//!
//! Core may give back the tuple id of any of them until the transaction ends: a deferred trigger's
//! event names the state before a change and the one after it. Two things do not scale with their
//! number. Ordinals repeat, so that an id could name two of them. And a look into the chain, which
//! has the newest on top, walks them all.
//!
//! So a row's states are listed here once there are [`LISTED_FROM`] of them. Those beyond
//! [`NAMED_BY_ORDINAL`] get a number of their own, an [`Alias`], which no other state has:
//!
//! - A state's id never changes while its transaction runs. The first ones keep row id and ordinal.
//!   A later one has its alias before other code learns of it.
//! - An alias names its state to its transaction alone. To all others that state is unfinished
//!   work, of which they learn nothing, and once it is committed its row id and ordinal name it.
//! - Numbers come from the engine in blocks, and from its clock where it begins anew. So an alias
//!   that a caller has kept from another transaction names nothing.
//! - What a savepoint takes back leaves the list, and its numbers go to what follows in its place,
//!   as ordinals do. What had them is gone with the savepoint: queued events, and cursors opened in
//!   it.
//!
//! Neither list nor numbers outlive the transaction.

use super::examine::data_below;
use super::{Kind, Operation, Transaction};
use crate::errors::EngineError;
use crate::ids::{CommandId, Ordinal, RowId};
use crate::row::{VersionRef, flags};
use crate::session::Session;
use crate::table::TableRef;
use std::collections::{HashMap, TryReserveError};

/// Own states from which on a row is listed: a walk over fewer is as cheap. A row is examined each
/// time that its ordinal passes a multiple of this.
pub(super) const LISTED_FROM: usize = 64;

/// States of a row that a transaction's tuple ids name by ordinal. Far below
/// [`ORDINALS`](crate::ids::ORDINALS), so that an older state that the transaction has seen or
/// locked is distinguished from them.
pub const NAMED_BY_ORDINAL: usize = 1024;

/// Aliases in a block.
const ALIASES_AT_A_TIME: u64 = 1024;

/// Bits of an alias: as many as a tuple id has for it.
pub const ALIAS_BITS: u32 = 46;

/// A name of one state that no other has, known to the transaction that made it.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Alias(pub u64);

impl Alias {
    fn of(block: u64, place: usize) -> Alias {
        Alias(block * ALIASES_AT_A_TIME + place as u64)
    }

    fn block(self) -> (u64, usize) {
        let place = self.0 % ALIASES_AT_A_TIME;
        (self.0 / ALIASES_AT_A_TIME, place as usize)
    }
}

#[derive(Copy, Clone)]
struct OwnState {
    version: VersionRef,
    /// Copies of the version's, so that a search touches the list alone.
    cid: CommandId,
    ordinal: Ordinal,
}

impl OwnState {
    fn of(version: VersionRef) -> OwnState {
        OwnState {
            version,
            cid: version.cid(),
            ordinal: version.ordinal(),
        }
    }
}

/// All states that the transaction has of a row, and that were not taken back.
pub struct OwnRow {
    /// Oldest first, and so in the order of their commands.
    states: Vec<OwnState>,
    /// Blocks of aliases, for the states from [`NAMED_BY_ORDINAL`] on.
    blocks: Vec<u64>,
}

impl OwnRow {
    /// The oldest of them.
    pub(crate) fn oldest(&self) -> VersionRef {
        self.states[0].version
    }

    /// The states that tuple ids name by this ordinal.
    pub(crate) fn named(&self, ordinal: Ordinal) -> impl Iterator<Item = VersionRef> {
        let by_ordinal = self.states.iter().take(NAMED_BY_ORDINAL);
        by_ordinal
            .filter(move |state| state.ordinal == ordinal)
            .map(|state| state.version)
    }

    /// The alias of a version, if it is one of the states that have one.
    pub(crate) fn alias(&self, version: VersionRef) -> Option<Alias> {
        let cid = version.cid();
        let first = self.states.partition_point(|state| state.cid < cid);
        let of_command = self.states[first..].iter();
        let place = of_command
            .take_while(|state| state.cid == cid)
            .position(|state| state.version == version)?;
        let beyond = (first + place).checked_sub(NAMED_BY_ORDINAL)?;
        let at_a_time = ALIASES_AT_A_TIME as usize;
        Some(Alias::of(
            self.blocks[beyond / at_a_time],
            beyond % at_a_time,
        ))
    }

    /// The state with this place in one of the row's blocks.
    fn aliased(&self, block: usize, place: usize) -> Option<VersionRef> {
        let index = NAMED_BY_ORDINAL + block * ALIASES_AT_A_TIME as usize + place;
        Some(self.states.get(index)?.version)
    }

    /// Whether the next state needs a block that the row does not have.
    fn lacks_block(&self) -> bool {
        let states = self.states.len();
        states >= NAMED_BY_ORDINAL + self.blocks.len() * ALIASES_AT_A_TIME as usize
    }
}

/// Whose a block of aliases is: the row, and which of its blocks.
type BlockOf = (TableRef, RowId, usize);

/// The listed rows of a transaction.
#[derive(Default)]
pub(super) struct OwnRows {
    rows: HashMap<(TableRef, RowId), OwnRow>,
    blocks: HashMap<u64, BlockOf>,
}

impl OwnRows {
    /// Room for a state that is about to be put upon `below`, an own one. Lists the row first, if
    /// it is time for it. The caller is pinned.
    pub(super) fn make_room(
        &mut self,
        session: &Session,
        table: TableRef,
        row_id: RowId,
        below: VersionRef,
        is_own: impl Fn(VersionRef) -> bool,
    ) -> Result<(), EngineError> {
        let no_memory = |_: TryReserveError| EngineError::OutOfProcessMemory;
        let key = (table, row_id);
        if !self.rows.contains_key(&key) {
            let multiple = |ordinal: Ordinal| usize::from(ordinal.0) / LISTED_FROM;
            if multiple(below.ordinal()) == multiple(below.ordinal().next()) {
                return Ok(());
            }
            let mut states = Vec::new();
            let mut at = Some(below);
            // What a savepoint took back may be there still, marked by the code that did that.
            let is_none = |at: VersionRef| at.flags() & (flags::LOCK_ONLY | flags::ABORTED) != 0;
            while let Some(version) = at.filter(|at| is_none(*at) || is_own(*at)) {
                at = version.next();
                let above = states.last().map(|state: &OwnState| state.version);
                let has_image = above.is_some_and(|above| above.is_own_image_of(version));
                if !is_none(version) && !has_image {
                    states.try_reserve(1).map_err(no_memory)?;
                    states.push(OwnState::of(version));
                }
            }
            if states.len() < LISTED_FROM {
                return Ok(());
            }
            states.reverse();
            self.rows.try_reserve(1).map_err(no_memory)?;
            let blocks = Vec::new();
            self.rows.insert(key, OwnRow { states, blocks });
        }
        let Some(row) = self.rows.get_mut(&key) else {
            return Ok(());
        };
        row.states.try_reserve(1).map_err(no_memory)?;
        if row.lacks_block() {
            row.blocks.try_reserve(1).map_err(no_memory)?;
            self.blocks.try_reserve(1).map_err(no_memory)?;
            let blocks = 1 << (ALIAS_BITS - ALIASES_AT_A_TIME.ilog2());
            let block = session.engine().next_alias_block() % blocks;
            self.blocks.insert(block, (table, row_id, row.blocks.len()));
            row.blocks.push(block);
        }
        Ok(())
    }

    /// The transaction has put a state on a row, for which there is room.
    pub(super) fn put(&mut self, table: TableRef, row_id: RowId, version: VersionRef) {
        if self.rows.is_empty() {
            return;
        }
        if let Some(row) = self.rows.get_mut(&(table, row_id)) {
            debug_assert!(row.states.len() < row.states.capacity() && !row.lacks_block());
            match row.states.last_mut() {
                // Its image has its place, and its alias.
                Some(last) if version.is_own_image_of(last.version) => last.version = version,
                _ => row.states.push(OwnState::of(version)),
            }
        }
    }

    /// These operations, the last ones, are taken back. The caller is pinned.
    pub(super) fn take_back(&mut self, operations: &[Operation]) {
        if self.rows.is_empty() {
            return;
        }
        for operation in operations.iter().rev() {
            let key = (operation.table, operation.row_id());
            if operation.kind() == Kind::CreateTable {
                // Its rows' inserts may have no operations (`own_tables.rs`).
                self.forget_table(operation.table);
            }
            if !operation.kind().is_data() {
                continue;
            }
            let Some(row) = self.rows.get_mut(&key) else {
                continue;
            };
            let taken = row.states.pop();
            debug_assert_eq!(
                taken.map(|state| state.version.address()),
                Some(operation.address())
            );
            let image = taken.map(|state| state.version);
            let replaced = image.and_then(data_below);
            if let (Some(image), Some(replaced)) = (image, replaced)
                && image.is_own_image_of(replaced)
            {
                row.states.push(OwnState::of(replaced));
            }
            if row.states.is_empty() {
                let row = self.rows.remove(&key);
                for block in row.iter().flat_map(|row| &row.blocks) {
                    self.blocks.remove(block);
                }
            }
        }
    }

    fn forget_table(&mut self, table: TableRef) {
        self.rows.retain(|(its, _), _| *its != table);
        self.blocks.retain(|_, (its, ..)| *its != table);
    }

    pub(super) fn clear(&mut self) {
        if !self.rows.is_empty() {
            *self = OwnRows::default();
        }
    }
}

impl Transaction {
    /// The states that this transaction has of a row, if it has changed that often.
    pub fn own_row(&self, table: TableRef, row_id: RowId) -> Option<&OwnRow> {
        if self.own_rows.rows.is_empty() {
            return None;
        }
        self.own_rows.rows.get(&(table, row_id))
    }

    /// The alias of a version of a row, if it is a state of this transaction that has one. Its
    /// tuple id is made of that, and not of row id and ordinal.
    pub fn alias(&self, table: TableRef, row_id: RowId, version: VersionRef) -> Option<Alias> {
        self.own_row(table, row_id)?.alias(version)
    }

    /// Whether a state of this transaction may have an alias.
    pub fn has_aliases(&self) -> bool {
        !self.own_rows.blocks.is_empty()
    }

    /// What an alias names: a state of this transaction.
    pub fn aliased(&self, alias: Alias) -> Option<(TableRef, RowId, VersionRef)> {
        let (block, place) = alias.block();
        let (table, row_id, of_row) = *self.own_rows.blocks.get(&block)?;
        let version = self.own_row(table, row_id)?.aliased(of_row, place)?;
        Some((table, row_id, version))
    }
}
