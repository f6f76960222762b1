//! Foreign keys of a table that is written to: their triggers are queued and fired by core's own
//! functions.
//!
//! They are the only row triggers of a table that a compiled statement may write to. They check
//! rows after the statement, and change none of its rows. An execution that may queue something
//! opens a level of core's queue at Start, and has it fired at Finish, as `standard_ExecutorStart`
//! and `standard_ExecutorFinish` do. It does neither if its caller does so itself
//! (`EXEC_FLAG_SKIP_TRIGGERS`).
use super::frame::within;
use super::parent_check;
use crate::pg::{self, version};
use crate::transaction::relation;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::null_mut;

/// Which changes of a table's rows the triggers of its foreign keys may check.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ForeignKeys {
    inserts: bool,
    updates: bool,
    deletes: bool,
}

impl ForeignKeys {
    /// Of an open relation; `None` if it has triggers of another kind.
    pub unsafe fn of(relation: pg_sys::Relation) -> Option<ForeignKeys> {
        // SAFETY: an open relation (caller), whose triggers are an array with its length.
        unsafe {
            let Some(triggers) = (*relation).trigdesc.as_ref() else {
                return Some(ForeignKeys::default());
            };
            let all = std::slice::from_raw_parts(triggers.triggers, triggers.numtriggers as usize);
            all.iter().all(is_of_foreign_key).then_some(ForeignKeys {
                inserts: triggers.trig_insert_after_row,
                updates: triggers.trig_update_after_row,
                deletes: triggers.trig_delete_after_row,
            })
        }
    }

    /// Whether they check what an operation does.
    pub fn look_at(self, operation: pg_sys::CmdType::Type) -> bool {
        match operation {
            pg_sys::CmdType::CMD_INSERT => self.inserts,
            pg_sys::CmdType::CMD_UPDATE => self.updates,
            pg_sys::CmdType::CMD_DELETE => self.deletes,
            _ => false,
        }
    }
}

/// Whether a trigger is one that core made for a foreign key.
fn is_of_foreign_key(trigger: &pg_sys::Trigger) -> bool {
    // SAFETY: a comparison of a number.
    let kind = unsafe { pg_sys::RI_FKey_trigger_type(trigger.tgfoid) };
    kind != pg_sys::RI_TRIGGER_NONE as c_int && trigger.tgisinternal && trigger.tgqual.is_null()
}

/// The queue of one execution.
pub struct Queue {
    /// The statement's changes are checked.
    is_used: bool,
    /// This execution has opened a level, and has it fired.
    is_open: Cell<bool>,
    /// This execution has examined what is kept.
    is_settled: Cell<bool>,
    /// What core's functions ask about the table; NULL before the first row that is queued.
    info: Cell<*mut pg_sys::ResultRelInfo>,
    /// Where that is kept from one execution to the next.
    kept: Cell<Option<Kept>>,
}

/// What core's functions ask about a table, made once: it has a copy of the table's triggers.
#[derive(Clone, Copy)]
struct Kept {
    /// `transaction::relation::generation` when it was made: a change of the triggers moves that
    /// on.
    generation: u64,
    /// All of it is here.
    memory: pg_sys::MemoryContext,
    /// As core makes it.
    fresh: *mut pg_sys::ResultRelInfo,
    /// What an execution uses, and core fills.
    used: *mut pg_sys::ResultRelInfo,
}

impl Kept {
    /// Of an open table, in a memory context below the statement's.
    unsafe fn make(of: Of) -> Kept {
        let generation = relation::generation();
        // SAFETY: the statement's context and its open table.
        unsafe {
            let memory = pg::small_context(of.context, c"mot triggers of a statement");
            let room = || {
                let info = pg_sys::palloc0(size_of::<pg_sys::ResultRelInfo>());
                info.cast::<pg_sys::ResultRelInfo>()
            };
            let (fresh, used) = within(memory, || {
                let fresh = room();
                (*fresh).type_ = pg_sys::NodeTag::T_ResultRelInfo;
                pg_sys::InitResultRelInfo(fresh, of.table, of.position, null_mut(), 0);
                (fresh, room())
            });
            Kept {
                generation,
                memory,
                fresh,
                used,
            }
        }
    }

