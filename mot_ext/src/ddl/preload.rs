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
use crate::pg::local::ProcessLocal;
use crate::pg::{nodes, version};
use crate::{errors, shared_memory, storage};
use pgrx::pg_sys::AlterTableType::{AT_AttachPartition, AT_DetachPartition};
use pgrx::pg_sys::NodeTag::*;
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
    unsafe {
        let context = (*fcinfo).context;
        if context.is_null() || (*context).type_ != T_EventTriggerData {
            return;
        }
        let statement = (*context.cast::<pg_sys::EventTriggerData>()).parsetree;
        if changes_definition(statement) {
            errors::definition_not_preloaded();
        }
        arm();
    }
}

/// Whether a statement's text names a memory-optimized table in order to change it. Where rows
/// would be read (ALTER DOMAIN, partitions), the scan of the table is refused.
unsafe fn changes_definition(statement: *mut pg_sys::Node) -> bool {
    // SAFETY: a live parse tree; casts follow the tags.
    unsafe {
        match (*statement).type_ {
            T_CreateForeignTableStmt => {
                let statement = &*statement.cast::<pg_sys::CreateForeignTableStmt>();
                let server = pg_sys::GetForeignServerByName(statement.servername, true);
                !server.is_null() && earlier_build::is_our_server((*server).serverid)
            }
            T_IndexStmt => {
                let relation = (*statement.cast::<pg_sys::IndexStmt>()).relation;
                is_ours(identity::lookup(relation))
            }
            T_AlterTableStmt => {
                let statement = &*statement.cast::<pg_sys::AlterTableStmt>();
                is_ours(identity::lookup(statement.relation)) || attaches_ours(statement.cmds)
            }
            _ => false,
        }
    }
}

/// Whether ALTER TABLE attaches a table of ours, or takes one off.
unsafe fn attaches_ours(commands: *mut pg_sys::List) -> bool {
    // SAFETY: commands of a live statement; such a one has the partition in its definition.
    unsafe {
        nodes::items::<pg_sys::AlterTableCmd>(commands)
            .into_iter()
            .filter(|command| {
                matches!((**command).subtype, AT_AttachPartition | AT_DetachPartition)
            })
            .any(|command| {
                let partition = (*command).def.cast::<pg_sys::PartitionCmd>();
                is_ours(identity::lookup((*partition).name))
            })
    }
}

fn is_ours(relation: pg_sys::Oid) -> bool {
    storage::is_mot_table(relation)
        || storage::is_mot_index(relation)
        || earlier_build::is_one(relation)
}

struct Hook {
    previous: Cell<pg_sys::object_access_hook_type>,
    is_installed: Cell<bool>,
    /// The transaction whose changes are checked.
    armed_in: Cell<pg_sys::LocalTransactionId>,
}
static HOOK: ProcessLocal<Hook> = ProcessLocal(Hook {
    previous: Cell::new(None),
    is_installed: Cell::new(false),
    armed_in: Cell::new(0),
});

unsafe fn arm() {
    // SAFETY: plain variables of this process, which runs a transaction and so has a PGPROC.
    unsafe {
        if !HOOK.is_installed.replace(true) {
            HOOK.previous.set(pg_sys::object_access_hook);
            pg_sys::object_access_hook = Some(object_access);
        }
        HOOK.armed_in.set(*version::local_transaction());
    }
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
    // SAFETY: the arguments are PostgreSQL's own.
    unsafe {
        if let Some(previous) = HOOK.previous.get() {
            previous(access, class, object, sub_object, argument);
        }
        if class == pg_sys::RelationRelationId
            && matches!(access, OAT_DROP | OAT_POST_ALTER | OAT_POST_CREATE)
            && HOOK.armed_in.get() == *version::local_transaction()
        {
            refuse(object);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn refuse(relation: pg_sys::Oid) {
    if is_ours(relation) {
        errors::definition_not_preloaded();
    }
}
