//! INSERT, UPDATE and DELETE row by row: the general path, with triggers, joins, partitions, views, COPY.
//!
//! A row to change is known by its `ctid`, which is its slot. What the statement saw of it is what its snapshot sees. If another
//! transaction changed the row meanwhile, READ COMMITTED evaluates the statement again over its newest state (EvalPlanQual, with
//! the state core made for heap tables), and the new row is computed from that.
//!
//! Core checks neither NOT NULL nor CHECK nor partition bounds for foreign tables, nor the policies of a parent that the row comes by: that happens
//! here, before a row is stored (`check`).
mod before;
mod begin;
mod check;

use super::triggers::{self, Hidden};
use super::write::{Fate, Inserted, Target};
use super::{tuple, upsert};
use crate::clock::PgSnapshot;
use crate::errors;
use crate::executor::expressions::per_tuple_memory;
use crate::pg::{generated, version};
use mot_engine::{CommandId, LockStrength, Slot, VersionRef};
use pgrx::pg_sys;
use std::cell::Cell;

pub use before::hide_generated;
pub use begin::{
    add_foreign_update_targets, begin_foreign_insert, begin_foreign_modify, end_foreign_modify,
    plan_foreign_modify,
};
pub use check::check;
use check::{check_policies, compute_generated};

/// One result relation of a statement.
pub struct Modify {
    pub target: Target,
    pub node: *mut pg_sys::ModifyTableState,
    pub snapshot: Option<PgSnapshot<'static>>,
    pub conflict: pg_sys::OnConflictAction::Type,
    /// Position of the row's identity in the plan's rows; 0 for INSERT.
    identity: i16,
    /// The row as changed, or as deleted, where nobody looks at it.
    tuple: pg_sys::HeapTupleData,
    /// Of BEFORE row triggers, which core does not see (`before`).
    fires_before: bool,
    /// Of an UPDATE with such triggers: core would compute the columns before they have run.
    generated: Option<generated::Hidden>,
    /// Of the lock ahead of an UPDATE, once a row has needed it (`strength_of_update`).
    strength: Cell<Option<LockStrength>>,
    pub hidden: Hidden,
    /// Of COPY, which has no plan and sets no command in its executor state: the command as it began. Statements of triggers come after it.
    copy_command: Option<CommandId>,
}

unsafe fn state<'a>(info: *mut pg_sys::ResultRelInfo) -> &'a mut Modify {
    // SAFETY: Begin stored it; it lives as long as the query's memory context.
    unsafe { &mut *(*info).ri_FdwState.cast::<Modify>() }
}

impl Modify {
    /// The command that stamps the statement's writes.
    pub fn command(&self, estate: *mut pg_sys::EState) -> CommandId {
        // SAFETY: live executor structures.
        unsafe {
            self.copy_command
                .unwrap_or(CommandId((*estate).es_output_cid))
        }
    }

    /// The row a row of the plan speaks of, and what the statement saw of it.
    unsafe fn identify(
        &self,
        plan_slot: *mut pg_sys::TupleTableSlot,
    ) -> Option<(Slot, VersionRef)> {
        // SAFETY: the plan's row has the identity at this position, put there by add_foreign_update_targets.
        unsafe {
            if (*plan_slot).tts_nvalid < self.identity {
                pg_sys::slot_getsomeattrs_int(plan_slot, i32::from(self.identity));
            }
            let at = self.identity as usize - 1;
            if *(*plan_slot).tts_isnull.add(at) {
                return None;
            }
            let tid = *(*(*plan_slot).tts_values.add(at)).cast_mut_ptr::<pg_sys::ItemPointerData>();
            let slot = tuple::slot_of(tid)?;
            let target = &self.target;
            let seen = target
                .session
                .visible(target.table, slot, self.snapshot.as_ref()?)?;
            Some((slot, seen))
        }
    }

    /// The row lock ahead of an UPDATE that is not known yet in full (its triggers are to run, or it is that of ON CONFLICT): by the columns that the statement names, as for a heap row.
    /// If one is of a key, nobody may hold on to that. Core copies sets of columns to tell it, so it is asked once.
    pub unsafe fn strength_of_update(
        &self,
        estate: *mut pg_sys::EState,
        info: *mut pg_sys::ResultRelInfo,
    ) -> LockStrength {
        if let Some(known) = self.strength.get() {
            return known;
        }
        // SAFETY: a running statement's result relation, whose index columns core knows.
        let strength = match unsafe { pg_sys::ExecUpdateLockMode(estate, info) } {
            pg_sys::LockTupleMode::LockTupleExclusive => LockStrength::Update,
            _ => LockStrength::NoKeyUpdate,
        };
        self.strength.set(Some(strength));
        strength
    }

