//! EXPLAIN of the scan: core shows all conditions, and the rows that none of them let pass.
use crate::executor::filter::Filter;
use crate::pg::node::{List, Node};
use pgrx::pg_sys;

/// `ExplainCustomScan`: the conditions that are evaluated where the rows lie, if core evaluates all
/// of them again.
pub fn explain(
    node: Node<'_, pg_sys::CustomScanState>,
    ancestors: List<'_, pg_sys::Node>,
    es: Node<'_, pg_sys::ExplainState>,
) {
    let conditions = node.ss().plan().qual();
    let taken = Filter::takes(node.ss());
    if taken == 0 || taken == conditions.len() {
        return;
    }
    let all = List::of(conditions.iter().take(taken)).conjunction();
    let names = es.names(node.ss().ps(), ancestors);
    es.show_text(c"Filter in Place", names.text(all));
}
