//! Makes one entry, with or without a test of uniqueness.

use super::candidate::{Candidate, ResolvedHeads, resolve_candidate};
use super::posting::{Posting, cells_for, has_row_id, inline_value, row_ids_of};
use crate::clock::{Clock, NoClock};
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::key::KeyBuffer;
use crate::memory::Urgency;
use crate::pause::{Point, reach};
use crate::row::Head;
use crate::session::{NodeMemory, Session};
use crate::table::{EntryForm, IndexRef, TableRef};
use mot_index::{Change, InsertPosition, OutOfMemory, Tree};
use std::sync::atomic::Ordering;

/// What became of an entry.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum EntryOutcome {
    /// The entry is there.
    Done,
    /// Wait for this transaction, then ask again.
    Busy(Xid),
    /// Another live row has the key.
    Duplicate,
}

/// How it is tested that no other live row has a key.
pub(crate) struct Uniqueness<'a, C, P> {
    pub(crate) clock: &'a C,
    /// Takes out of a dead row that has the key what no snapshot needs (`reclaim::prune_row`).
    pub(crate) prune: P,
}

impl<C, P: Copy> Copy for Uniqueness<'_, C, P> {}

impl<C, P: Copy> Clone for Uniqueness<'_, C, P> {
    fn clone(&self) -> Self {
        *self
    }
}

/// What [`Uniqueness::prune`] is.
pub(crate) trait Pruner: Fn(&Session, TableRef, RowId) -> usize + Copy {}

impl<P: Fn(&Session, TableRef, RowId) -> usize + Copy> Pruner for P {}

/// Enters a key without such a test.
pub(crate) const NOT_TESTED: Option<Uniqueness<'static, NoClock, Prune>> = None;

type Prune = fn(&Session, TableRef, RowId) -> usize;

/// What the closure under the latch answers.
enum Decision {
    Entered {
        added: bool,
    },
    /// Some row id of this value is to be resolved.
    Unresolved(u64),
    NeedsCells(usize),
}

/// A posting block that is not published: given back unless it comes to that, also when a clock
/// unwinds.
struct Spare<'a> {
    session: &'a Session,
    block: Option<Posting>,
}

impl Spare<'_> {
    fn give_back(&mut self) {
        if let Some(block) = self.block.take() {
            // SAFETY: never published.
            unsafe { block.free(&self.session.local) };
        }
    }
}

impl Drop for Spare<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Makes sure of one entry alone, as [`super::enter_row`] does of all of a row. `key` is the
/// encoded key without suffix.
#[cfg(test)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn enter_key<C: Clock>(
    session: &Session,
    table: TableRef,
    index: IndexRef,
    has_null: bool,
    key: &mut KeyBuffer,
    scratch: &mut KeyBuffer,
    row_id: RowId,
    clock: Option<&C>,
) -> Result<EntryOutcome, EngineError> {
    let memory = session.tree_memory(Urgency::Ordinary);
    // SAFETY: the test is pinned.
    let tree = unsafe { Tree::new(&index.storage().root, &memory) };
    let form = index.form(has_null);
    if form == EntryForm::Suffixed {
        super::append_row_id(key, row_id)?;
    }
    let uniqueness = clock.map(|clock| Uniqueness {
        clock,
        prune: crate::reclaim::prune_row,
    });
    // SAFETY: no insert position.
    unsafe {
        enter_at(
            session, table, index, form, &tree, None, key, scratch, row_id, uniqueness,
        )
    }
}

/// Sets the entry of a key with its suffix; the value that it had.
///
/// # Safety
/// As of [`enter_at`].
#[inline]
unsafe fn set_suffixed<'a>(
    tree: &Tree<'a, NodeMemory<'a>>,
    position: Option<InsertPosition<'a>>,
    key: &KeyBuffer,
    row_id: RowId,
) -> Result<Option<u64>, OutOfMemory> {
    let set = |old: Option<u64>| (Change::Set(inline_value(row_id)), old);
    match position {
        // SAFETY: the caller's.
        Some(position) => unsafe { tree.update_at(position, key.as_slice(), set) },
        None => tree.update(key.as_slice(), set),
    }
}