    /// Computes the generated columns of a new row, hidden from core or not.
    unsafe fn compute_generated(
        &self,
        estate: *mut pg_sys::EState,
        info: *mut pg_sys::ResultRelInfo,
        slot: *mut pg_sys::TupleTableSlot,
        command: pg_sys::CmdType::Type,
    ) {
        // SAFETY: the initialized result relation of this state, and a filled slot of its row type.
        unsafe {
            match &self.generated {
                Some(generated) => generated.compute(info, estate, slot, command),
                None => compute_generated(estate, info, slot, command),
            }
        }
    }

    /// A row as it was before a change, for triggers and RETURNING: in the memory of one row.
    unsafe fn old_row(
        &self,
        estate: *mut pg_sys::EState,
        row: Slot,
        seen: VersionRef,
    ) -> pg_sys::HeapTuple {
        // SAFETY: the running statement's state; the version stays until we commit.
        unsafe {
            let old = pg_sys::MemoryContextSwitchTo(per_tuple_memory(estate));
            let copy = tuple::copy(row, seen, self.target.oid());
            pg_sys::MemoryContextSwitchTo(old);
            copy
        }
    }

    /// Shows in a slot the version that its values became, or the deleted one, so that RETURNING,
    /// triggers and a view's CHECK OPTION see the row's system columns. Only a heap-tuple slot can;
    /// another keeps its values.
    ///
    /// Where anybody looks, the slot owns a copy. RETURNING may be the first to read a WITH part
    /// that changes rows, and each row of that part empties the memory of one row.
    pub unsafe fn show(
        &mut self,
        info: *mut pg_sys::ResultRelInfo,
        slot: *mut pg_sys::TupleTableSlot,
        row: Slot,
        version: VersionRef,
    ) {
        // SAFETY: an initialized result relation and its slot; the version is our own and stays until we commit.
        unsafe {
            if !std::ptr::eq((*slot).tts_ops, &raw const pg_sys::TTSOpsHeapTuple) {
                (*slot).tts_tid = crate::wait::tid_of(row);
                return;
            }
            let nobody_looks = (*info).ri_projectReturning.is_null()
                && (*info).ri_TrigDesc.is_null()
                && (*info).ri_WithCheckOptions.is_null();
            if nobody_looks {
                tuple::point(&mut self.tuple, row, version, self.target.oid());
                tuple::store(slot, &raw mut self.tuple);
            } else {
                tuple::store_copy(slot, row, version, self.target.oid());
            }
        }
    }

    /// Evaluates the statement again over the newest state of a row; None: it does not concern the row any more.
    unsafe fn evaluate_again(
        &self,
        info: *mut pg_sys::ResultRelInfo,
        row: Slot,
        version: VersionRef,
    ) -> Option<*mut pg_sys::TupleTableSlot> {
        // SAFETY: the ModifyTable node's own re-evaluation state, which core initialized; the version is locked by us.
        unsafe {
            let epq = &raw mut (*self.node).mt_epqstate;
            let rti = (*info).ri_RangeTableIndex;
            let relation = (*info).ri_RelationDesc;
            let input = pg_sys::EvalPlanQualSlot(epq, relation, rti);
            tuple::store_copy(input, row, version, self.target.oid());
            let output = pg_sys::EvalPlanQual(epq, relation, rti, input);
            let is_empty =
                output.is_null() || (*output).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0;
            (!is_empty).then_some(output)
        }
    }

    /// The new row over the newest state of the old one, of what re-evaluation gave; its generated columns are the old one's.
    unsafe fn new_row(
        &self,
        info: *mut pg_sys::ResultRelInfo,
        row: Slot,
        version: VersionRef,
        output: *mut pg_sys::TupleTableSlot,
    ) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: an UPDATE's result relation: core made its old-tuple slot and projection before it called us.
        unsafe {
            let old_slot = (*info).ri_oldTupleSlot;
            tuple::store_copy(old_slot, row, version, self.target.oid());
            let slot = pg_sys::ExecGetUpdateNewTuple(info, output, old_slot);
            (*slot).tts_tableOid = self.target.oid();
            slot
        }
    }
}

