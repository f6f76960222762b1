//! BEFORE row triggers of UPDATE and DELETE: the lock ahead of them, and the generated columns behind them.
//!
//! Core would fire them before it calls the wrapper, over the row as the plan's scan saw it. So they are hidden from it (`triggers::take_before`) and fired here, in the order in which
//! trigger.c comes to a heap row (`GetTupleForTrigger`). The row is locked behind all joins: one that they drop is neither locked nor waited for. If somebody has changed it since
//! the statement saw it, REPEATABLE READ raises 40001, and READ COMMITTED evaluates the statement again (EvalPlanQual) over its newest state, which the triggers then see as OLD. They
//! are not fired for a row that does not fit any more, and once for a row that a join gives several times.
use super::{Modify, state};
use crate::fdw::lock_rows::{self, For, Outcome};
use crate::fdw::private::items;
use crate::fdw::triggers;
use crate::fdw::write::pass_over_own_change;
use crate::pg::generated;
use crate::wait::WaitPolicy;
use mot_engine::{LockStrength, Slot, VersionRef};
use pgrx::pg_sys;

/// Hides the generated columns of the target `relation` from core where BEFORE row triggers come first: before a row of it is changed, when all of the statement's
/// nodes are made.
pub unsafe fn hide_generated(estate: *mut pg_sys::EState, relation: pg_sys::Oid) {
    // SAFETY: the running statement's; the relation is one of ours, so what has a state has this module's.
    unsafe {
        for info in items::<pg_sys::ResultRelInfo>((*estate).es_opened_result_relations) {
            let is_it = (*(*info).ri_RelationDesc).rd_id == relation;
            if is_it && !(*info).ri_usesFdwDirectModify && !(*info).ri_FdwState.is_null() {
                let state = state(info);
                let is_update = (*state.node).operation == pg_sys::CmdType::CMD_UPDATE;
                if is_update && state.fires_before && state.generated.is_none() {
                    state.generated = generated::Hidden::of(info, estate);
                }
            }
        }
    }
}

impl Modify {
    /// Fires BEFORE UPDATE row triggers, if there are any, over a row that the statement saw in the state `seen`: the state that is to be changed, locked, and in `new` what it is to
    /// become. `None`: it is not to be changed.
    pub(super) unsafe fn before_update(
        &self,
        estate: *mut pg_sys::EState,
        info: *mut pg_sys::ResultRelInfo,
        row: Slot,
        seen: VersionRef,
        new: &mut *mut pg_sys::TupleTableSlot,
    ) -> Option<VersionRef> {
        if !self.fires_before {
            return Some(seen);
        }
        // SAFETY: as core calls ExecForeignUpdate: the result relation of this state, and a new row of its type.
        unsafe {
            let mut version = seen;
            // ALTER TABLE takes all triggers away when the statement's nodes are made; the generated columns are hidden all the same.
            if !(*info).ri_TrigDesc.is_null() {
                let strength = self.strength_of_update(estate, info);
                let (locked, again) = self.lock_for_triggers(estate, info, row, seen, strength)?;
                version = locked;
                if let Some(output) = again {
                    *new = self.new_row(info, row, version, output);
                }
                let old = self.old_row(estate, row, version);
                if !triggers::fire_before_update(self.node, estate, info, old, *new) {
                    return None;
                }
            }
            (**new).tts_tableOid = self.target.oid();
            self.compute_generated(estate, info, *new, pg_sys::CmdType::CMD_UPDATE);
            Some(version)
        }
    }

    /// Fires BEFORE DELETE row triggers, if there are any, over a row that the statement saw in the state `seen`: the state that is to be deleted, locked. `None`: it is not to be
    /// deleted.
    pub(super) unsafe fn before_delete(
        &self,
        estate: *mut pg_sys::EState,
        info: *mut pg_sys::ResultRelInfo,
        row: Slot,
        seen: VersionRef,
    ) -> Option<VersionRef> {
        // SAFETY: as core calls ExecForeignDelete: the result relation of this state.
        unsafe {
            if !self.fires_before || (*info).ri_TrigDesc.is_null() {
                return Some(seen);
            }
            let strength = LockStrength::Update;
            let (version, _) = self.lock_for_triggers(estate, info, row, seen, strength)?;
            let old = self.old_row(estate, row, version);
            triggers::fire_before_delete(self.node, estate, info, old).then_some(version)
        }
    }

    /// Locks a row in its newest state. With what the statement gives over that, if it is not the one that it saw. `None`: the row is deleted, does not concern the statement any
    /// more, or was changed by this command already. By one that it triggered is an error, with trigger.c's words for a DELETE, too.
    unsafe fn lock_for_triggers(
        &self,
        estate: *mut pg_sys::EState,
        info: *mut pg_sys::ResultRelInfo,
        row: Slot,
        seen: VersionRef,
        strength: LockStrength,
    ) -> Option<(VersionRef, Option<*mut pg_sys::TupleTableSlot>)> {
        let (policy, purpose) = (WaitPolicy::Block, For::Changing);
        match lock_rows::lock(&self.target, row, seen, strength, policy, purpose) {
            Outcome::Locked(version) if version == seen => Some((seen, None)),
            Outcome::Locked(version) => {
                // SAFETY: the result relation of this state; the version is locked by us.
                let output = unsafe { self.evaluate_again(info, row, version) }?;
                Some((version, Some(output)))
            }
            Outcome::SelfModified(by) => {
                pass_over_own_change(by, self.command(estate), "updated");
                None
            }
            Outcome::Lost => None,
        }
    }
}