/// Makes sure that `key` leads to `row_id`. With `uniqueness`, and for a pointed key, only if no
/// other live row has it. `key` is the encoded key, a suffixed one with its suffix; `scratch` is
/// free for use. The caller is pinned.
///
/// # Safety
/// An insert position was found for this key in this tree, which is the index's, under the pin that
/// the caller has.
#[allow(clippy::too_many_arguments)]
pub(in crate::index) unsafe fn enter_at<'a, C: Clock, P: Pruner>(
    session: &Session,
    table: TableRef,
    index: IndexRef,
    form: EntryForm,
    tree: &Tree<'a, NodeMemory<'a>>,
    mut position: Option<InsertPosition<'a>>,
    key: &KeyBuffer,
    scratch: &mut KeyBuffer,
    row_id: RowId,
    uniqueness: Option<Uniqueness<'_, C, P>>,
) -> Result<EntryOutcome, EngineError> {
    debug_assert!(session.local.is_pinned());
    if form == EntryForm::Suffixed {
        // SAFETY: the caller's.
        let old = unsafe { set_suffixed(tree, position, key, row_id) };
        let old = old.map_err(|_| session.index_full())?;
        count(index, i64::from(old.is_none()));
        return Ok(EntryOutcome::Done);
    }
    let mut resolved = ResolvedHeads::default();
    let mut spare = Spare {
        session,
        block: None,
    };
    let is_tested = uniqueness.is_some();
    loop {
        let decide = |value| decide(table, row_id, is_tested, &resolved, spare.block, value);
        let decided = match position.take() {
            // SAFETY: the caller's.
            Some(position) => unsafe { tree.update_at(position, key.as_slice(), decide) },
            None => tree.update(key.as_slice(), decide),
        };
        match decided {
            Err(_) => return Err(session.index_full()),
            Ok((Decision::Entered { added }, used_spare)) => {
                count(index, i64::from(added));
                if let Some(replaced) = used_spare {
                    spare.block = None;
                    if let Some(block) = replaced.block {
                        // SAFETY: the tree's value was just replaced.
                        unsafe { block.retire(&session.local) };
                    }
                }
                return Ok(EntryOutcome::Done);
            }
            Ok((Decision::NeedsCells(cells), _)) => {
                spare.give_back();
                spare.block = Some(Posting::allocate(&session.local, cells)?);
            }
            Ok((Decision::Unresolved(value), _)) => {
                let Some(uniqueness) = uniqueness else {
                    unreachable!("only asked where uniqueness is tested")
                };
                let check = CandidateCheck {
                    session,
                    table,
                    index,
                    key,
                    uniqueness,
                };
                match check.resolve_others(value, row_id, scratch, &mut resolved)? {
                    EntryOutcome::Done => reach(Point::EnterAfterResolving),
                    other => return Ok(other),
                }
            }
        }
    }
}

/// Whether another live row has the key; enters nothing. For INSERT ... ON CONFLICT's first look.
pub(crate) fn probe_key<C: Clock, P: Pruner>(
    session: &Session,
    table: TableRef,
    index: IndexRef,
    has_null: bool,
    key: &KeyBuffer,
    scratch: &mut KeyBuffer,
    uniqueness: Uniqueness<'_, C, P>,
) -> Result<EntryOutcome, EngineError> {
    if index.form(has_null) == EntryForm::Suffixed {
        return Ok(EntryOutcome::Done);
    }
    let memory = session.tree_memory(Urgency::Ordinary);
    // SAFETY: the caller is pinned.
    let tree = unsafe { Tree::new(&index.storage().root, &memory) };
    let Some(value) = tree.get(key.as_slice()) else {
        return Ok(EntryOutcome::Done);
    };
    let check = CandidateCheck {
        session,
        table,
        index,
        key,
        uniqueness,
    };
    let mut outcome = Ok(EntryOutcome::Done);
    row_ids_of(value, |candidate| {
        if matches!(outcome, Ok(EntryOutcome::Done)) {
            outcome = check.resolve(candidate, scratch).map(|(found, _)| found);
        }
    });
    outcome
}

/// Whether one row has the key; enters nothing. The caller is pinned.
pub(crate) fn resolve_row<C: Clock, P: Pruner>(
    session: &Session,
    (table, index): (TableRef, IndexRef),
    key: &KeyBuffer,
    uniqueness: Uniqueness<'_, C, P>,
    candidate: RowId,
    scratch: &mut KeyBuffer,
) -> Result<EntryOutcome, EngineError> {
    let check = CandidateCheck {
        session,
        table,
        index,
        key,
        uniqueness,
    };
    check.resolve(candidate, scratch).map(|(found, _)| found)
}

/// The caller that asks whether other rows have a key.
struct CandidateCheck<'a, C, P> {
    session: &'a Session,
    table: TableRef,
    index: IndexRef,
    key: &'a KeyBuffer,
    uniqueness: Uniqueness<'a, C, P>,
}

