//! VACUUM, ANALYZE, REINDEX, CLUSTER and COMMENT on memory-optimized tables: what tools run without asking what kind of table it is.
//!
//! | statement | here |
//! |---|---|
//! | VACUUM | accepted; there is nothing to do, dead versions go by themselves. With ANALYZE it runs ANALYZE |
//! | ANALYZE without a list | also analyzes the memory-optimized tables, which core leaves out |
//! | REINDEX | accepted, does nothing: an index has no file that could rot, and each start builds it anew |
//! | CLUSTER | 0A000 |
//! | COMMENT ON TABLE | works; core asks for COMMENT ON FOREIGN TABLE |
use super::refuse::unsupported;
use super::utility::Statement;
use super::{drop, identity, latest, nodes};
use crate::pg::version;
use pgrx::pg_sys::NodeTag::*;
use pgrx::pg_sys::{self, ObjectType::*, ReindexObjectType::*};

/// COMMENT ON TABLE.
pub unsafe fn comment(statement: &Statement, node: *mut pg_sys::CommentStmt) -> bool {
    // SAFETY: a live node of this type; a table's object is a list of names.
    unsafe {
        if (*node).objtype != OBJECT_TABLE
            || !identity::is_mot_table(drop::named((*node).object.cast()))
        {
            return false;
        }
        let node = nodes::copy(node);
        (*node).objtype = OBJECT_FOREIGN_TABLE;
        statement.run(node);
        true
    }
}

/// VACUUM and ANALYZE.
pub unsafe fn vacuum(statement: &Statement, node: *mut pg_sys::VacuumStmt) -> bool {
    // SAFETY: a live node of this type; a VACUUM commits transactions of its own, so what must survive it is allocated in the
    // portal's memory, which is current here.
    unsafe {
        let is_vacuum = (*node).is_vacuumcmd;
        let context = pg_sys::CurrentMemoryContext;
        let analyzes = !is_vacuum || option_is_set((*node).options, "analyze");
        let targets = nodes::items::<pg_sys::VacuumRelation>((*node).rels);
        if targets.is_empty() {
            if !analyzes {
                return false;
            }
            let ours = all_tables();
            statement.run(nodes::copy(node));
            pg_sys::MemoryContextSwitchTo(context);
            analyze(statement, node, &ours);
            return true;
        }
        if !is_vacuum {
            return false;
        }
        let (ours, others): (Vec<_>, Vec<_>) = targets
            .into_iter()
            .partition(|target| identity::is_mot_table(identity::lookup((**target).relation)));
        if ours.is_empty() {
            return false;
        }
        pg_sys::PreventInTransactionBlock(statement.is_top_level(), c"VACUUM".as_ptr());
        let ours: Vec<_> = ours.into_iter().map(|target| nodes::copy(target)).collect();
        if !others.is_empty() {
            let rest = nodes::copy(node);
            (*rest).rels = nodes::list(&others);
            statement.run(nodes::copy(rest));
        }
        if analyzes {
            pg_sys::MemoryContextSwitchTo(context);
            analyze(statement, node, &ours);
        }
        true
    }
}

/// Runs ANALYZE of some tables with the statement's VERBOSE and SKIP_LOCKED.
unsafe fn analyze(
    statement: &Statement,
    node: *mut pg_sys::VacuumStmt,
    targets: &[*mut pg_sys::VacuumRelation],
) {
    if targets.is_empty() {
        return;
    }
    // SAFETY: a live node of this type; the new one is ours.
    unsafe {
        let kept: Vec<_> = nodes::items::<pg_sys::DefElem>((*node).options)
            .into_iter()
            .filter(|option| {
                matches!(
                    nodes::text((**option).defname).as_str(),
                    "verbose" | "skip_locked"
                )
            })
            .map(|option| nodes::copy(option))
            .collect();
        let analyze = nodes::make::<pg_sys::VacuumStmt>(T_VacuumStmt);
        (*analyze).options = nodes::list(&kept);
        (*analyze).rels = nodes::list(targets);
        (*analyze).is_vacuumcmd = false;
        // A VACUUM before it has ended the statement's snapshot with its transaction. If ANALYZE needs transactions of its own, it ends
        // this one in turn.
        let needs_snapshot = !pg_sys::ActiveSnapshotSet();
        if needs_snapshot {
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        }
        statement.run(analyze);
        if needs_snapshot && pg_sys::ActiveSnapshotSet() {
            pg_sys::PopActiveSnapshot();
        }
    }
}

