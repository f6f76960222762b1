//! DDL where the library is not preloaded: refused, since only the catalog would change. A DROP
//! would leave the rows behind, a column added with a DEFAULT would read NULL in old rows.
//!
//! Such a server has no hook of ours, so the extension has an event trigger. It fires before every
//! DDL statement of the database and calls a function of the library, which knows how it was
//! loaded; preloaded, it returns at once. If not:
//!
//! - Statements whose text names a memory-optimized table are refused from their parse tree.
//! - What reaches one in another way (DROP SCHEMA, DROP OWNED, ALTER TABLE of a parent) is refused
//!   in the object access hook. The hook is installed now, and armed for this transaction only: a
//!   user who disables the trigger, to give the tables up, is not stopped by what an earlier
//!   transaction of the session did.
//!
//! Single-user mode fires no event triggers. DROP DATABASE never does: the storages of its tables
//! stay until `mot` is preloaded again and finds them (`reclaim::orphans`).
use super::{earlier_build, identity};
use crate::pg::hook::Previous;
use crate::pg::local::ProcessLocal;
use crate::pg::local_transaction;
use crate::pg::node::{Any, List, Node};
use crate::{errors, shared_memory, storage};
use pgrx::pg_sys::AlterTableType::{AT_AttachPartition, AT_DetachPartition};
use pgrx::pg_sys::{self, ObjectAccessType::*};
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::{c_int, c_void};

#[pg_extern(sql = "
CREATE FUNCTION mot.require_preload() RETURNS event_trigger
  LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION mot.require_preload() IS 'refuses DDL on memory-optimized tables while the library mot is \
not preloaded';
CREATE EVENT TRIGGER mot_require_preload ON ddl_command_start EXECUTE FUNCTION mot.require_preload();
ALTER EVENT TRIGGER mot_require_preload ENABLE ALWAYS;
")]
fn require_preload(fcinfo: pg_sys::FunctionCallInfo) {
    if shared_memory::engine().is_some() {
        return;
    }
    // SAFETY: core's call information; an event trigger is called with its data as context.
    let context = unsafe { Node::enter_if_any((*fcinfo).context) };
    let Some(data) = context.and_then(Any::cast::<pg_sys::EventTriggerData>) else {
        return;
    };
    if data.parsetree().is_some_and(changes_definition) {
        errors::definition_not_preloaded();
    }
    arm();
}

/// Whether a statement's text names a memory-optimized table in order to change it. Where rows
/// would be read (ALTER DOMAIN, partitions), the scan of the table is refused.
fn changes_definition(statement: Any<'_>) -> bool {
    if let Some(statement) = statement.cast::<pg_sys::CreateForeignTableStmt>() {
        // SAFETY: a name of the statement's; core's copy of what the catalog has, or NULL.
        let server =
            unsafe { pg_sys::GetForeignServerByName(statement.servername(), true).as_ref() };
        server.is_some_and(|server| earlier_build::is_our_server(server.serverid))
    } else if let Some(statement) = statement.cast::<pg_sys::IndexStmt>() {
        is_ours(identity::lookup(statement.table()))
    } else if let Some(statement) = statement.cast::<pg_sys::AlterTableStmt>() {
        is_ours(identity::lookup(statement.table())) || attaches_ours(statement.cmds())
    } else {
        false
    }
}

/// Whether ALTER TABLE attaches a table of ours, or takes one off.
fn attaches_ours(commands: List<'_, pg_sys::AlterTableCmd>) -> bool {
    commands
        .iter()
        .filter(|command| matches!(command.subtype(), AT_AttachPartition | AT_DetachPartition))
        .any(|command| is_ours(identity::lookup(command.partition())))
}

fn is_ours(relation: pg_sys::Oid) -> bool {
    storage::is_mot_table(relation)
        || storage::is_mot_index(relation)
        || earlier_build::is_one(relation)
}

static PREVIOUS: Previous<pg_sys::object_access_hook_type> = Previous::new(None);

struct Armed {
    is_installed: Cell<bool>,
    /// The transaction whose changes are checked.
    transaction: Cell<pg_sys::LocalTransactionId>,
}
static ARMED: ProcessLocal<Armed> = ProcessLocal(Armed {
    is_installed: Cell::new(false),
    transaction: Cell::new(0),
});

fn arm() {
    if !ARMED.is_installed.replace(true) {
        // SAFETY: the hook's variable, on this process's one thread.
        unsafe { PREVIOUS.install(&raw mut pg_sys::object_access_hook, Some(object_access)) };
    }
    ARMED.transaction.set(local_transaction());
}

/// A plain frame: errors of other hooks jump over it.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn object_access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    sub_object: c_int,
    argument: *mut c_void,
) {
    if let Some(previous) = PREVIOUS.get() {
        // SAFETY: the arguments are PostgreSQL's own.
        unsafe { previous(access, class, object, sub_object, argument) };
    }
    if class == pg_sys::RelationRelationId
        && matches!(access, OAT_DROP | OAT_POST_ALTER | OAT_POST_CREATE)
        && ARMED.transaction.get() == local_transaction()
    {
        refuse(object);
    }
}

#[pg_guard]
extern "C-unwind" fn refuse(relation: pg_sys::Oid) {
    if is_ours(relation) {
        errors::definition_not_preloaded();
    }
}
