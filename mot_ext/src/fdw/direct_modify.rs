//! UPDATE and DELETE inside the scan node, without a plan row per table row.
//!
//! Taken when the statement changes one table with conditions on that table alone; core rules out row triggers, stored generated
//! columns and WITH CHECK OPTION. The conditions move out of the plan node into `fdw_exprs`: they must hold for the row found, and
//! again for its newest state after a wait, but not for the row as changed, which the node returns for RETURNING. For the same
//! reason the node's own targets become NULLs: assigned expressions are evaluated once per attempt, here.
use super::modify::check;
use super::patch::Patch;
use super::private::{self, Private, cells, items, list};
use super::row_slot;
use super::scan::{Scan, compile, keep};
use super::triggers::Planned;
use super::tuple;
use super::write::{Fate, Target};
use crate::errors;
use crate::executor::expressions::{Value, passes};
use crate::pg::executor::compute_stored_generated;
use crate::pg::{self, version};
#[cfg(debug_assertions)]
use mot_engine::row::STAMP_BYTES;
use mot_engine::{BesideKeys, CommandId, Slot, VersionRef};
use pgrx::pg_sys;

/// A running direct modification.
struct Direct {
    scan: Scan,
    change: Change,
    counts_rows: bool,
}

/// What a direct UPDATE or DELETE does to each row its scan finds.
pub struct Change {
    pub target: Target,
    pub is_delete: bool,
    /// Conditions the scan does not answer.
    pub quals: *mut pg_sys::ExprState,
    /// Conditions the scan does answer, for a state of the row that it did not find.
    pub rechecks: *mut pg_sys::ExprState,
    /// Attribute numbers and their new values.
    pub assignments: Vec<(i16, Value)>,
    /// What they were evaluated to last.
    pub values: Vec<(pg_sys::Datum, bool)>,
    /// No index had an assigned column then.
    pub beside_keys: Option<BesideKeys>,
    /// Makes the new row out of the old one's bytes, where it can.
    pub patch: Option<Patch>,
    /// The old row, of the heap kind.
    pub old: *mut pg_sys::TupleTableSlot,
    /// The new row, virtual.
    pub new: *mut pg_sys::TupleTableSlot,
}

unsafe fn tag<T>(node: *mut T) -> pg_sys::NodeTag {
    // SAFETY: a node.
    unsafe { (*node.cast::<pg_sys::Node>()).type_ }
}

pub unsafe fn plan_direct_modify(
    _root: *mut pg_sys::PlannerInfo,
    plan: *mut pg_sys::ModifyTable,
    rti: pg_sys::Index,
    number: std::ffi::c_int,
) -> bool {
    // SAFETY: the planner's own structures, casts by tag; the scan node is ours, made for this statement alone.
    unsafe {
        let node = (*plan).plan.lefttree;
        if node.is_null() || tag(node) != pg_sys::NodeTag::T_ForeignScan {
            return false;
        }
        let scan = node.cast::<pg_sys::ForeignScan>();
        let operation = (*plan).operation;
        let is_update = operation == pg_sys::CmdType::CMD_UPDATE;
        if (*scan).scan.scanrelid != rti
            || !(is_update || operation == pg_sys::CmdType::CMD_DELETE)
            || pg_sys::contain_subplans((*node).targetlist.cast())
        {
            return false;
        }
        let mut attributes = Vec::new();
        let mut values = Vec::new();
        if is_update {
            let columns = items::<pg_sys::List>((*plan).updateColnosLists)[number as usize];
            let count = if columns.is_null() {
                0
            } else {
                (*columns).length as usize
            };
            attributes.extend((0..count).map(|at| (*(*columns).elements.add(at)).int_value as i16));
            values.extend(
                items::<pg_sys::TargetEntry>((*node).targetlist)
                    .into_iter()
                    .filter(|target| !(**target).resjunk)
                    .map(|target| (*target).expr),
            );
            if values.len() != attributes.len() {
                return false;
            }
        }
        let quals = items::<pg_sys::Expr>((*node).qual);
        let mut expressions = items::<pg_sys::Expr>((*scan).fdw_exprs);
        expressions.extend(&quals);
        expressions.extend(&values);
        (*scan).fdw_exprs = list(&expressions);
        private::add_modification(
            (*scan).fdw_private,
            quals.len(),
            (*plan).canSetTag,
            &attributes,
        );
        (*node).qual = std::ptr::null_mut();
        (*node).targetlist = nulls_like((*node).targetlist);
        (*scan).operation = operation;
        (*scan).resultRelation = rti;
        true
    }
}

