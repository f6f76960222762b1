//! When aggregates inside the scan are offered to the planner, and what they cost.
use crate::executor::aggregate::{
    KEYS_MAX, TIMES_FITTING, bytes_of_group, call, key, memory_limit,
};
use crate::executor::filter::Compiler;
use crate::pg::node::{Any, List, Node};
use crate::pg::relation::{self, NO_LOCK};
use crate::pg::version;
use crate::shared_memory::settings::{COMPILED_STATEMENTS, CompiledStatements};
use pgrx::pg_sys;

/// What one aggregate costs for a row, in `cpu_operator_cost`s: core's own is one and more.
const AGGREGATE_COST: f64 = 0.25;

/// A target list.
pub type Targets<'p> = List<'p, pg_sys::TargetEntry>;

/// Whether the query is one of aggregates, over rows of one table as a scan of it gives them.
pub fn is_of_whole_table(
    root: Node<'_, pg_sys::PlannerInfo>,
    input: Node<'_, pg_sys::RelOptInfo>,
) -> bool {
    let query = root.query();
    COMPILED_STATEMENTS.get() != CompiledStatements::Off
        && query.hasAggs()
        && !query.groupingSets()
        && !query.rowMarks()
        && !root.hasPseudoConstantQuals()
        && input.reloptkind() == pg_sys::RelOptKind::RELOPT_BASEREL
        && input.rtekind() == pg_sys::RTEKind::RTE_RELATION
}

/// Whether an expression over a table's row gives the same in each pass over the rows, between
/// which the user's other commands run: under a cursor a setting can change that a stable function
/// reads; system columns are left to core altogether.
fn is_repeatable(expression: Any<'_>, table: pg_sys::Index) -> bool {
    const CHANGING: [i32; 4] = [
        pg_sys::MinTransactionIdAttributeNumber,
        pg_sys::MinCommandIdAttributeNumber,
        pg_sys::MaxTransactionIdAttributeNumber,
        pg_sys::MaxCommandIdAttributeNumber,
    ];
    let tree = expression.as_ptr();
    // SAFETY: an expression of the planner's.
    let is_stable =
        unsafe { !pg_sys::contain_mutable_functions(tree) && !pg_sys::contain_subplans(tree) };
    is_stable && !expression.names_any_of(table, &CHANGING)
}

/// How many groups are expected; `None`: more than fit into memory, or the rows or what is made of
/// them may not be the same the next time.
pub fn groups(
    root: Node<'_, pg_sys::PlannerInfo>,
    input: Node<'_, pg_sys::RelOptInfo>,
    targets: Targets<'_>,
) -> Option<f64> {
    let are_repeatable = input
        .baserestrictinfo()
        .iter()
        .map(|clause| clause.condition())
        .chain(targets.tree())
        .all(|expression| is_repeatable(expression, input.relid()));
    if !are_repeatable {
        return None;
    }
    let expressions = || targets.iter().map(|target| target.expression());
    let is_key = |expression: &Any| expression.cast::<pg_sys::Aggref>().is_none();
    let keys = List::of(expressions().filter(is_key));
    let aggregates = targets.len() - keys.len();
    let none = std::ptr::null_mut();
    let (root, rows) = (root.as_ptr(), input.rows());
    // SAFETY: the planner's own structures.
    let groups =
        unsafe { pg_sys::estimate_num_groups(root, keys.as_ptr(), rows, none, none.cast()) };
    let bytes = groups * bytes_of_group(aggregates) as f64;
    (bytes * TIMES_FITTING <= memory_limit() as f64).then_some(groups)
}

/// The columns of GROUP BY and the query's aggregates as a target list; `None` if one takes core.
/// The relation is locked since parse analysis.
pub fn targets<'p>(
    root: Node<'p, pg_sys::PlannerInfo>,
    input: Node<'p, pg_sys::RelOptInfo>,
    output: Node<'p, pg_sys::RelOptInfo>,
    having: Option<Any<'p>>,
) -> Option<Targets<'p>> {
    let grouped_by = root.query().groupClause();
    let target = output.target();
    let mut keys = Vec::new();
    let mut others = Vec::new();
    for (at, expression) in target.exprs().iter().enumerate() {
        match group_clause(target.mark(at), grouped_by) {
            None => others.push(expression),
            Some(clause) => keys.push((expression, clause.eqop())),
        }
    }
    if keys.len() != grouped_by.len() || keys.len() > KEYS_MAX {
        return None;
    }
    let found = List::of(keys.iter().map(|(expression, _)| *expression));
    let none = std::ptr::null_mut();
    // SAFETY: lists of the planner's. What core adds to is a copy.
    let (key_targets, targets) = unsafe {
        let key_targets = pg_sys::add_to_flat_tlist(none, found.as_ptr());
        let mut targets = pg_sys::list_copy(key_targets);
        for expression in others.into_iter().chain(having) {
            let found = pg_sys::pull_var_clause(expression.as_ptr(), WITHIN as i32);
            targets = pg_sys::add_to_flat_tlist(targets, found);
        }
        (key_targets, Targets::enter(targets))
    };
    relation::with(root.entry(input).relid(), NO_LOCK, |table| {
        let mut compiler = Compiler::new(input.relid(), table.description());
        let are_keys_ours = keys
            .into_iter()
            .all(|(expression, equality)| key(&mut compiler, expression, equality).is_some());
        let is_ours = |target: Node<'_, pg_sys::TargetEntry>| {
            let expression = target.expression();
            // SAFETY: a list of the planner's.
            let is_key = || unsafe {
                !pg_sys::tlist_member(expression.as_ptr().cast(), key_targets).is_null()
            };
            match expression.cast::<pg_sys::Aggref>() {
                Some(aggregate) => call(&mut compiler, aggregate).is_some(),
                None => is_key(),
            }
        };
        (are_keys_ours && !targets.is_empty() && targets.iter().all(is_ours)).then_some(targets)
    })
}

/// What of an expression is computed below its aggregates.
const WITHIN: u32 = pg_sys::PVC_INCLUDE_AGGREGATES
    | pg_sys::PVC_RECURSE_WINDOWFUNCS
    | pg_sys::PVC_INCLUDE_PLACEHOLDERS;

/// The item of GROUP BY that has a mark; `None`: there is none.
fn group_clause<'p>(
    mark: pg_sys::Index,
    grouped_by: List<'p, pg_sys::SortGroupClause>,
) -> Option<Node<'p, pg_sys::SortGroupClause>> {
    if mark == 0 {
        return None;
    }
    // SAFETY: a list of the planner's.
    unsafe {
        Node::enter_if_any(pg_sys::get_sortgroupref_clause_noerr(
            mark,
            grouped_by.as_ptr(),
        ))
    }
}

/// What they cost over a scan that costs so much, as rows of the output.
pub fn cost(
    output: Node<'_, pg_sys::RelOptInfo>,
    targets: Targets<'_>,
    below: version::Cost,
    groups: f64,
) -> version::Cost {
    // SAFETY: settings.
    let (operator, row) = unsafe { (pg_sys::cpu_operator_cost, pg_sys::cpu_tuple_cost) };
    let per_row = targets.len() as f64 * AGGREGATE_COST * operator;
    let target = output.target().cost();
    let startup = below.total + below.rows * per_row + target.startup;
    version::Cost {
        rows: groups,
        startup,
        total: startup + groups * (target.per_tuple + row),
    }
}
