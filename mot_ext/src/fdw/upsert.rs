//! INSERT ... ON CONFLICT.
//!
//! Look first, then insert; when another inserter was quicker, take the row back and look again. DO UPDATE locks the row that is
//! there, in its newest state whether the statement's snapshot sees it or not (READ COMMITTED), and updates it with the
//! projection core compiled for heap tables.
//!
//! What SET and WHERE run may change the row that is locked: a WITH part of the same command, or a
//! function. The update is then what any other one of such a row is: left out, or error 27000.
//!
//! Row triggers: core fires BEFORE INSERT before it calls us, whatever happens then, and AFTER INSERT for the row it gets back. For a
//! row that was updated the UPDATE triggers are fired here, and AFTER INSERT is hidden from core until the next row.
use super::modify::{self, Modify};
use super::write::{
    Fate, Inserted, Target, or_raise, pass_over_own_change, refuse_under_old_snapshot,
};
use super::{serializable, triggers, tuple};
use crate::clock::PgClock;
use crate::errors;
use crate::executor::expressions::{passes, project};
use crate::pg::executor::compute_stored_generated;
use crate::pg::version;
use crate::wait::{Purpose, RowLockQueue, WaitPolicy};
use mot_engine::key::{KeyBuffer, encode_row};
use mot_engine::{
    Clock, CommandId, Entered, IndexRef, IndexScan, LockStrength, Locked, Now, Slot, VersionRef,
};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Inserts the row, or does what the statement says about the row that has its key. NULL: nothing was done.
pub unsafe fn insert_or_resolve(
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    state: &mut Modify,
    slot: *mut pg_sys::TupleTableSlot,
    body: &[u8],
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as core calls ExecForeignInsert, for a statement with ON CONFLICT.
    unsafe {
        let target = state.target;
        let arbiters = arbiters(info, state);
        let is_arbiter = |index: IndexRef| arbiters.is_empty() || arbiters.contains(&Some(index));
        let mut queue = RowLockQueue::new(target.relation).purpose(Purpose::Insert);
        loop {
            let mut met = Entered::Done;
            for only in if arbiters.is_empty() {
                &[None][..]
            } else {
                &arbiters[..]
            } {
                met = target.probe(*only, body);
                if met != Entered::Done {
                    break;
                }
            }
            let index = match met {
                Entered::Busy(xid) => {
                    queue.wait_for_transaction(Slot(0), xid);
                    continue;
                }
                Entered::Duplicate(index) => index,
                Entered::Done => {
                    let command = state.command(estate);
                    match target.insert(body, command, Some(&is_arbiter)) {
                        Inserted::Done(row, version) => {
                            state.show(info, slot, row, version);
                            show_xmax(info, slot, pg_sys::InvalidTransactionId);
                            return slot;
                        }
                        Inserted::Duplicate => continue,
                    }
                }
            };
            let Some((row, version)) = find(state, index, body) else {
                continue;
            };
            refuse_unseen(state, row, version);
            if target.is_serializable {
                // Its being there decides what the statement does.
                let snapshot = (*estate).es_snapshot;
                serializable::read_row(target.oid(), target.table, row, version, snapshot);
            }
            if state.conflict == pg_sys::OnConflictAction::ONCONFLICT_NOTHING {
                return std::ptr::null_mut();
            }
            refuse_second_change(state, estate, version);
            let strength = state.strength_of_update(estate, info);
            match lock(&target, row, version, strength, &mut queue) {
                Locked::Done => {}
                Locked::Changed => {
                    refuse_under_old_snapshot("concurrent update");
                    continue;
                }
                Locked::Gone => {
                    refuse_under_old_snapshot("concurrent delete");
                    continue;
                }
                Locked::SelfModified(_) => continue,
                Locked::Busy(_) => unreachable!("it was waited for"),
            }
            return update_existing(estate, info, state, slot, row, version);
        }
    }
}

/// Locks the row that is in the way, in the state that was found, or says what became of it; waits for those who hold it, and has left their queue in any case:
/// the row may be in nobody's way any more, and what comes next may wait for others.
fn lock(
    target: &Target,
    row: Slot,
    version: VersionRef,
    strength: LockStrength,
    queue: &mut RowLockQueue,
) -> Locked {
    let locked = loop {
        match target.lock(row, version, strength) {
            Locked::Busy(xid) => target.wait(row, xid, strength, WaitPolicy::Block, queue),
            locked => break locked,
        };
    };
    queue.release();
    locked
}

/// The indexes the statement names; none: all.
unsafe fn arbiters(info: *mut pg_sys::ResultRelInfo, state: &Modify) -> Vec<Option<IndexRef>> {
    // SAFETY: an oid list of core's.
    unsafe {
        let list = (*info).ri_onConflictArbiterIndexes;
        let count = if list.is_null() {
            0
        } else {
            (*list).length as usize
        };
        (0..count)
            .map(|at| {
                let oid = (*(*list).elements.add(at)).oid_value.to_u32();
                let Target { session, table, .. } = state.target;
                let found = session.find_index(table, oid, &PgClock);
                Some(found.unwrap_or_else(|| errors::index_dropped()))
            })
            .collect()
    }
}

/// The live row that has the key of `body`; None if it went away.
fn find(state: &Modify, index: IndexRef, body: &[u8]) -> Option<(Slot, VersionRef)> {
    let session = state.target.session;
    let mut key = KeyBuffer::new();
    or_raise(encode_row(
        or_raise(session.definition(index)),
        body,
        &mut key,
    ));
    let (key, now) = (key.as_slice(), Now(&PgClock));
    or_raise(IndexScan::new().find(session, state.target.table, index, key, &now))
}

