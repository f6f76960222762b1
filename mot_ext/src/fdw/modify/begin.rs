//! Planning and beginning INSERT, UPDATE and DELETE row by row: which columns tell the rows, whether it is planned for triggers, the state of a result relation.
//!
//! The state is stored in the result relation (`ri_FdwState`) and goes with the query's memory context. Only what is here makes one.
use super::Modify;
use crate::clock::PgSnapshot;
use crate::errors;
use crate::fdw::triggers::{self, Hidden, Planned};
use crate::fdw::write::Target;
use crate::fdw::{private, routing, tuple};
use crate::pg::version;
use crate::xact;
use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use std::cell::Cell;

const IDENTITY: &std::ffi::CStr = c"ctid";

pub unsafe fn add_foreign_update_targets(
    root: *mut pg_sys::PlannerInfo,
    rti: pg_sys::Index,
    _entry: *mut pg_sys::RangeTblEntry,
    _relation: pg_sys::Relation,
) {
    // SAFETY: the planner's own structures; core copies the name.
    unsafe {
        let attribute = pg_sys::SelfItemPointerAttributeNumber as i16;
        let var = pg_sys::makeVar(
            rti as i32,
            attribute,
            pg_sys::TIDOID,
            -1,
            pg_sys::InvalidOid,
            0,
        );
        pg_sys::add_row_identity_var(root, var, rti, IDENTITY.as_ptr());
        let query = &*(*root).parse;
        if query.commandType == pg_sys::CmdType::CMD_DELETE && query.resultRelation != rti as i32 {
            // The whole row, as core names it for UPDATE and for tables with triggers: of a DELETE from several it wants it of all, if one of them has triggers.
            let row = pg_sys::makeVar(rti as i32, 0, pg_sys::RECORDOID, -1, pg_sys::InvalidOid, 0);
            pg_sys::add_row_identity_var(root, row, rti, c"wholerow".as_ptr());
        }
    }
}

/// An INSERT's plan is told by its serial; UPDATE and DELETE row by row remember whether they were planned for row triggers.
pub unsafe fn plan_foreign_modify(
    root: *mut pg_sys::PlannerInfo,
    plan: *mut pg_sys::ModifyTable,
    rti: pg_sys::Index,
    _number: std::ffi::c_int,
) -> *mut pg_sys::List {
    // SAFETY: the planner's own node; a list in its memory context.
    unsafe {
        refuse_old_values(plan);
        if (*plan).operation == pg_sys::CmdType::CMD_INSERT {
            return private::encode_row_by_row(Planned::none());
        }
        let entry = *(*root).simple_rte_array.add(rti as usize);
        // The planner has locked it.
        let relation = pg_sys::table_open((*entry).relid, pg_sys::NoLock as i32);
        let planned = Planned::of(relation, (*plan).operation);
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        private::encode_row_by_row(planned)
    }
}

/// Core takes what it gets back from INSERT for new, and gives NULLs for the old values of a row that was
/// updated.
unsafe fn refuse_old_values(plan: *const pg_sys::ModifyTable) {
    // SAFETY: a planned node.
    unsafe {
        if (*plan).onConflictAction == pg_sys::OnConflictAction::ONCONFLICT_UPDATE
            && version::returns_old_values((*plan).returningLists)
        {
            errors::unsupported(
                "old values in RETURNING of INSERT ... ON CONFLICT DO UPDATE on memory-optimized tables",
                "Return the new values only, or read the row before, with SELECT ... FOR UPDATE.",
            );
        }
    }
}

