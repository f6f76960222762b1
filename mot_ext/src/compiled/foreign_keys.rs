//! Foreign keys of a table that is written to: their triggers are queued and fired by core's own
//! functions.
//!
//! They are the only row triggers of a table that a compiled statement may write to. They check
//! rows after the statement, and change none of its rows. An execution that may queue something
//! opens a level of core's queue at Start, and has it fired at Finish, as `standard_ExecutorStart`
//! and `standard_ExecutorFinish` do. It does neither if its caller does so itself
//! (`EXEC_FLAG_SKIP_TRIGGERS`).
use super::frame::Row;
use super::parent_check;
use crate::pg::memory::within;
use crate::pg::node::Node;
use crate::pg::relation::Relation;
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
    /// Of an open table; `None` if it has triggers of another kind.
    pub fn of(table: Relation<'_>) -> Option<ForeignKeys> {
        // SAFETY: nothing here accepts messages of invalidations.
        let Some(triggers) = (unsafe { table.triggers() }) else {
            return Some(ForeignKeys::default());
        };
        triggers
            .all()
            .all(is_of_foreign_key)
            .then_some(ForeignKeys {
                inserts: triggers.trig_insert_after_row(),
                updates: triggers.trig_update_after_row(),
                deletes: triggers.trig_delete_after_row(),
            })
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

/// What a trigger's function checks, as core numbers it.
fn kind_of(trigger: Node<'_, pg_sys::Trigger>) -> u32 {
    // SAFETY: a comparison of a number.
    unsafe { pg_sys::RI_FKey_trigger_type(trigger.tgfoid()) as u32 }
}

/// Whether a trigger is one that core made for a foreign key.
fn is_of_foreign_key(trigger: Node<'_, pg_sys::Trigger>) -> bool {
    kind_of(trigger) != pg_sys::RI_TRIGGER_NONE && trigger.tgisinternal() && !trigger.tgqual()
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

/// Room for what core's functions ask about a table, in the current memory context.
fn room() -> *mut pg_sys::ResultRelInfo {
    // SAFETY: memory of the type's size.
    unsafe { pg_sys::palloc0(size_of::<pg_sys::ResultRelInfo>()).cast() }
}

/// What core's functions ask about an open table, as core makes it, in the current memory context.
fn fresh(of: Of<'_>) -> *mut pg_sys::ResultRelInfo {
    let info = room();
    // SAFETY: room for it; the statement's open table.
    unsafe {
        (*info).type_ = pg_sys::NodeTag::T_ResultRelInfo;
        pg_sys::InitResultRelInfo(info, of.table, of.position, null_mut(), 0);
    }
    info
}

impl Kept {
    /// Of an open table, in a memory context below the statement's.
    fn make(of: Of<'_>) -> Kept {
        let generation = relation::generation();
        // SAFETY: the statement's context, in which it lives as long as it is kept.
        let (memory, fresh, used) = unsafe {
            let memory = pg::small_context(of.context, c"mot triggers of a statement");
            let (fresh, used) = within(memory, || (fresh(of), room()));
            (memory, fresh, used)
        };
        Kept {
            generation,
            memory,
            fresh,
            used,
        }
    }

    /// As core makes it, for another execution.
    fn renew(self, of: Of<'_>) -> *mut pg_sys::ResultRelInfo {
        // SAFETY: two structures of this memory, and functions for as many triggers as there are.
        // What core has put into the one is in memory of the execution that is over.
        let info = unsafe {
            self.used.copy_from_nonoverlapping(self.fresh, 1);
            (*self.used).ri_RelationDesc = of.table;
            if let Some(triggers) = (*self.used).ri_TrigDesc.as_ref() {
                let functions = (*self.used).ri_TrigFunctions;
                functions.write_bytes(0, triggers.numtriggers as usize);
            }
            Node::enter(self.used)
        };
        // SAFETY: the executor state's own memory, in which the functions stay until the execution
        // ends. Core has filled none.
        unsafe { within(of.estate.es_query_cxt(), || parent_check::take_over(info)) };
        self.used
    }

    /// The copy of the table's triggers.
    fn triggers<'p>(self) -> Option<Node<'p, pg_sys::TriggerDesc>> {
        // SAFETY: as core makes it. It stays in an execution.
        unsafe { Node::enter(self.fresh).ri_TrigDesc() }
    }
}

/// What a queue needs of the statement that runs.
#[derive(Clone, Copy)]
pub struct Of<'p> {
    /// The statement's memory.
    context: pg_sys::MemoryContext,
    estate: Node<'p, pg_sys::EState>,
    /// It is open.
    table: pg_sys::Relation,
    /// The table's place in the range table.
    position: u32,
}

impl<'p> Of<'p> {
    /// Of a statement's memory, state and table, with the table's place in the range table.
    ///
    /// # Safety
    /// In an execution of the statement, which has the table open. The memory lives as long as its
    /// queue.
    pub unsafe fn new(
        context: pg_sys::MemoryContext,
        estate: Node<'p, pg_sys::EState>,
        (table, position): (pg_sys::Relation, u32),
    ) -> Of<'p> {
        debug_assert!(!table.is_null());
        Of {
            context,
            estate,
            table,
            position,
        }
    }
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
    pub fn start(&self, flags: c_int) {
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
    ///
    /// # Safety
    /// The row is in a slot of the table's kind, with its tuple id.
    pub unsafe fn inserted(&self, of: Of<'_>, row: Row<'_>) {
        let info = self.info(of);
        let (estate, row) = (of.estate.as_ptr(), row.as_ptr());
        // SAFETY: the statement's executor state, what core asks about its open table, and the
        // caller's row.
        unsafe { pg_sys::ExecARInsertTriggers(estate, info, row, null_mut(), null_mut()) };
    }

    /// Queues what checks a changed row, if the change concerns a foreign key.
    ///
    /// # Safety
    /// As for [`Queue::inserted`], for both states.
    pub unsafe fn updated(&self, of: Of<'_>, old: Row<'_>, new: Row<'_>) {
        // A copy: what checks the rows may open tables, and run a user's cast. The relation cache
        // then replaces an open table's own triggers.
        let triggers = self.kept(of).triggers();
        // SAFETY: the open table and its rows, as for `inserted`.
        let concerns = |triggers| unsafe { concerns(triggers, of.table, old, new) };
        if !triggers.is_some_and(concerns) {
            return;
        }
        let mut id = old.tts_tid();
        let info = self.info(of);
        // SAFETY: as for `inserted`.
        unsafe {
            pg_sys::ExecARUpdateTriggers(
                of.estate.as_ptr(),
                info,
                null_mut(),
                null_mut(),
                &raw mut id,
                null_mut(),
                new.as_ptr(),
                null_mut(),
                null_mut(),
                false,
            );
        }
    }

    /// Queues what checks a deleted row.
    ///
    /// # Safety
    /// As for [`Queue::inserted`].
    pub unsafe fn deleted(&self, of: Of<'_>, old: Row<'_>) {
        let mut id = old.tts_tid();
        let (info, estate) = (self.info(of), of.estate.as_ptr());
        let (id, none) = (&raw mut id, null_mut());
        // SAFETY: as for `inserted`.
        unsafe { pg_sys::ExecARDeleteTriggers(estate, info, id, null_mut(), none, false) };
    }

    /// What core's functions ask about the table, from the first row on that an execution queues.
    fn info(&self, of: Of<'_>) -> *mut pg_sys::ResultRelInfo {
        let known = self.info.get();
        if !known.is_null() {
            return known;
        }
        let info = self.kept(of).renew(of);
        // SAFETY: the statement's executor state, whose memory is that of the execution; the list
        // is forgotten with it.
        unsafe {
            within(of.estate.es_query_cxt(), || of.estate.add_target(info));
            version::give_permissions(of.estate.as_ptr());
        }
        self.info.set(info);
        info
    }

    /// What is kept from one execution to the next: the same in all of an execution. (No trigger
    /// changes under its lock.)
    fn kept(&self, of: Of<'_>) -> Kept {
        let known = self.kept.get();
        if let Some(kept) = known
            && (self.is_settled.get() || kept.generation == relation::generation())
        {
            self.is_settled.set(true);
            return kept;
        }
        self.kept.set(None);
        if let Some(stale) = known {
            // SAFETY: between two executions no code uses what is kept.
            unsafe { pg_sys::MemoryContextDelete(stale.memory) };
        }
        let kept = Kept::make(of);
        self.kept.set(Some(kept));
        self.is_settled.set(true);
        kept
    }

    /// Gives back what core's functions have opened for an execution.
    ///
    /// # Safety
    /// In the execution in which they did; no code uses it any more.
    pub unsafe fn end(&self, estate: Node<'_, pg_sys::EState>) {
        // SAFETY: the caller's.
        unsafe { estate.close_trigger_targets() };
        self.forget(estate);
    }

    /// After an execution that failed: PostgreSQL has given everything back. The memory of the
    /// state's lists is the execution's.
    pub fn forget(&self, estate: Node<'_, pg_sys::EState>) {
        estate.forget_trigger_targets();
        self.is_open.set(false);
        self.is_settled.set(false);
        self.info.set(null_mut());
    }
}

/// Fires what was queued, as `standard_ExecutorFinish`. Runs any SQL: no caller may hold a
/// reference to the statement meanwhile.
///
/// # Safety
/// The executor state of an execution that opened a level.
pub unsafe fn fire(estate: Node<'_, pg_sys::EState>) {
    // SAFETY: the caller's; the state's own memory.
    unsafe {
        within(estate.es_query_cxt(), || {
            pg_sys::AfterTriggerEndQuery(estate.as_ptr())
        })
    }
}

/// Whether a foreign key has to check a change of a row: core's own question, by which it does
/// not queue most.
///
/// # Safety
/// The table is open. The triggers are a copy of its own, and the rows are of it, in filled slots.
unsafe fn concerns(
    triggers: Node<'_, pg_sys::TriggerDesc>,
    table: pg_sys::Relation,
    old: Row<'_>,
    new: Row<'_>,
) -> bool {
    let mut of_updates = triggers
        .all()
        .filter(|trigger| u32::from(trigger.tgtype() as u16) & pg_sys::TRIGGER_TYPE_UPDATE != 0);
    let (old, new) = (old.as_ptr(), new.as_ptr());
    of_updates.any(|trigger| {
        let one = trigger.as_ptr();
        // SAFETY: a trigger of the open table, and two rows of it.
        unsafe {
            match kind_of(trigger) {
                pg_sys::RI_TRIGGER_PK => {
                    pg_sys::RI_FKey_pk_upd_check_required(one, table, old, new)
                }
                _ => pg_sys::RI_FKey_fk_upd_check_required(one, table, old, new),
            }
        }
    })
}
