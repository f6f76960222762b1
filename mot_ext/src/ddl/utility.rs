//! The ProcessUtility hook: which statements concern memory-optimized tables, and their handlers.
//!
//! Contract:
//! - A statement that has nothing to do with us reaches the previous hook (or PostgreSQL)
//!   untouched, through a call without pgrx's guard: its errors travel as they would without this
//!   library.
//! - The hook function itself is a plain frame (nothing to drop), since such an error jumps over
//!   it. Everything that looks closer runs inside `handle`, guarded by [`crate::pg::guard`]; there
//!   each PostgreSQL function is called through its guard.
//! - A plan may be cached (`readOnlyTree`), and a handler rewrites what it is given: handlers
//!   always work on a copy.
use super::{access_methods, database, foreign_spelling, tables};
use crate::compiled;
use crate::pg::guard;
use crate::pg::hook::Previous;
use crate::pg::node::{Any, Node};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;
use std::ffi::{CStr, c_char};

/// The arguments of a ProcessUtility call.
#[derive(Clone, Copy)]
pub struct Statement<'p> {
    plan: Node<'p, pg_sys::PlannedStmt>,
    query_string: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    query_environment: *mut pg_sys::QueryEnvironment,
    destination: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
}

/// What continues with a statement.
pub enum Next<'p> {
    /// Nothing: it is done.
    Done,
    /// PostgreSQL, as it came.
    PassOn,
    /// PostgreSQL, with another parse tree, in the memory of the statement.
    PassOnAs(Any<'p>),
}

impl From<bool> for Next<'_> {
    /// Whether it is done.
    fn from(is_done: bool) -> Self {
        if is_done { Next::Done } else { Next::PassOn }
    }
}

static PREVIOUS: Previous<pg_sys::ProcessUtility_hook_type> = Previous::new(None);

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    /// PostgreSQL's own function without pgrx's guard: see the module header.
    #[link_name = "standard_ProcessUtility"]
    fn standard_process_utility_unguarded(
        plan: *mut pg_sys::PlannedStmt,
        query_string: *const c_char,
        read_only_tree: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        params: pg_sys::ParamListInfo,
        query_environment: *mut pg_sys::QueryEnvironment,
        destination: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

/// Installs the hook; called once, while the server loads its libraries.
pub fn init() {
    // SAFETY: libraries are being loaded; the hook's variable.
    unsafe { PREVIOUS.install(&raw mut pg_sys::ProcessUtility_hook, Some(process_utility)) };
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C-unwind" fn process_utility(
    plan: *mut pg_sys::PlannedStmt,
    query_string: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    query_environment: *mut pg_sys::QueryEnvironment,
    destination: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    let mut statement = Statement {
        // SAFETY: PostgreSQL passes a live plan, in memory that goes after the statement.
        plan: unsafe { Node::enter(plan) },
        query_string,
        read_only_tree,
        context,
        params,
        query_environment,
        destination,
        completion,
    };
    if concerns_tables(statement.node().tag()) {
        // SAFETY: this is a plain frame, and so is core's.
        if unsafe { guard::run(|| handle(&mut statement)) } {
            return;
        }
    }
    let next = PREVIOUS.get().unwrap_or(standard_process_utility_unguarded);
    // SAFETY: the arguments are PostgreSQL's own; an error jumps over plain frames only.
    unsafe { statement.pass_to(next) };
}

/// Statement kinds a handler examines; all others pass without a further test.
fn concerns_tables(tag: pg_sys::NodeTag) -> bool {
    matches!(
        tag,
        T_CreateStmt
            | T_CreateForeignTableStmt
            | T_CreateTableAsStmt
            | T_IndexStmt
            | T_ReindexStmt
            | T_AlterTableStmt
            | T_AlterObjectSchemaStmt
            | T_AlterTableMoveAllStmt
            | T_RenameStmt
            | T_DropStmt
            | T_DropOwnedStmt
            | T_DiscardStmt
            | T_ViewStmt
            | T_CommentStmt
            | T_SecLabelStmt
            | T_CreatedbStmt
            | T_CreateAmStmt
            | T_LoadStmt
            | T_CreateExtensionStmt
            | T_AlterExtensionStmt
            | T_AlterExtensionContentsStmt
            | T_RefreshMatViewStmt
    )
}

/// Lets a handler do the statement; false when it is for PostgreSQL alone, perhaps with another
/// parse tree.
fn handle(passed: &mut Statement<'_>) -> bool {
    match foreign_spelling::resolve(passed) {
        Next::Done => return true,
        Next::PassOn => {}
        Next::PassOnAs(node) => passed.replace(node),
    }
    look_at(passed.node());
    let Some(after) = tables::before(passed) else {
        return false;
    };
    passed.run(passed.node().copied());
    after.finish();
    true
}

/// Examines a statement that core executes as it is.
fn look_at(node: Any<'_>) {
    if let Some(node) = node.cast() {
        database::create(node);
    } else if let Some(node) = node.cast() {
        access_methods::create(node);
    } else if node.tag() == T_LoadStmt {
        compiled::refuse_other_hooks();
    }
}

/// A function that executes utility statements.
type Process = unsafe extern "C-unwind" fn(
    *mut pg_sys::PlannedStmt,
    *const c_char,
    bool,
    pg_sys::ProcessUtilityContext::Type,
    pg_sys::ParamListInfo,
    *mut pg_sys::QueryEnvironment,
    *mut pg_sys::DestReceiver,
    *mut pg_sys::QueryCompletion,
);

impl<'p> Statement<'p> {
    /// The parse tree as it came; not to be changed.
    pub fn node(&self) -> Any<'p> {
        self.plan
            .utilityStmt()
            .expect("a utility statement has one")
    }

    /// Gives the statement another parse tree.
    pub fn replace(&mut self, node: Any<'p>) {
        self.plan = self.plan_of(node);
    }

    /// This statement's plan with another parse tree.
    fn plan_of(&self, node: Any<'p>) -> Node<'p, pg_sys::PlannedStmt> {
        let mut plan = self.plan.fields();
        plan.utilityStmt = node.as_ptr();
        // SAFETY: the fields of a live node, and another one as live.
        unsafe { Node::new(plan) }
    }

    /// Runs another parse tree, which core may change, in this statement's place.
    pub fn run(&self, node: Any<'p>) {
        let statement = Statement {
            plan: self.plan_of(node),
            read_only_tree: false,
            ..*self
        };
        let next = PREVIOUS.get().unwrap_or(standard_process_utility_unguarded);
        // SAFETY: the arguments are PostgreSQL's own, but for the tree; errors pass the guard.
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| statement.pass_to(next)) };
    }

    /// Hands the statement on.
    ///
    /// # Safety
    /// The frames around it are plain, or its errors pass a guard.
    #[allow(ffi_unwind_calls)]
    unsafe fn pass_to(&self, next: Process) {
        let this = *self;
        // SAFETY: arguments of a call of the hook (caller).
        unsafe {
            next(
                this.plan.as_ptr(),
                this.query_string,
                this.read_only_tree,
                this.context,
                this.params,
                this.query_environment,
                this.destination,
                this.completion,
            );
        }
    }
}

/// What core asks before a statement that writes the catalog; for those that do not go through
/// core.
pub fn refuse_read_only(statement: &CStr) {
    // SAFETY: both raise or return.
    unsafe {
        pg_sys::PreventCommandIfReadOnly(statement.as_ptr());
        pg_sys::PreventCommandIfParallelMode(statement.as_ptr());
    }
}