pub unsafe fn exec_foreign_insert(
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    slot: *mut pg_sys::TupleTableSlot,
    _plan_slot: *mut pg_sys::TupleTableSlot,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as core calls it; the image lives in per-tuple memory until the engine has copied it.
    unsafe {
        let state = state(info);
        state.hidden.show();
        let table = state.target.oid();
        // COPY: a BEFORE row trigger's new row does not say its table, and core has computed the generated columns, which may ask for it.
        let is_unsaid = std::mem::replace(&mut (*slot).tts_tableOid, table) != table;
        // Of an UPDATE that moves a row here, and changes rows here: core may have passed over them.
        let is_passed_over = generated::Hidden::HIDES_INSERTS && state.generated.is_some();
        if is_unsaid || is_passed_over {
            state.compute_generated(estate, info, slot, pg_sys::CmdType::CMD_INSERT);
        }
        // An UPDATE has taken the row out of another partition.
        let operation = (*state.node).operation;
        let is_moved = operation == pg_sys::CmdType::CMD_UPDATE;
        if operation == pg_sys::CmdType::CMD_MERGE && !(*info).ri_WithCheckOptions.is_null() {
            // Which of its actions has made the row, and so which policies it is held to, is not told.
            errors::unsupported(
                "MERGE actions that put a row into a memory-optimized partition of a table with row security",
                "Use INSERT ... ON CONFLICT, or UPDATE and INSERT.",
            );
        }
        check_policies(estate, info, slot, !is_moved);
        check(estate, info, slot, true);
        let old = pg_sys::MemoryContextSwitchTo(per_tuple_memory(estate));
        let body = tuple::form(slot);
        let result = if state.conflict == pg_sys::OnConflictAction::ONCONFLICT_NONE {
            match state.target.insert(body, state.command(estate), None) {
                Inserted::Done(row, version) => {
                    state.show(info, slot, row, version);
                    slot
                }
                Inserted::Duplicate => std::ptr::null_mut(),
            }
        } else {
            upsert::insert_or_resolve(estate, info, state, slot, body)
        };
        pg_sys::MemoryContextSwitchTo(old);
        result
    }
}

pub unsafe fn exec_foreign_update(
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    slot: *mut pg_sys::TupleTableSlot,
    plan_slot: *mut pg_sys::TupleTableSlot,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as core calls it.
    unsafe {
        let state = state(info);
        let Some((row, scanned)) = state.identify(plan_slot) else {
            return std::ptr::null_mut();
        };
        state.hidden.show();
        let mut slot = slot;
        let Some(mut seen) = state.before_update(estate, info, row, scanned, &mut slot) else {
            return std::ptr::null_mut();
        };
        loop {
            (*slot).tts_tableOid = state.target.oid();
            check_policies(estate, info, slot, false);
            check(estate, info, slot, false);
            let old = pg_sys::MemoryContextSwitchTo(per_tuple_memory(estate));
            let body = tuple::form(slot);
            let command = state.command(estate);
            let fate = state.target.update(row, seen, body, command, None);
            pg_sys::MemoryContextSwitchTo(old);
            match fate {
                Fate::Done(new) => {
                    state.show(info, slot, row, new);
                    if version::returns_old(info) {
                        // What core put there has the columns alone.
                        tuple::store_copy((*info).ri_oldTupleSlot, row, seen, state.target.oid());
                    }
                    if seen != scanned && !(*info).ri_TrigDesc.is_null() {
                        let old = state.old_row(estate, row, seen);
                        triggers::fire_after_update(estate, info, old, slot);
                        let shown = &raw mut (*(*info).ri_TrigDesc).trig_update_after_row;
                        state.hidden.hide(shown);
                    }
                    return slot;
                }
                Fate::Skip => return std::ptr::null_mut(),
                Fate::Newer(version) => {
                    seen = version;
                    let Some(output) = state.evaluate_again(info, row, version) else {
                        return std::ptr::null_mut();
                    };
                    slot = state.new_row(info, row, version, output);
                    state.compute_generated(estate, info, slot, pg_sys::CmdType::CMD_UPDATE);
                }
            }
        }
    }
}

pub unsafe fn exec_foreign_delete(
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    slot: *mut pg_sys::TupleTableSlot,
    plan_slot: *mut pg_sys::TupleTableSlot,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as core calls it; the slot is a table slot of a foreign table, so of the heap kind.
    unsafe {
        let state = state(info);
        let Some((row, scanned)) = state.identify(plan_slot) else {
            return std::ptr::null_mut();
        };
        state.hidden.show();
        let Some(mut seen) = state.before_delete(estate, info, row, scanned) else {
            return std::ptr::null_mut();
        };
        loop {
            match state.target.delete(row, seen, state.command(estate)) {
                Fate::Done(_) => {
                    state.show(info, slot, row, seen);
                    if seen != scanned && !(*info).ri_TrigDesc.is_null() {
                        let old = state.old_row(estate, row, seen);
                        triggers::fire_after_delete(estate, info, old);
                        let shown = &raw mut (*(*info).ri_TrigDesc).trig_delete_after_row;
                        state.hidden.hide(shown);
                    }
                    return slot;
                }
                Fate::Skip => return std::ptr::null_mut(),
                Fate::Newer(version) => {
                    seen = version;
                    if state.evaluate_again(info, row, version).is_none() {
                        return std::ptr::null_mut();
                    }
                }
            }
        }
    }
}
