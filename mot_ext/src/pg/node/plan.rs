//! Fields of finished plans.
use super::{NodeType, views};
use pgrx::pg_sys;

// SAFETY: each node of a plan begins with it, and it with the tag.
unsafe impl NodeType for pg_sys::Plan {}

views! {
    PlannedStmt {
        value commandType: pg_sys::CmdType::Type,
        value hasModifyingCTE: bool,
    }
    Plan {
        list qual: pg_sys::Node,
        node lefttree: pg_sys::Plan,
    }
}