impl<C: Clock, P: Pruner> CandidateCheck<'_, C, P> {
    /// Resolves all row ids of an entry's value but `row_id`: all at once, for there may be many,
    /// and none of which is known already that it is free.
    fn resolve_others(
        &self,
        value: u64,
        row_id: RowId,
        scratch: &mut KeyBuffer,
        resolved: &mut ResolvedHeads,
    ) -> Result<EntryOutcome, EngineError> {
        let before = std::mem::take(resolved);
        let mut outcome = Ok(EntryOutcome::Done);
        row_ids_of(value, |candidate| {
            if candidate == row_id || !matches!(outcome, Ok(EntryOutcome::Done)) {
                return;
            }
            let found = match before.still_free(self.table, candidate) {
                Some(head) => Ok((EntryOutcome::Done, head)),
                None => self.resolve(candidate, scratch),
            };
            outcome = found.and_then(|(found, head)| {
                if found == EntryOutcome::Done {
                    resolved.push(candidate, head)?;
                }
                Ok(found)
            });
        });
        outcome
    }

    /// Resolves a row, and says at which head.
    fn resolve(
        &self,
        candidate: RowId,
        scratch: &mut KeyBuffer,
    ) -> Result<(EntryOutcome, Head), EngineError> {
        let Some(anchor) = self.table.anchor(candidate) else {
            return Ok((EntryOutcome::Done, Head::empty()));
        };
        let definition = self.session.definition(self.index)?;
        let key = self.key.as_slice();
        let clock = self.uniqueness.clock;
        let (status, head) = resolve_candidate(anchor, clock, definition, key, scratch)?;
        let outcome = match status {
            Candidate::Free => {
                // A key that is deleted and inserted again and again must not gather entries of
                // dead rows until the sweeper comes.
                if head.version().is_some_and(|newest| newest.is_tombstone()) {
                    (self.uniqueness.prune)(self.session, self.table, candidate);
                }
                EntryOutcome::Done
            }
            Candidate::Busy(xid) => EntryOutcome::Busy(xid),
            Candidate::Taken => EntryOutcome::Duplicate,
        };
        Ok((outcome, head))
    }
}

/// The spare block went into the tree in place of this one.
struct Replaced {
    block: Option<Posting>,
}

/// Under the leaf's latch: no waiting, no clock, no allocation.
fn decide(
    table: TableRef,
    row_id: RowId,
    test_unique: bool,
    resolved: &ResolvedHeads,
    spare: Option<Posting>,
    value: Option<u64>,
) -> (Change, (Decision, Option<Replaced>)) {
    let Some(value) = value else {
        let entered = (Decision::Entered { added: true }, None);
        return (Change::Set(inline_value(row_id)), entered);
    };
    let old = Posting::of(value);
    if test_unique {
        let mut is_resolved = true;
        row_ids_of(value, |other| {
            is_resolved =
                is_resolved && (other == row_id || resolved.still_free(table, other).is_some());
        });
        if !is_resolved {
            return (Change::Keep, (Decision::Unresolved(value), None));
        }
    }
    if has_row_id(value, row_id) {
        return (Change::Keep, (Decision::Entered { added: false }, None));
    }
    if old.is_some_and(|block| block.add(row_id)) {
        return (Change::Keep, (Decision::Entered { added: true }, None));
    }
    let mut row_ids = 1;
    row_ids_of(value, |_| row_ids += 1);
    // One that is half full and has no room for this one would soon have none for another.
    let cells = old.map_or(0, |block| block.cells().len());
    let needed = cells_for(row_ids.max(if row_ids > cells / 2 { cells + 1 } else { 0 }));
    let Some(block) = spare.filter(|block| block.cells().len() >= needed) else {
        return (Change::Keep, (Decision::NeedsCells(needed), None));
    };
    let mut has_room = block.add(row_id);
    row_ids_of(value, |other| has_room = has_room && block.add(other));
    if !has_room {
        let more = 2 * block.cells().len();
        return (Change::Keep, (Decision::NeedsCells(more), None));
    }
    let replaced = Replaced { block: old };
    (
        Change::Set(block.value()),
        (Decision::Entered { added: true }, Some(replaced)),
    )
}

pub(super) fn count(index: IndexRef, entries: i64) {
    if entries != 0 {
        index
            .storage()
            .counters
            .entries
            .fetch_add(entries, Ordering::Relaxed);
    }
}