unsafe fn begin(node: *mut pg_sys::ModifyTableState, info: *mut pg_sys::ResultRelInfo) {
    // SAFETY: an initialized result relation, open and locked; the node is a ModifyTable's, or COPY's stand-in without a plan.
    unsafe {
        routing::show_indexes((*info).ri_RelationDesc);
        let estate = (*node).ps.state;
        let plan = (*node).ps.plan.cast::<pg_sys::ModifyTable>();
        let mut identity = 0;
        let mut conflict = pg_sys::OnConflictAction::ONCONFLICT_NONE;
        if !plan.is_null() {
            conflict = (*plan).onConflictAction;
            let is_insert = (*plan).operation == pg_sys::CmdType::CMD_INSERT;
            let source = (*plan).plan.lefttree;
            if !is_insert && !source.is_null() {
                identity =
                    pg_sys::ExecFindJunkAttributeInTlist((*source).targetlist, IDENTITY.as_ptr());
            }
        }
        let snapshot = (*estate).es_snapshot;
        let fires_before =
            !plan.is_null() && triggers::take_before((*info).ri_TrigDesc, (*plan).operation);
        let state = Modify {
            target: Target::new((*info).ri_RelationDesc),
            node,
            snapshot: (!snapshot.is_null()).then(|| PgSnapshot::new(snapshot)),
            conflict,
            identity,
            tuple: tuple::empty(),
            fires_before,
            generated: None,
            strength: Cell::new(None),
            hidden: Hidden::none(),
            copy_command: plan.is_null().then(xact::command_id),
        };
        let state = PgMemoryContexts::For((*estate).es_query_cxt).leak_and_drop_on_delete(state);
        (*info).ri_FdwState = state.cast();
        keep_indexes_closed(info, (*estate).es_query_cxt);
    }
}

/// Makes core believe that the relation's indexes are open. It would open each for every statement, which we never need, and
/// refuse ON CONFLICT because they are no btrees.
unsafe fn keep_indexes_closed(info: *mut pg_sys::ResultRelInfo, context: pg_sys::MemoryContext) {
    // SAFETY: core looks only whether the array is there, and walks `ri_NumIndices` (0) entries of it.
    unsafe {
        if (*info).ri_IndexRelationDescs.is_null() {
            (*info).ri_NumIndices = 0;
            (*info).ri_IndexRelationDescs =
                pg_sys::MemoryContextAllocZero(context, size_of::<pg_sys::Relation>()).cast();
        }
    }
}

/// What `plan_foreign_modify` said of this relation; NULL: nothing. Not the list that Begin is handed: 18 picks that by the relation's number among those
/// that pruning left, from lists that have all of them, and so hands over a neighbour's.
unsafe fn private_of(
    plan: *const pg_sys::ModifyTable,
    info: *const pg_sys::ResultRelInfo,
) -> *const pg_sys::List {
    // SAFETY: two lists of the plan side by side, of relations and of what was planned for them.
    unsafe {
        let (relations, lists) = ((*plan).resultRelations, (*plan).fdwPrivLists);
        let wanted = (*info).ri_RangeTableIndex as i32;
        if relations.is_null() || lists.is_null() {
            return std::ptr::null();
        }
        (0..(*relations).length.min((*lists).length) as usize)
            .find(|at| (*(*relations).elements.add(*at)).int_value == wanted)
            .map_or(std::ptr::null(), |at| {
                (*(*lists).elements.add(at)).ptr_value.cast_const().cast()
            })
    }
}

pub unsafe fn begin_foreign_modify(
    node: *mut pg_sys::ModifyTableState,
    info: *mut pg_sys::ResultRelInfo,
    _private: *mut pg_sys::List,
    _subplan: std::ffi::c_int,
    flags: std::ffi::c_int,
) {
    if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY == 0 {
        // SAFETY: as core calls it: what plan_foreign_modify gave for an open relation.
        unsafe {
            let plan = (*node).ps.plan.cast::<pg_sys::ModifyTable>();
            let private = private_of(plan, info);
            if private::serial(private).is_none() {
                // The target came under another kind (`relation_info`): core planned it without us.
                refuse_old_values(plan);
            }
            private::planned_triggers(private).check((*info).ri_RelationDesc, (*plan).operation);
            begin(node, info);
        }
    }
}

/// COPY, and a partition that a row is routed to. Of an UPDATE that changes the partition's own rows, too, it may have its state already, with
/// triggers hidden from core until the next row.
pub unsafe fn begin_foreign_insert(
    node: *mut pg_sys::ModifyTableState,
    info: *mut pg_sys::ResultRelInfo,
) {
    // SAFETY: as core calls it.
    unsafe {
        if (*info).ri_FdwState.is_null() {
            begin(node, info);
        } else {
            routing::show_indexes((*info).ri_RelationDesc);
        }
    }
}

/// Nothing to do: the state goes with the query's memory context.
pub unsafe fn end_foreign_modify(_estate: *mut pg_sys::EState, _info: *mut pg_sys::ResultRelInfo) {}
