//! LOCK TABLE: core refuses foreign tables, and passes them over below a view.
use super::refuse::raise;
use super::utility::Statement;
use super::{identity, inheritance, nodes};
use crate::pg::{query, version};
use pgrx::pg_sys::{self, ObjectType::*};
use pgrx::prelude::*;

/// LOCK TABLE with memory-optimized tables in its list, or with views, each in its turn.
pub unsafe fn statement(statement: &Statement, node: *mut pg_sys::LockStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        let relations = nodes::items::<pg_sys::RangeVar>((*node).relations);
        let may_concern = |relation: &*mut pg_sys::RangeVar| {
            let relid = identity::lookup(*relation);
            identity::is_mot_table(relid) || is_view(relid)
        };
        if !relations.iter().any(may_concern) {
            return false;
        }
        pg_sys::RequireTransactionBlock(statement.is_top_level(), c"LOCK TABLE".as_ptr());
        let (mode, nowait) = ((*node).mode, (*node).nowait);
        for relation in relations {
            let relid = identity::lookup(relation);
            if identity::is_mot_table(relid) {
                lock_table(relation, relid, mode, nowait);
                continue;
            }
            let one = nodes::copy(node);
            (*one).relations = nodes::list(&[nodes::copy(relation)]);
            statement.run(one);
            let relid = identity::lookup(relation);
            if is_view(relid) {
                lock_below(relid, mode, nowait);
            }
        }
        true
    }
}

fn is_view(relid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up.
    relid != pg_sys::InvalidOid
        && unsafe { pg_sys::get_rel_relkind(relid) } as u8 == pg_sys::RELKIND_VIEW
}

/// Core's LockTableAclCheck and lock, for one table and those that inherit from it.
unsafe fn lock_table(
    relation: *mut pg_sys::RangeVar,
    relid: pg_sys::Oid,
    mode: pg_sys::LOCKMODE,
    nowait: bool,
) {
    // SAFETY: catalog look-ups, then the lock; the name is checked again under the lock, as core does.
    unsafe {
        check_privileges(relid, pg_sys::GetUserId(), mode);
        let flags = if nowait {
            pg_sys::RVROption::RVR_NOWAIT
        } else {
            0
        };
        let locked =
            pg_sys::RangeVarGetRelidExtended(relation, mode, flags, None, std::ptr::null_mut());
        if locked != relid {
            raise(
                PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                format!(
                    "relation \"{}\" was replaced meanwhile",
                    nodes::text((*relation).relname)
                ),
                None,
                Some("Try again.".into()),
            );
        }
        if (*relation).inh {
            lock_children(relid, mode, nowait);
        }
    }
}

/// Of children nobody's rights are asked.
unsafe fn lock_children(relid: pg_sys::Oid, mode: pg_sys::LOCKMODE, nowait: bool) {
    // SAFETY: the table is locked.
    unsafe {
        for child in inheritance::find_all(relid, pg_sys::NoLock as i32) {
            if child != relid {
                lock_relation(child, mode, nowait);
            }
        }
    }
}

unsafe fn check_privileges(relid: pg_sys::Oid, user: pg_sys::Oid, mode: pg_sys::LOCKMODE) {
    // SAFETY: catalog look-ups.
    unsafe {
        let acl = pg_sys::pg_class_aclcheck(relid, user, version::lock_privileges(mode));
        if acl != pg_sys::AclResult::ACLCHECK_OK {
            pg_sys::aclcheck_error(acl, OBJECT_FOREIGN_TABLE, pg_sys::get_rel_name(relid));
        }
    }
}

unsafe fn lock_relation(relid: pg_sys::Oid, mode: pg_sys::LOCKMODE, nowait: bool) {
    // SAFETY: a relation's oid; may raise while it waits.
    unsafe {
        if !nowait {
            pg_sys::LockRelationOid(relid, mode);
        } else if !pg_sys::ConditionalLockRelationOid(relid, mode) {
            let name = nodes::text(pg_sys::get_rel_name(relid));
            raise(
                PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
                format!("could not obtain lock on relation \"{name}\""),
                None,
                None,
            );
        }
    }
}

/// What a view reads.
struct View {
    /// Whose rights to the tables are asked.
    user: pg_sys::Oid,
    reads: Vec<Read>,
}

/// A relation in a view's query.
struct Read {
    relid: pg_sys::Oid,
    /// By the view's query, as in core: core has not locked what became a view later.
    is_view: bool,
    /// Without ONLY.
    with_children: bool,
}

impl View {
    /// Of a view that is locked.
    unsafe fn of(relid: pg_sys::Oid) -> View {
        // SAFETY: the view's query lives as long as the view is open; what is kept of it is copied.
        unsafe {
            let opened = pg_sys::table_open(relid, pg_sys::NoLock as i32);
            let options = (*opened).rd_options.cast::<pg_sys::ViewOptions>();
            let asks_invoker = options.as_ref().is_some_and(|set| set.security_invoker);
            let user = if asks_invoker {
                pg_sys::GetUserId()
            } else {
                (*(*opened).rd_rel).relowner
            };
            let reads = query::relations(pg_sys::get_view_query(opened))
                .into_iter()
                .map(|entry| Read {
                    relid: (*entry).relid,
                    is_view: (*entry).relkind as u8 == pg_sys::RELKIND_VIEW,
                    with_children: (*entry).inh,
                })
                .collect();
            pg_sys::table_close(opened, pg_sys::NoLock as i32);
            View { user, reads }
        }
    }
}

/// Locks the memory-optimized tables that a view reads, through other views, too. Core has locked the
/// views.
///
/// A view may read itself, directly or through others. Each view is looked at once.
unsafe fn lock_below(view: pg_sys::Oid, mode: pg_sys::LOCKMODE, nowait: bool) {
    let mut views = vec![view];
    let mut done = 0;
    while let Some(&next) = views.get(done) {
        done += 1;
        // SAFETY: core has locked the view.
        let view = unsafe { View::of(next) };
        for read in view.reads {
            if read.is_view {
                if !views.contains(&read.relid) {
                    views.push(read.relid);
                }
            } else if identity::is_mot_table(read.relid) {
                // SAFETY: the oid of a table, which is locked before its children are looked for.
                unsafe {
                    check_privileges(read.relid, view.user, mode);
                    lock_relation(read.relid, mode, nowait);
                    if read.with_children {
                        lock_children(read.relid, mode, nowait);
                    }
                }
            }
        }
    }
}