/// Every memory-optimized table of the database that the user may analyze, as ANALYZE targets.
unsafe fn all_tables() -> Vec<*mut pg_sys::VacuumRelation> {
    // SAFETY: a snapshot is what the queries need, and VACUUM comes without one.
    let oids = unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let query = format!(
            "
        SELECT f.ftrelid FROM pg_catalog.pg_foreign_table f
        JOIN pg_catalog.pg_foreign_server s ON s.oid = f.ftserver
        JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw
        WHERE w.fdwhandler IN ({}) ORDER BY f.ftrelid",
            identity::handlers()
        );
        let oids = latest::select(&query, &[], |row| row.get::<pg_sys::Oid>(1));
        pg_sys::PopActiveSnapshot();
        oids
    };
    // Whose tables they may be: so core has it for a database's owner.
    let owns_database = version::owns_database();
    let mut targets = Vec::new();
    for oid in oids.into_iter().flatten() {
        // SAFETY: a catalog look-up, and a fresh node.
        unsafe {
            if version::may_maintain(oid) || owns_database {
                let target = nodes::make::<pg_sys::VacuumRelation>(T_VacuumRelation);
                (*target).oid = oid;
                targets.push(target);
            }
        }
    }
    targets
}

/// REINDEX of one index or table.
pub unsafe fn reindex(statement: &Statement, node: *mut pg_sys::ReindexStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        if !matches!((*node).kind, REINDEX_OBJECT_INDEX | REINDEX_OBJECT_TABLE) {
            // SCHEMA, DATABASE and SYSTEM pick heap tables only.
            return false;
        }
        let relid = identity::lookup((*node).relation);
        let is_table = (*node).kind == REINDEX_OBJECT_TABLE;
        if !(is_table && identity::is_mot_table(relid)
            || !is_table && identity::is_mot_index(relid))
        {
            return false;
        }
        if option_is_set((*node).params, "concurrently") {
            unsupported(
                "REINDEX CONCURRENTLY is not supported on memory-optimized tables",
                "No REINDEX is needed: the indexes are kept in memory and built anew at every start.",
            );
        }
        let callback = Some(identity::check_maintenance as unsafe extern "C-unwind" fn(_, _, _, _));
        if is_table {
            pg_sys::RangeVarGetRelidExtended(
                (*node).relation,
                pg_sys::ShareLock as i32,
                0,
                callback,
                std::ptr::null_mut(),
            );
        } else {
            statement.run(nodes::copy(node));
        }
        true
    }
}

/// CLUSTER of a memory-optimized table.
pub unsafe fn cluster(node: *mut pg_sys::ClusterStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        if !(*node).relation.is_null() && identity::is_mot_table(identity::lookup((*node).relation))
        {
            unsupported(
                "CLUSTER is not supported on memory-optimized tables",
                "An index already gives rows in its order, from memory.",
            );
        }
    }
    false
}

/// Whether a boolean option of a statement is given and on.
unsafe fn option_is_set(options: *mut pg_sys::List, name: &str) -> bool {
    // SAFETY: a live list of DefElem nodes.
    unsafe {
        nodes::items::<pg_sys::DefElem>(options)
            .into_iter()
            .any(|option| nodes::text((*option).defname) == name && pg_sys::defGetBoolean(option))
    }
}