/// Under REPEATABLE READ a state the snapshot does not see cannot be taken for the one that is in the way, even if it sees an older one. Such a state is
/// not kept for us: nothing of it is read here.
fn refuse_unseen(state: &Modify, row: Slot, version: VersionRef) {
    let target = &state.target;
    let Some(snapshot) = state.snapshot.as_ref() else {
        return;
    };
    let is_seen = || {
        target
            .session
            .visible(target.table, row, snapshot)
            .is_some_and(|seen| seen == version)
    };
    let is_own = || {
        target
            .session
            .is_own_state(&PgClock, target.table, row, version)
    };
    if !is_seen() && !is_own() {
        refuse_under_old_snapshot("concurrent update");
    }
}

/// Raises 21000 of a row that this command, or one that it ran, has made or changed. Before the
/// lock, which might be waited for: as `heap_lock_tuple` does with a state that the command cannot
/// see.
fn refuse_second_change(state: &Modify, estate: *mut pg_sys::EState, version: VersionRef) {
    if PgClock.is_current(version.xid()) && version.cid() >= state.command(estate) {
        pg_sys::panic::ErrorReport::new(
            PgSqlErrorCode::ERRCODE_CARDINALITY_VIOLATION,
            "ON CONFLICT DO UPDATE command cannot affect row a second time",
            pgrx::function_name!(),
        )
        .set_hint(
            "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
        )
        .report(PgLogLevel::ERROR);
    }
}

/// Whether the row is still in the state that was locked, ahead of BEFORE UPDATE row triggers,
/// which are not fired for another one. A change by a command that SET or WHERE ran is an error.
fn is_unchanged(
    target: &Target,
    row: Slot,
    version: VersionRef,
    strength: LockStrength,
    command: CommandId,
) -> bool {
    match target.lock(row, version, strength) {
        Locked::Done => true,
        Locked::SelfModified(by) => {
            pass_over_own_change(by, command, "updated");
            false
        }
        Locked::Busy(_) | Locked::Changed | Locked::Gone => unreachable!("it is locked"),
    }
}

/// Updates the row that is in the way, locked in the state `version`. NULL: nothing was done.
unsafe fn update_existing(
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    state: &mut Modify,
    excluded: *mut pg_sys::TupleTableSlot,
    row: Slot,
    version: VersionRef,
) -> *mut pg_sys::TupleTableSlot {
    let command = state.command(estate);
    // SAFETY: core compiled the statement's SET and WHERE for this node and made the slots.
    unsafe {
        let set = (*info).ri_onConflict;
        let existing = (*set).oc_Existing;
        // A BEFORE INSERT row trigger's row lies in the memory of one row, which a part that SET or
        // WHERE runs empties.
        tuple::materialize(excluded);
        tuple::store_copy(existing, row, version, state.target.oid());
        let context = (*state.node).ps.ps_ExprContext;
        (*context).ecxt_scantuple = existing;
        (*context).ecxt_innertuple = excluded;
        (*context).ecxt_outertuple = std::ptr::null_mut();
        if !(*info).ri_WithCheckOptions.is_null() {
            pg_sys::ExecWithCheckOptions(version::VIEW_CONFLICT_CHECK, info, existing, estate);
        }
        if !passes((*set).oc_WhereClause, context) {
            return std::ptr::null_mut();
        }
        let new = project((*set).oc_ProjInfo);
        let descriptor = (*info).ri_TrigDesc;
        let old = pg_sys::ExecFetchSlotHeapTuple(existing, true, std::ptr::null_mut());
        if !descriptor.is_null() && (*descriptor).trig_update_before_row {
            let strength = state.strength_of_update(estate, info);
            if !is_unchanged(&state.target, row, version, strength, command)
                || !triggers::fire_before_update(state.node, estate, info, old, new)
            {
                return std::ptr::null_mut();
            }
        }
        (*new).tts_tableOid = state.target.oid();
        let constraints = (*(*new).tts_tupleDescriptor).constr;
        if !constraints.is_null() && (*constraints).has_generated_stored {
            compute_stored_generated(info, estate, new, pg_sys::CmdType::CMD_UPDATE);
        }
        modify::check(estate, info, new, false);
        match state
            .target
            .update(row, version, tuple::form(new), command, None)
        {
            Fate::Done(version) => {
                state.show(info, new, row, version);
                if !descriptor.is_null() {
                    triggers::fire_after_update(estate, info, old, new);
                    state
                        .hidden
                        .hide(&raw mut (*descriptor).trig_insert_after_row);
                }
                show_xmax(info, new, pg_sys::GetCurrentTransactionId());
                new
            }
            Fate::Skip => std::ptr::null_mut(),
            Fate::Newer(_) => unreachable!("it is locked"),
        }
    }
}

/// Gives the row shown to RETURNING an `xmax`, by which programs tell rows that were inserted (`xmax = 0`) from updated ones: the new state of a heap row
/// that was locked for the update has the transaction's id there, and a copy of ours has none.
unsafe fn show_xmax(
    info: *mut pg_sys::ResultRelInfo,
    slot: *mut pg_sys::TupleTableSlot,
    xmax: pg_sys::TransactionId,
) {
    // SAFETY: with RETURNING a heap-tuple slot owns a copy (`Modify::show`).
    unsafe {
        if !(*info).ri_projectReturning.is_null()
            && std::ptr::eq((*slot).tts_ops, &raw const pg_sys::TTSOpsHeapTuple)
        {
            let shown = (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple;
            (*(*shown).t_data).t_choice.t_heap.t_xmax = xmax;
        }
    }
}
