//! When aggregates are offered to the planner, and their plan node.
use super::call::Call;
use super::grouping::{self, Key};
use crate::fdw::filter::Compiler;
use crate::fdw::private::{self, items, list};
use crate::pg::version;
use crate::settings::{COMPILED_STATEMENTS, CompiledStatements};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::{T_Aggref, T_ForeignPath, T_ProjectionPath};
use std::ffi::c_void;

/// What one aggregate costs for a row, in `cpu_operator_cost`s: core's own is one and more.
const AGGREGATE_COST: f64 = 0.25;
/// Of the scan's cost: what it costs to look at rows by the group, and to put none into a slot. (Measured: bench/BOUNDS.md.)
const BY_THE_GROUP: f64 = 0.6;

/// Whether a relation of the planner is what aggregates give.
pub unsafe fn is_path(rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: the planner's own structure.
    unsafe { (*rel).reloptkind == pg_sys::RelOptKind::RELOPT_UPPER_REL }
}

pub unsafe fn get_foreign_upper_paths(
    root: *mut pg_sys::PlannerInfo,
    stage: pg_sys::UpperRelationKind::Type,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
    _extra: *mut c_void,
) {
    // SAFETY: the planner's own structures.
    unsafe {
        // For workers: what each adds up by itself. Core's nodes above add those up, and have the conditions of HAVING.
        let is_partial = match stage {
            pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG => false,
            pg_sys::UpperRelationKind::UPPERREL_PARTIAL_GROUP_AGG => true,
            _ => return,
        };
        if COMPILED_STATEMENTS.get() == CompiledStatements::Off
            || !is_path(output)
            || !is_of_whole_table(root, input)
        {
            return;
        }
        let (paths, having) = match is_partial {
            true => ((*input).partial_pathlist, std::ptr::null_mut()),
            // Planning has made it a list.
            false => ((*input).pathlist, (*(*root).parse).havingQual),
        };
        let Some(below) = cheapest(input, paths) else {
            return;
        };
        let Some(targets) = targets(root, input, output, having) else {
            return;
        };
        let groups = if (*(*root).parse).groupClause.is_null() {
            1.0
        } else {
            let Some(groups) = groups(root, input, (*below).rows, targets).filter(|_| !is_partial)
            else {
                return;
            };
            groups
        };
        let count = f64::from((*targets).length);
        let per_row = count * AGGREGATE_COST * pg_sys::cpu_operator_cost;
        let (begin, end) = ((*below).startup_cost, (*below).total_cost);
        let all = begin + (end - begin) * BY_THE_GROUP + (*below).rows * per_row;
        let target = (*(*output).reltarget).cost;
        let startup = all + target.startup;
        let cost = version::Cost {
            rows: groups,
            startup,
            total: startup + groups * (target.per_tuple + pg_sys::cpu_tuple_cost),
        };
        let private = list(&[targets, having.cast()]);
        let path = version::foreign_upper_path(root, output, cost, below, private);
        (*path).path.parallel_safe = (*output).consider_parallel && (*below).parallel_safe;
        (*path).path.parallel_workers = (*below).parallel_workers;
        if !is_partial {
            pg_sys::add_path(output, path.cast());
        } else if (*path).path.parallel_safe {
            pg_sys::add_partial_path(output, path.cast());
        }
    }
}

/// Whether the query is one of aggregates, over rows of one table of ours as the scan gives them.
unsafe fn is_of_whole_table(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        let query = &*(*root).parse;
        query.hasAggs
            && query.groupingSets.is_null()
            && query.rowMarks.is_null()
            && !(*root).hasPseudoConstantQuals
            && (*input).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
            && (*input).rtekind == pg_sys::RTEKind::RTE_RELATION
    }
}

/// The cheapest scan that needs nothing from elsewhere. (A table with children is no single scan.)
unsafe fn cheapest(
    input: *mut pg_sys::RelOptInfo,
    paths: *mut pg_sys::List,
) -> Option<*mut pg_sys::Path> {
    // SAFETY: the planner's own structures; casts by tag.
    unsafe {
        items::<pg_sys::Path>(paths)
            .into_iter()
            .map(|path| match (*path).type_ {
                T_ProjectionPath => (*path.cast::<pg_sys::ProjectionPath>()).subpath,
                _ => path,
            })
            .filter(|path| {
                let path = &**path;
                path.type_ == T_ForeignPath && path.parent == input && path.param_info.is_null()
            })
            .min_by(|one, other| (**one).total_cost.total_cmp(&(**other).total_cost))
    }
}

/// Whether an expression over a table's row gives the same in each pass over the rows, between which the user's other commands run: under a cursor a setting can
/// change that a stable function looks at; system columns are left to core altogether.
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

/// How many groups are expected; `None`: more than fit into memory, or the rows or what is made of them may not be the same the next time.
unsafe fn groups(
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
        let bytes = groups * grouping::bytes_of_group(aggregates) as f64;
        (bytes * grouping::TIMES_FITTING <= grouping::memory_limit() as f64).then_some(groups)
    }
}

/// The columns of GROUP BY and the query's aggregates as a target list; `None` if one takes core.
unsafe fn targets(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
    having: *mut pg_sys::Node,
) -> Option<*mut pg_sys::List> {
    const FLAGS: u32 = pg_sys::PVC_INCLUDE_AGGREGATES
        | pg_sys::PVC_RECURSE_WINDOWFUNCS
        | pg_sys::PVC_INCLUDE_PLACEHOLDERS;
    // SAFETY: the planner's own structures; the relation is locked since parse analysis. Casts by tag.
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
        if !has_all_keys || keys.len() > grouping::KEYS_MAX {
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
            .all(|(expression, equality)| Key::new(&mut compiler, expression, equality).is_some());
        let found = items::<pg_sys::TargetEntry>(targets);
        let are_ours = found.iter().all(|target| {
            let expression = (**target).expr;
            match (*expression.cast::<pg_sys::Node>()).type_ {
                T_Aggref => {
                    Call::new(&mut compiler, &*expression.cast::<pg_sys::Aggref>()).is_some()
                }
                _ => !pg_sys::tlist_member(expression, key_targets).is_null(),
            }
        });
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        (are_keys_ours && are_ours && !found.is_empty()).then_some(targets)
    }
}

/// The plan node, over the scan's.
pub unsafe fn plan(
    path: *mut pg_sys::ForeignPath,
    targets: *mut pg_sys::List,
    below: *mut pg_sys::Plan,
) -> *mut pg_sys::ForeignScan {
    // SAFETY: the planner's own structures; a path that was made above.
    unsafe {
        let parts = items::<pg_sys::List>((*path).fdw_private);
        pg_sys::make_foreignscan(
            targets,
            parts[1],
            0,
            std::ptr::null_mut(),
            private::encode(pg_sys::InvalidOid, false, std::iter::empty()),
            parts[0],
            std::ptr::null_mut(),
            below,
        )
    }
}
