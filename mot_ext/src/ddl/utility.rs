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
use super::{database, foreign_spelling, publications, tables};
use crate::compiled;
use crate::pg::local::ProcessLocal;
use crate::pg::{guard, nodes};
use pgrx::pg_sys::NodeTag::*;
use pgrx::{is_a, pg_sys};
use std::cell::Cell;
use std::ffi::c_char;

/// The arguments of a ProcessUtility call.
#[derive(Clone, Copy)]
pub struct Statement {
    plan: *mut pg_sys::PlannedStmt,
    query_string: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    query_environment: *mut pg_sys::QueryEnvironment,
    destination: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
}

/// What continues with a statement.
pub enum Next {
    /// Nothing: it is done.
    Done,
    /// PostgreSQL, as it came.
    PassOn,
    /// PostgreSQL, with another parse tree, in the memory of the statement.
    PassOnAs(*mut pg_sys::Node),
}

impl From<bool> for Next {
    /// Whether it is done.
    fn from(is_done: bool) -> Next {
        if is_done { Next::Done } else { Next::PassOn }
    }
}

static PREVIOUS: ProcessLocal<Cell<pg_sys::ProcessUtility_hook_type>> =
    ProcessLocal(Cell::new(None));

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
    // SAFETY: single-threaded at load time.
    unsafe {
        PREVIOUS.0.set(pg_sys::ProcessUtility_hook);
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
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
        plan,
        query_string,
        read_only_tree,
        context,
        params,
        query_environment,
        destination,
        completion,
    };
    // SAFETY: PostgreSQL passes a live plan with a utility statement.
    unsafe {
        if concerns_tables((*(*plan).utilityStmt).type_) && guard::run(|| handle(&mut statement)) {
            return;
        }
        pass_on_unguarded(&statement);
    }
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
            | T_CreatePublicationStmt
            | T_AlterPublicationStmt
            | T_CreatedbStmt
            | T_LoadStmt
            | T_CreateExtensionStmt
            | T_AlterExtensionStmt
            | T_AlterExtensionContentsStmt
            | T_RefreshMatViewStmt
    )
}

/// Lets a handler do the statement; false when it is for PostgreSQL alone, perhaps with another
/// parse tree.
unsafe fn handle(passed: &mut Statement) -> bool {
    // SAFETY: `process_utility` passes its own frame's statement.
    unsafe {
        match foreign_spelling::resolve(passed) {
            Next::Done => return true,
            Next::PassOn => {}
            Next::PassOnAs(node) => passed.replace(node),
        }
        look_at(passed.node());
        let Some(after) = tables::before(passed) else {
            return false;
        };
        passed.run(nodes::copy(passed.node()));
        after.finish();
        true
    }
}

/// Examines a statement that core executes as it is.
unsafe fn look_at(node: *mut pg_sys::Node) {
    // SAFETY: the node of a live statement; each cast follows its tag.
    unsafe {
        match nodes::tag(node) {
            T_CreatePublicationStmt => {
                let node = node.cast::<pg_sys::CreatePublicationStmt>();
                if (*node).for_all_tables {
                    publications::warn_of_tables_left_out();
                }
                publications::publish((*node).pubobjects);
            }
            T_AlterPublicationStmt => {
                let node = node.cast::<pg_sys::AlterPublicationStmt>();
                if (*node).action != pg_sys::AlterPublicationAction::AP_DropObjects {
                    publications::publish((*node).pubobjects);
                }
            }
            T_CreatedbStmt => database::create(node.cast()),
            T_LoadStmt => compiled::refuse_other_hooks(),
            _ => {}
        }
    }
}

impl Statement {
    /// The parse tree as it came; not to be changed.
    pub fn node(&self) -> *mut pg_sys::Node {
        // SAFETY: the plan of a utility statement is live during its execution.
        unsafe { (*self.plan).utilityStmt }
    }

    /// Gives the statement another parse tree, which lives as long as it.
    pub unsafe fn replace<T>(&mut self, node: *mut T) {
        // SAFETY: the caller owns the node.
        self.plan = unsafe { self.plan_of(node) };
    }

    /// This statement's plan with another parse tree.
    unsafe fn plan_of<T>(&self, node: *mut T) -> *mut pg_sys::PlannedStmt {
        // SAFETY: the copy of the plan differs in its statement only; the caller owns the node.
        unsafe {
            let plan = nodes::make::<pg_sys::PlannedStmt>(T_PlannedStmt);
            std::ptr::copy_nonoverlapping(self.plan, plan, 1);
            (*plan).utilityStmt = node.cast();
            debug_assert!(is_a((*plan).utilityStmt, nodes::tag(node)));
            plan
        }
    }

    /// Runs another parse tree in this statement's place.
    pub unsafe fn run<T>(&self, node: *mut T) {
        // SAFETY: the caller owns the node.
        unsafe {
            let plan = self.plan_of(node);
            let previous = PREVIOUS.0.get();
            let this = *self;
            match previous {
                Some(previous) => pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    #[allow(ffi_unwind_calls)]
                    previous(
                        plan,
                        this.query_string,
                        false,
                        this.context,
                        this.params,
                        this.query_environment,
                        this.destination,
                        this.completion,
                    )
                }),
                None => pg_sys::standard_ProcessUtility(
                    plan,
                    this.query_string,
                    false,
                    this.context,
                    this.params,
                    this.query_environment,
                    this.destination,
                    this.completion,
                ),
            }
        }
    }
}

/// What core asks before a statement that writes the catalog; for those that do not go through
/// core.
pub fn refuse_read_only(statement: &std::ffi::CStr) {
    // SAFETY: both raise or return.
    unsafe {
        pg_sys::PreventCommandIfReadOnly(statement.as_ptr());
        pg_sys::PreventCommandIfParallelMode(statement.as_ptr());
    }
}

/// Hands the statement on as it came.
#[allow(ffi_unwind_calls)]
unsafe fn pass_on_unguarded(statement: &Statement) {
    // SAFETY: the arguments are PostgreSQL's own; an error jumps over plain frames only.
    unsafe {
        let next = PREVIOUS
            .0
            .get()
            .unwrap_or(standard_process_utility_unguarded);
        next(
            statement.plan,
            statement.query_string,
            statement.read_only_tree,
            statement.context,
            statement.params,
            statement.query_environment,
            statement.destination,
            statement.completion,
        );
    }
}