/// Targets of the same types that cost nothing.
unsafe fn nulls_like(targets: *mut pg_sys::List) -> *mut pg_sys::List {
    // SAFETY: a target list.
    unsafe {
        let made: Vec<_> = cells::<pg_sys::TargetEntry>(targets)
            .iter()
            .map(|target| {
                let (kind, modifier, collation) = type_of((**target).expr.cast());
                pg_sys::makeTargetEntry(
                    pg_sys::makeNullConst(kind, modifier, collation).cast(),
                    (**target).resno,
                    (**target).resname,
                    (**target).resjunk,
                )
            })
            .collect();
        list(&made)
    }
}

/// Type, modifier and collation of an expression; core is asked about those that have them not in the node itself.
unsafe fn type_of(expression: *mut pg_sys::Node) -> (pg_sys::Oid, i32, pg_sys::Oid) {
    // SAFETY: an expression; casts by tag.
    unsafe {
        match tag(expression) {
            pg_sys::NodeTag::T_Var => {
                let var = &*expression.cast::<pg_sys::Var>();
                (var.vartype, var.vartypmod, var.varcollid)
            }
            pg_sys::NodeTag::T_Const => {
                let constant = &*expression.cast::<pg_sys::Const>();
                (
                    constant.consttype,
                    constant.consttypmod,
                    constant.constcollid,
                )
            }
            pg_sys::NodeTag::T_Param => {
                let param = &*expression.cast::<pg_sys::Param>();
                (param.paramtype, param.paramtypmod, param.paramcollid)
            }
            _ => (
                pg_sys::exprType(expression),
                pg_sys::exprTypmod(expression),
                pg_sys::exprCollation(expression),
            ),
        }
    }
}

pub unsafe fn begin_direct_modify(node: *mut pg_sys::ForeignScanState, flags: std::ffi::c_int) {
    // SAFETY: an initialized node of a plan that plan_direct_modify took.
    unsafe {
        let plan = (*node).ss.ps.plan.cast::<pg_sys::ForeignScan>();
        let private = Private::new((*plan).fdw_private);
        let expressions = items::<pg_sys::Expr>((*plan).fdw_exprs);
        let (quals, values) = (private.qual_count(), private.assigned());
        let arguments = expressions.len() - quals - values.len();
        let qual_list = list(&expressions[arguments..arguments + quals]);
        // For EXPLAIN, too: it shows the subplans of what was compiled.
        let compiled_quals = pg_sys::ExecInitQual(qual_list, node.cast());
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0 {
            return;
        }
        let argument_values = compile(&expressions[..arguments], node);
        let assigned = compile(&expressions[arguments + quals..], node);
        let relation = (*node).ss.ss_currentRelation;
        check_columns(
            (*relation).rd_att,
            &values,
            &expressions[arguments + quals..],
        );
        // Core takes this way for a table without row triggers.
        Planned::none().check(relation, (*plan).operation);
        row_slot::give_to(node);
        let change = Change {
            target: Target::new(relation),
            is_delete: (*plan).operation == pg_sys::CmdType::CMD_DELETE,
            quals: compiled_quals,
            rechecks: (*node).fdw_recheck_quals,
            assignments: values.into_iter().zip(assigned).collect(),
            values: Vec::new(),
            beside_keys: None,
            patch: None,
            old: (*node).ss.ss_ScanTupleSlot,
            new: pg_sys::ExecInitExtraTupleSlot(
                (*node).ss.ps.state,
                (*relation).rd_att,
                &raw const pg_sys::TTSOpsVirtual,
            ),
        };
        let direct = Direct {
            scan: Scan::new(node, &private, &argument_values),
            change,
            counts_rows: private.counts_rows(),
        };
        (*node).fdw_state = keep(node, direct).cast();
    }
}