    /// As core makes it, for another execution.
    unsafe fn renew(self, of: Of) -> *mut pg_sys::ResultRelInfo {
        // SAFETY: two structures of this memory. What core has put into the one is in memory of
        // the execution that is over.
        unsafe {
            self.used.copy_from_nonoverlapping(self.fresh, 1);
            let info = &mut *self.used;
            info.ri_RelationDesc = of.table;
            if let Some(triggers) = info.ri_TrigDesc.as_ref() {
                info.ri_TrigFunctions
                    .write_bytes(0, triggers.numtriggers as usize);
            }
            within((*of.estate).es_query_cxt, || parent_check::take_over(info));
        }
        self.used
    }
}

/// What a queue needs of the statement.
#[derive(Clone, Copy)]
pub struct Of {
    /// The statement's memory.
    pub context: pg_sys::MemoryContext,
    pub estate: *mut pg_sys::EState,
    pub table: pg_sys::Relation,
    /// The table's place in the range table.
    pub position: u32,
}

impl Queue {
    /// For a statement whose changes are checked, or not.
    pub fn new(is_used: bool) -> Queue {
        Queue {
            is_used,
            is_open: Cell::new(false),
            is_settled: Cell::new(false),
            info: Cell::new(null_mut()),
            kept: Cell::new(None),
        }
    }

