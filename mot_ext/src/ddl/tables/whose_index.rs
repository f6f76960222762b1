//! Every index of a memory-optimized table is the engine's, whichever statement or C code makes it.
//!
//! Core makes it as a btree: keys, foreign keys and ON CONFLICT know no other kind, and the
//! operator classes are btree's. It calls the object access hook when the index's catalog rows are
//! written, before any entry is made. There the index is looked over, and given our access method.
//! Its operator classes stay btree's.
//!
//! What the engine cannot index is refused here, by the catalog's own description of the index. No
//! statement, dump or library gets around it.
use crate::errors::refuse::{self, unsupported};
use crate::index_am::access_method::{self, Method};
use crate::index_am::flips;
use crate::keys::{self, IndexColumn};
use crate::pg::nodes;
use crate::storage;
use crate::storage::computed_keys::is_computed;
use pgrx::pg_sys;
use pgrx::pg_sys::errcodes::PgSqlErrorCode;

/// The object access hook of a relation that was made: an index of a memory-optimized table becomes
/// the engine's.
///
/// The new catalog rows are not visible yet. Core makes them visible right after this call, so
/// doing so here changes nothing for other indexes.
///
/// # Safety
/// Core has just made the relation, and has it open.
pub unsafe fn created(relation: pg_sys::Oid) {
    // SAFETY: the entry is core's own, open, and valid: nothing has invalidated it since it was
    // made.
    unsafe {
        flips::end_for_rewrite(relation);
        if kind_of_open(relation) != pg_sys::RELKIND_INDEX
            || storage::index_method() == pg_sys::InvalidOid
        {
            return;
        }
        pg_sys::CommandCounterIncrement();
        let index = pg_sys::RelationIdGetRelation(relation);
        let table = (*(*index).rd_index).indrelid;
        if storage::is_mot_table(table) {
            refuse_unsupported(index);
            if (*(*index).rd_rel).relam != Method::Mot.oid() {
                access_method::write(relation, Method::Mot);
                access_method::refresh_routine(index);
            }
            if storage::has_storage(relation) {
                // Core gave it the file of an index that it drops, and builds nothing.
                storage::rebuild_reused_index(table, relation, storage::Repeated::Refused);
            }
            flips::created(table, relation);
        }
        pg_sys::RelationClose(index);
    }
}

/// The kind of a relation that core has open; 0: it has no entry.
unsafe fn kind_of_open(relation: pg_sys::Oid) -> u8 {
    // SAFETY: the entry is counted while it is read.
    unsafe {
        let opened = pg_sys::RelationIdGetRelation(relation);
        if opened.is_null() {
            return 0;
        }
        let kind = (*(*opened).rd_rel).relkind as u8;
        pg_sys::RelationClose(opened);
        kind
    }
}

/// Raises 0A000 for an index that the engine cannot keep.
///
/// # Safety
/// An open index.
pub unsafe fn refuse_unsupported(index: pg_sys::Relation) {
    // SAFETY: the caller's index is open.
    unsafe {
        refuse_method((*(*index).rd_rel).relam);
        let columns = (*(*index).rd_index).indnkeyatts as usize;
        for position in 0..columns {
            refuse_key(index, position);
        }
    }
}

/// Raises for another access method than btree, which stands for ours, and ours.
fn refuse_method(method: pg_sys::Oid) {
    if method == Method::Btree.oid() || method == Method::Mot.oid() {
        return;
    }
    // SAFETY: a catalog look-up that returns a palloc'd string.
    let name = unsafe { nodes::text(pg_sys::get_am_name(method)) };
    unsupported(
        format!("access method \"{name}\" is not supported on memory-optimized tables"),
        "Leave USING out: indexes of memory-optimized tables are ordered indexes in memory.",
    )
}

/// Raises for a key column whose values the engine cannot order as its operator class does.
unsafe fn refuse_key(index: pg_sys::Relation, position: usize) {
    // SAFETY: an open index with so many key columns (caller).
    unsafe {
        let column = IndexColumn::of(index, position);
        if column.kind().is_none() {
            let key_type = key_type(index, position);
            refuse::raise(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!(
                    "keys of type {} are not supported on memory-optimized tables",
                    type_name(key_type)
                ),
                Some(format!(
                    "Keys are byte strings. None is known that orders values of type {} as operator class {} does.",
                    type_name(column.unknown_type().unwrap_or(key_type)),
                    class_name(index, position)
                )),
                Some(KEY_TYPES.into()),
            );
        }
        if !keys::compares_bytes(column.family, column.input)
            && column.family != own_family(column.input)
        {
            let key_type = key_type(index, position);
            refuse::raise(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!(
                    "operator classes for other orders of type {} are not supported on memory-optimized tables",
                    type_name(key_type)
                ),
                Some(format!(
                    "Keys are byte strings in the order of the type's own operator class, and not of {}.",
                    class_name(index, position)
                )),
                Some("Use the type's own operator class.".into()),
            );
        }
        if column.lacks_collation(is_computed(index)) {
            refuse::raise(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "keys of this type are not supported under this collation, or as an expression, on memory-optimized tables",
                Some("Texts that differ may be equal, and keys have no bytes that are the same for such texts.".into()),
                Some("Texts can be keys under nondeterministic collations without rules, in a UTF8 database.".into()),
            );
        }
    }
}

/// What is said where a type cannot be a key.
const KEY_TYPES: &str = "Key columns can be of core's types, of citext, hstore, ltree, isn, cube, seg and vector, of types that core's functions compare, and of enums, arrays, ranges and row types of those.";

/// The name of a key column's operator class.
unsafe fn class_name(index: pg_sys::Relation, position: usize) -> String {
    let unnamed = || "of the index".to_owned();
    // SAFETY: an open index has a class for each key column (caller); the catalog's row is read
    // while it is held.
    unsafe {
        let mut is_null = false;
        let classes = pg_sys::SysCacheGetAttr(
            pg_sys::SysCacheIdentifier::INDEXRELID as i32,
            (*index).rd_indextuple,
            pg_sys::Anum_pg_index_indclass as i16,
            &raw mut is_null,
        );
        let classes = classes.cast_mut_ptr::<pg_sys::oidvector>();
        let class = (*classes).values.as_slice(position + 1)[position];
        let cache = pg_sys::SysCacheIdentifier::CLAOID as i32;
        let row = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(class));
        if row.is_null() {
            return unnamed();
        }
        let form = &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_opclass>(row);
        let name = nodes::text(form.opcname.data.as_ptr());
        pg_sys::ReleaseSysCache(row);
        name
    }
}

/// The btree family of a type's own order.
fn own_family(input: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: a catalog look-up; the entry lives as long as the process.
    unsafe {
        let wanted = pg_sys::TYPECACHE_BTREE_OPFAMILY as i32;
        (*pg_sys::lookup_type_cache(input, wanted)).btree_opf
    }
}

/// The type of a key column as the index has it.
unsafe fn key_type(index: pg_sys::Relation, position: usize) -> pg_sys::Oid {
    // SAFETY: an open index has a descriptor with its columns (caller).
    unsafe { nodes::attributes(index)[position].atttypid }
}

fn type_name(oid: pg_sys::Oid) -> String {
    // SAFETY: a catalog look-up that returns a palloc'd string.
    unsafe { nodes::text(pg_sys::format_type_be(oid)) }
}