/// Raises what core raises where a column that is assigned to is gone, or of another type: a SQL function keeps its plans until the calling query
/// ends, whatever that query does meanwhile.
pub unsafe fn check_columns(
    row_type: pg_sys::TupleDesc,
    assigned: &[i16],
    values: &[*mut pg_sys::Expr],
) {
    // SAFETY: the row type of the plan's table, which never has fewer attributes than before; expressions of a finished plan.
    unsafe {
        let attributes = version::attributes(row_type);
        for (number, value) in assigned.iter().zip(values) {
            let attribute = &*attributes.add(*number as usize - 1);
            let expected = pg_sys::exprType(value.cast());
            if attribute.attisdropped || attribute.atttypid != expected {
                errors::plan_of_other_columns(*number, attribute, expected);
            }
        }
    }
}

/// What core does to a new row before it is stored. Core takes no direct way for a table with generated columns; a kept plan may be older than
/// these.
unsafe fn complete(
    estate: *mut pg_sys::EState,
    info: *mut pg_sys::ResultRelInfo,
    new: *mut pg_sys::TupleTableSlot,
) {
    // SAFETY: an initialized result relation and a filled slot of its row type.
    unsafe {
        let constraints = (*(*(*info).ri_RelationDesc).rd_att).constr;
        if !constraints.is_null() && (*constraints).has_generated_stored {
            compute_stored_generated(info, estate, new, pg_sys::CmdType::CMD_UPDATE);
        }
        check(estate, info, new, false);
    }
}

pub unsafe fn iterate_direct_modify(
    node: *mut pg_sys::ForeignScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node that went through Begin; the contexts emptied between two rows are core's per-tuple ones.
    unsafe {
        let direct = &mut *(*node).fdw_state.cast::<Direct>();
        let slot = (*node).ss.ss_ScanTupleSlot;
        let context = (*node).ss.ps.ps_ExprContext;
        let estate = (*node).ss.ps.state;
        let returning = (*(*node).resultRelInfo).ri_projectReturning;
        let instrument = (*node).ss.ps.instrument;
        loop {
            pgrx::check_for_interrupts!();
            pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
            if !(*estate).es_per_tuple_exprcontext.is_null() {
                let checks = (*estate).es_per_tuple_exprcontext;
                pg_sys::MemoryContextReset((*checks).ecxt_per_tuple_memory);
            }
            let Some((row, version)) = direct.scan.next(context) else {
                tuple::clear(slot);
                return slot;
            };
            let command = CommandId((*estate).es_output_cid);
            let info = (*node).resultRelInfo;
            let changed =
                direct
                    .change
                    .apply(&mut direct.scan, context, command, row, version, |new| {
                        complete(estate, info, new)
                    });
            let Some(result) = changed else {
                if !instrument.is_null() {
                    (*instrument).nfiltered1 += 1.0;
                }
                continue;
            };
            if direct.counts_rows {
                (*estate).es_processed += 1;
            }
            if returning.is_null() {
                if !instrument.is_null() {
                    (*instrument).tuplecount += 1.0;
                }
                continue;
            }
            direct.scan.show(slot, row, result);
            (*(*returning).pi_exprContext).ecxt_scantuple = slot;
            return slot;
        }
    }
}

