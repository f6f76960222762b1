//! When aggregates inside the scan are offered to the planner, and what they cost.
use crate::executor::aggregate::{
    KEYS_MAX, TIMES_FITTING, bytes_of_group, call, key, memory_limit,
};
use crate::executor::filter::Compiler;
use crate::pg::list::{items, list};
use crate::pg::version;
use crate::shared_memory::settings::{COMPILED_STATEMENTS, CompiledStatements};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::T_Aggref;
use std::ffi::c_void;

/// What one aggregate costs for a row, in `cpu_operator_cost`s: core's own is one and more.
const AGGREGATE_COST: f64 = 0.25;

/// Whether the query is one of aggregates, over rows of one table as a scan of it gives them.
///
/// # Safety
/// The planner's own structures. So for the others here.
pub unsafe fn is_of_whole_table(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        let query = &*(*root).parse;
        COMPILED_STATEMENTS.get() != CompiledStatements::Off
            && query.hasAggs
            && query.groupingSets.is_null()
            && query.rowMarks.is_null()
            && !(*root).hasPseudoConstantQuals
            && (*input).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
            && (*input).rtekind == pg_sys::RTEKind::RTE_RELATION
    }
}

/// Whether an expression over a table's row gives the same in each pass over the rows, between
/// which the user's other commands run: under a cursor a setting can change that a stable function
/// reads; system columns are left to core altogether.
unsafe fn is_repeatable(expression: *mut pg_sys::Node, table: pg_sys::Index) -> bool {
    const CHANGING: [i32; 4] = [
        pg_sys::MinTransactionIdAttributeNumber,
        pg_sys::MinCommandIdAttributeNumber,
        pg_sys::MaxTransactionIdAttributeNumber,
        pg_sys::MaxCommandIdAttributeNumber,
    ];
    // SAFETY: an expression of the planner's.
    unsafe {
        let mut columns = std::ptr::null_mut();
        pg_sys::pull_varattnos(expression, table, &raw mut columns);
        let is_read = |column: i32| {
            pg_sys::bms_is_member(column - pg_sys::FirstLowInvalidHeapAttributeNumber, columns)
        };
        !pg_sys::contain_mutable_functions(expression)
            && !pg_sys::contain_subplans(expression)
            && !CHANGING.into_iter().any(is_read)
    }
}

/// How many groups are expected; `None`: more than fit into memory, or the rows or what is made of
/// them may not be the same the next time.
pub unsafe fn groups(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    rows: f64,
    targets: *mut pg_sys::List,
) -> Option<f64> {
    // SAFETY: the planner's own structures.
    unsafe {
        let clauses = items::<pg_sys::RestrictInfo>((*input).baserestrictinfo);
        let are_repeatable = clauses
            .into_iter()
            .map(|clause| (*clause).clause.cast())
            .chain([targets.cast()])
            .all(|expression| is_repeatable(expression, (*input).relid));
        if !are_repeatable {
            return None;
        }
        let keys: Vec<_> = items::<pg_sys::TargetEntry>(targets)
            .into_iter()
            .map(|target| (*target).expr.cast::<pg_sys::Node>())
            .filter(|expression| (**expression).type_ != T_Aggref)
            .collect();
        let aggregates = (*targets).length as usize - keys.len();
        let none = std::ptr::null_mut();
        let groups = pg_sys::estimate_num_groups(root, list(&keys), rows, none, none.cast());
        let bytes = groups * bytes_of_group(aggregates) as f64;
        (bytes * TIMES_FITTING <= memory_limit() as f64).then_some(groups)
    }
}

/// The columns of GROUP BY and the query's aggregates as a target list; `None` if one takes core.
pub unsafe fn targets(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
    having: *mut pg_sys::Node,
) -> Option<*mut pg_sys::List> {
    const FLAGS: u32 = pg_sys::PVC_INCLUDE_AGGREGATES
        | pg_sys::PVC_RECURSE_WINDOWFUNCS
        | pg_sys::PVC_INCLUDE_PLACEHOLDERS;
    // SAFETY: the planner's own structures; the relation is locked since parse analysis. Casts by
    // tag.
    unsafe {
        let target = &*(*output).reltarget;
        let mut keys = Vec::new();
        let mut others = Vec::new();
        for (at, expression) in items::<pg_sys::Node>(target.exprs).into_iter().enumerate() {
            let place = match target.sortgrouprefs.is_null() {
                true => 0,
                false => *target.sortgrouprefs.add(at),
            };
            let clause = pg_sys::get_sortgroupref_clause_noerr(place, (*(*root).parse).groupClause);
            match place == 0 || clause.is_null() {
                true => others.push(expression),
                false => keys.push((expression, (*clause).eqop)),
            }
        }
        let found: Vec<_> = keys.iter().map(|(expression, _)| *expression).collect();
        let key_targets = pg_sys::add_to_flat_tlist(std::ptr::null_mut(), list(&found));
        let has_all_keys = keys.len() == items::<c_void>((*(*root).parse).groupClause).len();
        if !has_all_keys || keys.len() > KEYS_MAX {
            return None;
        }
        others.push(having);
        let mut targets = pg_sys::list_copy(key_targets);
        for expression in others {
            let found = pg_sys::pull_var_clause(expression, FLAGS as i32);
            targets = pg_sys::add_to_flat_tlist(targets, found);
        }
        let entry = *(*root).simple_rte_array.add((*input).relid as usize);
        let relation = pg_sys::table_open((*entry).relid, pg_sys::NoLock as i32);
        let mut compiler = Compiler::new((*input).relid, (*relation).rd_att);
        let are_keys_ours = keys
            .into_iter()
            .all(|(expression, equality)| key(&mut compiler, expression, equality).is_some());
        let found = items::<pg_sys::TargetEntry>(targets);
        let are_ours = found.iter().all(|target| {
            let expression = (**target).expr;
            match (*expression.cast::<pg_sys::Node>()).type_ {
                T_Aggref => call(&mut compiler, &*expression.cast::<pg_sys::Aggref>()).is_some(),
                _ => !pg_sys::tlist_member(expression, key_targets).is_null(),
            }
        });
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        (are_keys_ours && are_ours && !found.is_empty()).then_some(targets)
    }
}

/// What they cost over a scan that costs so much, as rows of the output.
pub unsafe fn cost(
    output: *mut pg_sys::RelOptInfo,
    targets: *mut pg_sys::List,
    below: version::Cost,
    groups: f64,
) -> version::Cost {
    // SAFETY: the planner's own structures.
    unsafe {
        let count = f64::from((*targets).length);
        let per_row = count * AGGREGATE_COST * pg_sys::cpu_operator_cost;
        let target = (*(*output).reltarget).cost;
        let startup = below.total + below.rows * per_row + target.startup;
        version::Cost {
            rows: groups,
            startup,
            total: startup + groups * (target.per_tuple + pg_sys::cpu_tuple_cost),
        }
    }
}
