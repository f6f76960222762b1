//! What there is in a tree of core's plan states.
//!
//! A node may be reached on several ways: each of two nodes that refer to one subplan has a state
//! of its own for the reference, and both point at the subplan's one tree of states. Every state is
//! visited once.
use crate::pg::node::Node;
use pgrx::pg_sys;
use std::ffi::c_void;

/// A plan's state.
type State<'p> = Node<'p, pg_sys::PlanState>;

/// The states that need something at Start or End.
#[derive(Default)]
pub struct Survey<'p> {
    seen: Vec<State<'p>>,
    /// Scans of core's nodes over tables.
    pub table_scans: Vec<State<'p>>,
    pub sorts: Vec<Node<'p, pg_sys::SortState>>,
    pub aggregates: Vec<Node<'p, pg_sys::AggState>>,
    /// Subplans whose rows are kept in a hash table.
    hashed: Vec<State<'p>>,
    /// Two keep the rows of one subplan, each in a table of its own. The first that fills its table
    /// anew takes the mark from the subplan that says that it changed, and the second one's stays
    /// as it was.
    pub shares_hashed_subplan: bool,
    /// A node took its limit of memory from the settings when it was made. (Sorts do at each
    /// execution.)
    pub remembers_memory_limit: bool,
}

impl<'p> Survey<'p> {
    /// Of a whole tree of states.
    pub fn of(estate: Node<'p, pg_sys::EState>, root: State<'p>) -> Survey<'p> {
        let mut survey = Survey::default();
        // Core may have subplans that no expression is left to refer to.
        for top in std::iter::once(root).chain(estate.es_subplanstates()) {
            // SAFETY: a live state, and the survey that the walker takes.
            unsafe { look_at(top.as_ptr(), (&raw mut survey).cast()) };
        }
        survey
    }

    fn note(&mut self, state: State<'p>) {
        if state.scan().is_some() {
            self.table_scans.push(state);
        }
        self.sorts.extend(state.cast::<pg_sys::SortState>());
        if let Some(aggregate) = state.cast::<pg_sys::AggState>() {
            self.remembers_memory_limit |=
                aggregate.aggstrategy() == pg_sys::AggStrategy::AGG_HASHED;
            self.aggregates.push(aggregate);
        }
        self.remembers_memory_limit |= state.cast::<pg_sys::MemoizeState>().is_some();
        for reference in state.subPlan() {
            let is_hashed = (reference.subplan()).is_some_and(|subplan| subplan.useHashTable());
            if let Some(subplan) = reference.planstate().filter(|_| is_hashed) {
                self.shares_hashed_subplan |= self.hashed.contains(&subplan);
                self.hashed.push(subplan);
            }
        }
    }
}

/// The walker: notes a state that it has not seen, and continues with those below it.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn look_at(state: *mut pg_sys::PlanState, survey: *mut c_void) -> bool {
    // SAFETY: a state of the tree, and the survey of `Survey::of`, which waits for the walk's end.
    let (seen, notes) = unsafe { (Node::enter(state), &mut *survey.cast::<Survey<'_>>()) };
    if notes.seen.contains(&seen) {
        return false;
    }
    notes.seen.push(seen);
    notes.note(seen);
    // SAFETY: a live state; no reference to the survey is used from here on.
    unsafe { pg_sys::planstate_tree_walker(state, Some(look_at), survey) }
}