impl Change {
    /// Changes one row if it passes. Returns what RETURNING speaks of: the new state, or the deleted one. `check` raises what
    /// a new row violates.
    pub unsafe fn apply(
        &mut self,
        scan: &mut Scan,
        context: *mut pg_sys::ExprContext,
        command: CommandId,
        row: Slot,
        version: VersionRef,
        check: impl Fn(*mut pg_sys::TupleTableSlot),
    ) -> Option<VersionRef> {
        // SAFETY: see the caller; the slots hold the row's state only during this call.
        unsafe {
            let mut seen = version;
            loop {
                scan.show(self.old, row, seen);
                (*context).ecxt_scantuple = self.old;
                if seen != version && !passes(self.rechecks, context) {
                    return None;
                }
                if !passes(self.quals, context) {
                    return None;
                }
                let fate = if self.is_delete {
                    self.target.delete(row, seen, command)
                } else {
                    self.evaluate(context);
                    let is_patched = match &mut self.patch {
                        Some(patch) => patch.apply(seen.body(), &self.values),
                        None => false,
                    };
                    #[cfg(debug_assertions)]
                    if is_patched {
                        self.compare_with_formed();
                    }
                    let body = match &self.patch {
                        Some(patch) if is_patched => patch.body(),
                        _ => {
                            self.assign();
                            check(self.new);
                            tuple::form(self.new)
                        }
                    };
                    self.target
                        .update(row, seen, body, command, self.beside_keys)
                };
                match fate {
                    Fate::Done(_) if self.is_delete => return Some(seen),
                    Fate::Done(new) => return Some(new),
                    Fate::Skip => return None,
                    Fate::Newer(newer) => seen = newer,
                }
            }
        }
    }

    /// Evaluates what is assigned, for the row in the old slot.
    #[inline]
    unsafe fn evaluate(&mut self, context: *mut pg_sys::ExprContext) {
        self.values.clear();
        for (_, value) in &self.assignments {
            // SAFETY: compiled for the node whose context this is.
            self.values.push(unsafe { value.get(context) });
        }
    }

    /// Fills the new row: the old values, and the assigned ones over it.
    unsafe fn assign(&self) {
        // SAFETY: both slots have the relation's row type; the virtual slot's arrays are written between clearing and storing.
        unsafe {
            let (old, new) = (self.old, self.new);
            let count = (*(*new).tts_tupleDescriptor).natts;
            pg::take_row_apart(old, count);
            let count = count as usize;
            (*new).tts_flags |= pg_sys::TTS_FLAG_EMPTY as u16;
            (*new)
                .tts_values
                .copy_from_nonoverlapping((*old).tts_values, count);
            (*new)
                .tts_isnull
                .copy_from_nonoverlapping((*old).tts_isnull, count);
            for ((attribute, _), (datum, is_null)) in self.assignments.iter().zip(&self.values) {
                *(*new).tts_values.add(*attribute as usize - 1) = *datum;
                *(*new).tts_isnull.add(*attribute as usize - 1) = *is_null;
            }
            // ExecStoreVirtualTuple.
            (*new).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
            (*new).tts_nvalid = count as i16;
        }
    }

    /// A patched body is what forming the tuple gives. Both are formed anew: how long a header a text was given
    /// depends on its column's STORAGE, which may have changed since.
    #[cfg(debug_assertions)]
    unsafe fn compare_with_formed(&self) {
        // SAFETY: as for `assign`.
        unsafe {
            self.assign();
            let formed = tuple::form(self.new);
            let patched = self.patch.as_ref().expect("just made").body();
            let descriptor = (*self.new).tts_tupleDescriptor;
            let count = (*descriptor).natts as usize;
            let mut values = vec![pg_sys::Datum::from(0); count];
            let mut nulls = vec![false; count];
            let bytes = STAMP_BYTES + patched.len();
            let copy = pg_sys::palloc0(bytes).cast::<u8>();
            copy.add(STAMP_BYTES)
                .copy_from_nonoverlapping(patched.as_ptr(), patched.len());
            let mut row = tuple::empty();
            row.t_len = bytes as u32;
            row.t_data = copy.cast();
            pg_sys::heap_deform_tuple(
                &raw mut row,
                descriptor,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            let patched = tuple::form_values(descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            assert_eq!(patched, formed);
        }
    }
}
