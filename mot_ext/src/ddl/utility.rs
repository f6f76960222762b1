//! The ProcessUtility hook: which statements concern memory-optimized tables, and who handles them.
//!
//! Contract:
//! - A statement that has nothing to do with us reaches the previous hook (or PostgreSQL) untouched, through a call without
//!   pgrx's guard: its errors travel as they would without this library.
//! - The hook function itself is a plain frame (nothing to drop), since such an error jumps over it. Everything that looks
//!   closer runs inside `handle`, guarded by [`crate::pg::guard`]; there each PostgreSQL function is called through its guard.
//! - A plan may be cached (`readOnlyTree`), and a handler rewrites what it is given: handlers always work on a copy.
use super::{
    alter, attached, copy, create_table, database, domain, drop, identity, index, lock,
    maintenance, nodes, tables,
};
use crate::compiled;
use crate::pg::guard;
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

/// Who goes on with a statement.
pub enum Next {
    /// Nobody: it is done.
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

struct Previous(Cell<pg_sys::ProcessUtility_hook_type>);
// SAFETY: written once in the postmaster while it loads libraries; each process runs PostgreSQL's code on one thread.
unsafe impl Sync for Previous {}
static PREVIOUS: Previous = Previous(Cell::new(None));

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

/// Statement kinds a handler looks at; all others pass without a further test.
fn concerns_tables(tag: pg_sys::NodeTag) -> bool {
    matches!(
        tag,
        T_CreateStmt
            | T_CreateForeignTableStmt
            | T_CreateTableAsStmt
            | T_ExplainStmt
            | T_IndexStmt
            | T_AlterTableStmt
            | T_AlterObjectSchemaStmt
            | T_AlterDomainStmt
            | T_ReassignOwnedStmt
            | T_DropStmt
            | T_CommentStmt
            | T_CopyStmt
            | T_VacuumStmt
            | T_ReindexStmt
            | T_ClusterStmt
            | T_LockStmt
            | T_CreatePolicyStmt
            | T_CreateTrigStmt
            | T_RuleStmt
            | T_CreatePublicationStmt
            | T_AlterPublicationStmt
            | T_CreatedbStmt
            | T_AlterFdwStmt
            | T_LoadStmt
            | T_AlterTableMoveAllStmt
            | T_CreateExtensionStmt
            | T_AlterExtensionStmt
            | T_RefreshMatViewStmt
    )
}

/// Lets a handler do the statement; false when it is for PostgreSQL alone, perhaps with another parse tree.
unsafe fn handle(passed: &mut Statement) -> bool {
    // SAFETY: `process_utility` passes its own frame's statement.
    unsafe {
        let Some(after) = tables::before(passed) else {
            return dispatch(passed);
        };
        if !dispatch(passed) {
            passed.run(nodes::copy(passed.node()));
        }
        after.finish();
        true
    }
}

/// Lets the handler of foreign tables do the statement, as `handle`.
unsafe fn dispatch(passed: &mut Statement) -> bool {
    // SAFETY: a live statement; each cast follows the node's tag.
    unsafe {
        let statement = &*passed;
        let node = statement.node();
        let next = match nodes::tag(node) {
            T_AlterTableStmt => alter::table(statement, node.cast()),
            _ => Next::from(is_done_here(statement, node)),
        };
        match next {
            Next::Done => true,
            Next::PassOn => false,
            Next::PassOnAs(node) => {
                passed.replace(node);
                false
            }
        }
    }
}

/// Does a statement that is not ALTER TABLE; false when it is for PostgreSQL alone.
unsafe fn is_done_here(statement: &Statement, node: *mut pg_sys::Node) -> bool {
    // SAFETY: a live statement and its node; each cast follows the node's tag.
    unsafe {
        match nodes::tag(node) {
            T_CreateStmt => create_table::plain(statement, node.cast()),
            T_CreateForeignTableStmt => create_table::foreign(statement, node.cast()),
            T_CreateTableAsStmt => create_table::from_query(statement, node.cast()),
            T_ExplainStmt => create_table::explained(statement, node.cast()),
            T_IndexStmt => index::create(statement, node.cast()),
            T_AlterDomainStmt => domain::alter(statement, node.cast()),
            T_ReassignOwnedStmt => alter::reassign_owned(statement, node),
            T_DropStmt => drop::statement(statement, node.cast()),
            T_CommentStmt => maintenance::comment(statement, node.cast()),
            T_CopyStmt => copy::statement(statement, node.cast()),
            T_VacuumStmt => maintenance::vacuum(statement, node.cast()),
            T_ReindexStmt => maintenance::reindex(statement, node.cast()),
            T_ClusterStmt => maintenance::cluster(node.cast()),
            T_LockStmt => lock::statement(statement, node.cast()),
            T_CreatePolicyStmt => attached::create_policy(node.cast()),
            T_CreateTrigStmt => attached::create_trigger(node.cast()),
            T_RuleStmt => attached::create_rule(node.cast()),
            T_CreatePublicationStmt => {
                let node = node.cast::<pg_sys::CreatePublicationStmt>();
                if (*node).for_all_tables {
                    attached::warn_of_tables_left_out();
                }
                attached::publish((*node).pubobjects)
            }
            T_AlterPublicationStmt => {
                let node = node.cast::<pg_sys::AlterPublicationStmt>();
                (*node).action != pg_sys::AlterPublicationAction::AP_DropObjects
                    && attached::publish((*node).pubobjects)
            }
            T_CreatedbStmt => database::create(node.cast()),
            T_AlterFdwStmt => identity::refuse_other_handler(node.cast()),
            T_LoadStmt => {
                compiled::refuse_other_hooks();
                false
            }
            _ => false,
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

    /// Whether the statement stands alone or at the top of a multi-statement string.
    pub fn is_top_level(&self) -> bool {
        self.context == pg_sys::ProcessUtilityContext::PROCESS_UTILITY_TOPLEVEL
    }

    /// Whether core has made it as a part of another statement.
    pub fn is_part(&self) -> bool {
        self.context == pg_sys::ProcessUtilityContext::PROCESS_UTILITY_SUBCOMMAND
    }

    /// The text of the query string.
    pub fn query_string(&self) -> *const c_char {
        self.query_string
    }

    /// Parameters of the statement.
    pub fn params(&self) -> pg_sys::ParamListInfo {
        self.params
    }

    /// Ephemeral named relations the statement can see.
    pub fn query_environment(&self) -> *mut pg_sys::QueryEnvironment {
        self.query_environment
    }

    /// Says what the client is told.
    pub unsafe fn complete(&self, tag: pg_sys::CommandTag::Type, rows: u64) {
        if !self.completion.is_null() {
            // SAFETY: the caller's completion, which PostgreSQL wants filled.
            unsafe { pg_sys::SetQueryCompletion(self.completion, tag, rows) };
        }
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

    /// Has core alter a locked table once more, as a part of this statement: event triggers are not fired again, and no name is looked up.
    pub unsafe fn alter_further(
        &self,
        node: *mut pg_sys::AlterTableStmt,
        relid: pg_sys::Oid,
        lock: pg_sys::LOCKMODE,
    ) {
        // SAFETY: the caller owns the node and holds the lock; event triggers are told as core tells them.
        unsafe {
            let mut context = pg_sys::AlterTableUtilityContext {
                pstmt: self.plan_of(node),
                queryString: self.query_string,
                relid,
                params: self.params,
                queryEnv: self.query_environment,
            };
            pg_sys::EventTriggerAlterTableStart(node.cast());
            pg_sys::EventTriggerAlterTableRelid(relid);
            pg_sys::AlterTable(node, lock, &raw mut context);
            pg_sys::EventTriggerAlterTableEnd();
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

/// What core asks before a statement that writes the catalog; for those that do not go through core.
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