    /// Whether changes are to be queued.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.is_used
    }

    /// Begins an execution with these flags.
    pub unsafe fn start(&self, flags: c_int) {
        self.info.set(null_mut());
        let is_fired = self.is_used && flags & pg_sys::EXEC_FLAG_SKIP_TRIGGERS as c_int == 0;
        self.is_open.set(is_fired);
        if is_fired {
            // SAFETY: in a transaction; an abort closes the level.
            unsafe { pg_sys::AfterTriggerBeginQuery() };
        }
    }

    /// Whether there is something to be fired at Finish.
    pub fn take_level(&self) -> bool {
        self.is_open.replace(false)
    }

    /// Queues what checks a new row.
    pub unsafe fn inserted(&self, of: Of, row: *mut pg_sys::TupleTableSlot) {
        // SAFETY: the caller's state, and a slot of the table's kind with the row and its tuple id.
        unsafe {
            let info = self.info(of);
            pg_sys::ExecARInsertTriggers(of.estate, info, row, null_mut(), null_mut());
        }
    }

    /// Queues what checks a changed row, if the change concerns a foreign key.
    pub unsafe fn updated(
        &self,
        of: Of,
        old: *mut pg_sys::TupleTableSlot,
        new: *mut pg_sys::TupleTableSlot,
    ) {
        // SAFETY: as for `inserted`.
        unsafe {
            // A copy: what checks the rows may open tables, and run a user's cast. The relation
            // cache then replaces an open table's own triggers.
            let triggers = (*self.kept(of).fresh).ri_TrigDesc;
            if !concerns(triggers, of.table, old, new) {
                return;
            }
            let mut id = (*old).tts_tid;
            let info = self.info(of);
            pg_sys::ExecARUpdateTriggers(
                of.estate,
                info,
                null_mut(),
                null_mut(),
                &raw mut id,
                null_mut(),
                new,
                null_mut(),
                null_mut(),
                false,
            );
        }
    }

    /// Queues what checks a deleted row.
    pub unsafe fn deleted(&self, of: Of, old: *mut pg_sys::TupleTableSlot) {
        // SAFETY: as for `inserted`.
        unsafe {
            let mut id = (*old).tts_tid;
            let info = self.info(of);
            pg_sys::ExecARDeleteTriggers(
                of.estate,
                info,
                &raw mut id,
                null_mut(),
                null_mut(),
                false,
            );
        }
    }

    /// What core's functions ask about the table, from the first row on that an execution queues.
    unsafe fn info(&self, of: Of) -> *mut pg_sys::ResultRelInfo {
        let known = self.info.get();
        if !known.is_null() {
            return known;
        }
        // SAFETY: the statement's executor state, whose memory is that of the execution, and its
        // open table.
        unsafe {
            let info = self.kept(of).renew(of);
            within((*of.estate).es_query_cxt, || {
                let opened = (*of.estate).es_opened_result_relations;
                (*of.estate).es_opened_result_relations = pg_sys::lappend(opened, info.cast());
            });
            version::give_permissions(of.estate);
            self.info.set(info);
            info
        }
    }

    /// What is kept from one execution to the next: the same in all of an execution. (No trigger
    /// changes under its lock.)
    unsafe fn kept(&self, of: Of) -> Kept {
        let known = self.kept.get();
        if let Some(kept) = known
            && (self.is_settled.get() || kept.generation == relation::generation())
        {
            self.is_settled.set(true);
            return kept;
        }
        self.kept.set(None);
        // SAFETY: the statement's open table. Between two executions no code uses what is kept.
        let kept = unsafe {
            if let Some(stale) = known {
                pg_sys::MemoryContextDelete(stale.memory);
            }
            Kept::make(of)
        };
        self.kept.set(Some(kept));
        self.is_settled.set(true);
        kept
    }

    /// Gives back what core's functions have opened for an execution.
    pub unsafe fn end(&self, estate: *mut pg_sys::EState) {
        // SAFETY: the statement's executor state.
        unsafe {
            let state = &mut *estate;
            if !state.es_opened_result_relations.is_null()
                || !state.es_trig_target_relations.is_null()
            {
                pg_sys::ExecCloseResultRelations(estate);
            }
            if !state.es_tupleTable.is_null() {
                pg_sys::ExecResetTupleTable(state.es_tupleTable, false);
            }
        }
        self.forget(estate);
    }

    /// After an execution that failed: PostgreSQL has given everything back.
    pub fn forget(&self, estate: *mut pg_sys::EState) {
        // SAFETY: the statement's executor state, whose lists' memory is the execution's.
        let state = unsafe { &mut *estate };
        state.es_opened_result_relations = null_mut();
        state.es_trig_target_relations = null_mut();
        state.es_tupleTable = null_mut();
        self.is_open.set(false);
        self.is_settled.set(false);
        self.info.set(null_mut());
    }
}

/// Fires what was queued, as `standard_ExecutorFinish`. Runs any SQL: no caller may hold a
/// reference to the statement meanwhile.
pub unsafe fn fire(estate: *mut pg_sys::EState) {
    // SAFETY: the executor state of an execution that opened a level.
    unsafe {
        within((*estate).es_query_cxt, || {
            pg_sys::AfterTriggerEndQuery(estate)
        })
    }
}

/// Whether a foreign key has to check a change of a row: core's own question, by which it does
/// not queue most.
unsafe fn concerns(
    triggers: *const pg_sys::TriggerDesc,
    table: pg_sys::Relation,
    old: *mut pg_sys::TupleTableSlot,
    new: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: an open table with triggers, of which these are a copy, and two rows of it.
    unsafe {
        let triggers = &*triggers;
        (0..triggers.numtriggers as usize).any(|at| {
            let one = triggers.triggers.add(at);
            if u32::from((*one).tgtype as u16) & pg_sys::TRIGGER_TYPE_UPDATE == 0 {
                return false;
            }
            match pg_sys::RI_FKey_trigger_type((*one).tgfoid) as u32 {
                pg_sys::RI_TRIGGER_PK => {
                    pg_sys::RI_FKey_pk_upd_check_required(one, table, old, new)
                }
                _ => pg_sys::RI_FKey_fk_upd_check_required(one, table, old, new),
            }
        })
    }
}
