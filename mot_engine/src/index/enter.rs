//! Making sure of an entry, with or without a test of uniqueness.

use super::judge::{Candidate, JudgedHeads, judge_candidate};
use super::posting::{Posting, inline_value, slots_of};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{Slot, Xid};
use crate::key::KeyBuffer;
use crate::memory::Urgency;
use crate::pause::{Point, reach};
use crate::reclaim::prune_row;
use crate::session::{NodeMemory, Session};
use crate::table::{EntryForm, IndexRef, TableRef};
use mot_index::{Change, Spot, Tree};
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

/// What the closure under the latch answers.
enum Decision {
    Entered { added: bool },
    Unjudged(Slot),
    NeedsCells(usize),
}

/// A posting block that is not published: given back unless it comes to that, also when a clock unwinds.
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

/// Makes sure of one entry alone, as [`super::enter_row`] does of all of a row. `key` is the encoded key without suffix.
#[cfg(test)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn enter_key<C: Clock>(
    session: &Session,
    table: TableRef,
    index: IndexRef,
    has_null: bool,
    key: &mut KeyBuffer,
    scratch: &mut KeyBuffer,
    slot: Slot,
    clock: Option<&C>,
) -> Result<EntryOutcome, EngineError> {
    let memory = session.tree_memory(Urgency::Ordinary);
    // SAFETY: the test is pinned.
    let tree = unsafe { Tree::new(&index.storage().root, &memory) };
    let form = index.form(has_null);
    if form == EntryForm::Suffixed {
        super::append_slot(key, slot)?;
    }
    // SAFETY: no spot.
    unsafe {
        enter_at(
            session, table, index, form, &tree, None, key, scratch, slot, clock,
        )
    }
}

/// Makes sure that `key` leads to `slot`. With `clock`, and for a pointed key, only if no other live row has it. `key` is the encoded key, a
/// suffixed one with its suffix; `scratch` is free for use. The caller is pinned.
///
/// # Safety
/// A spot was found for this key in this tree, which is the index's, under the pin that the caller has.
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn enter_at<'a, C: Clock>(
    session: &Session,
    table: TableRef,
    index: IndexRef,
    form: EntryForm,
    tree: &Tree<'a, NodeMemory<'a>>,
    mut spot: Option<Spot<'a>>,
    key: &KeyBuffer,
    scratch: &mut KeyBuffer,
    slot: Slot,
    clock: Option<&C>,
) -> Result<EntryOutcome, EngineError> {
    debug_assert!(session.local.is_pinned());
    if form == EntryForm::Suffixed {
        let set = |old: Option<u64>| (Change::Set(inline_value(slot)), old);
        let old = match spot {
            // SAFETY: the caller's.
            Some(spot) => unsafe { tree.update_at(spot, key.as_slice(), set) },
            None => tree.update(key.as_slice(), set),
        };
        let old = old.map_err(|_| session.index_full())?;
        count(index, i64::from(old.is_none()));
        return Ok(EntryOutcome::Done);
    }
    let mut judged = JudgedHeads::default();
    let mut spare = Spare {
        session,
        block: None,
    };
    loop {
        let decide = |value| decide(table, slot, clock.is_some(), &judged, spare.block, value);
        let decided = match spot.take() {
            // SAFETY: the caller's.
            Some(spot) => unsafe { tree.update_at(spot, key.as_slice(), decide) },
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
            Ok((Decision::Unjudged(candidate), _)) => {
                let Some(clock) = clock else {
                    unreachable!("only asked with a clock")
                };
                match judge_one(
                    session,
                    table,
                    index,
                    key,
                    scratch,
                    candidate,
                    clock,
                    &mut judged,
                ) {
                    Ok(EntryOutcome::Done) => reach(Point::EnterAfterJudging),
                    other => return other,
                }
            }
        }
    }
}

/// Whether another live row has the key; enters nothing. For INSERT ... ON CONFLICT's first look.
pub(crate) fn probe_key(
    session: &Session,
    table: TableRef,
    index: IndexRef,
    has_null: bool,
    key: &KeyBuffer,
    scratch: &mut KeyBuffer,
    clock: &impl Clock,
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
    let mut judged = JudgedHeads::default();
    let mut outcome = Ok(EntryOutcome::Done);
    slots_of(value, |candidate| {
        if matches!(outcome, Ok(EntryOutcome::Done)) {
            outcome = judge_one(
                session,
                table,
                index,
                key,
                scratch,
                candidate,
                clock,
                &mut judged,
            );
        }
    });
    outcome
}

#[allow(clippy::too_many_arguments)]
fn judge_one(
    session: &Session,
    table: TableRef,
    index: IndexRef,
    key: &KeyBuffer,
    scratch: &mut KeyBuffer,
    candidate: Slot,
    clock: &impl Clock,
    judged: &mut JudgedHeads,
) -> Result<EntryOutcome, EngineError> {
    let Some(anchor) = table.anchor(candidate) else {
        return Ok(EntryOutcome::Done);
    };
    let definition = session.definition(index)?;
    let (verdict, head) = judge_candidate(anchor, clock, definition, key.as_slice(), scratch)?;
    Ok(match verdict {
        Candidate::Free => {
            // A key that is deleted and inserted again and again must not gather entries of dead rows until the sweeper comes.
            if head.version().is_some_and(|newest| newest.is_tombstone()) {
                prune_row(session, table, candidate);
            }
            judged.push(candidate, head)?;
            EntryOutcome::Done
        }
        Candidate::Busy(xid) => EntryOutcome::Busy(xid),
        Candidate::Taken => EntryOutcome::Duplicate,
    })
}

/// The spare block went into the tree in place of this one.
struct Replaced {
    block: Option<Posting>,
}

/// Under the leaf's latch: no waiting, no clock, no allocation.
fn decide(
    table: TableRef,
    slot: Slot,
    test_unique: bool,
    judged: &JudgedHeads,
    spare: Option<Posting>,
    value: Option<u64>,
) -> (Change, (Decision, Option<Replaced>)) {
    let Some(value) = value else {
        let entered = (Decision::Entered { added: true }, None);
        return (Change::Set(inline_value(slot)), entered);
    };
    let mut present = false;
    let mut others = 0;
    let mut unjudged = None;
    slots_of(value, |other| {
        if other == slot {
            present = true;
        } else {
            others += 1;
            if test_unique && unjudged.is_none() && !judged.still_free(table, other) {
                unjudged = Some(other);
            }
        }
    });
    if let Some(other) = unjudged {
        return (Change::Keep, (Decision::Unjudged(other), None));
    }
    if present {
        return (Change::Keep, (Decision::Entered { added: false }, None));
    }
    let old = Posting::of(value);
    if old.is_some_and(|block| block.add(slot)) {
        return (Change::Keep, (Decision::Entered { added: true }, None));
    }
    let needed = (others + 1usize).next_power_of_two().max(3);
    match spare {
        Some(block) if block.cells().len() > others => {
            slots_of(value, |other| {
                block.add(other);
            });
            block.add(slot);
            let replaced = Replaced { block: old };
            (
                Change::Set(block.value()),
                (Decision::Entered { added: true }, Some(replaced)),
            )
        }
        _ => (Change::Keep, (Decision::NeedsCells(needed), None)),
    }
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
