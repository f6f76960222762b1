//! Temporary tables: whose they are.
//!
//! A temporary table's storage is its session's alone. Others may drop the table, as core allows it
//! for what a session has left behind, and may plan with it. They cannot read or change it: heapam
//! finds that out where it would read a page.
use crate::errors;
use crate::pg::class_files::each_of_file;
use crate::pg::relation::Relation;
use crate::pg::version::table_am as version;
use mot_engine::RelationKey;
use pgrx::pg_sys;

/// The number of a temporary table's session, from 1, as [`mot_engine::RelationKey`] has it; 0 of
/// other relations.
pub fn backend_of(relation: Relation<'_>) -> u32 {
    // Core has -1 for a relation of no session.
    (relation.session() + 1) as u32
}

/// Whether an open relation is a temporary one of another session.
pub fn is_of_other_session(relation: Relation<'_>) -> bool {
    relation.persistence() == pg_sys::RELPERSISTENCE_TEMP && !relation.is_temporary_here()
}

/// Raises 0A000, in heapam's words, for a temporary table of another session.
pub fn refuse_other_session(relation: Relation<'_>) {
    if is_of_other_session(relation) {
        errors::temporary_of_other_session();
    }
}

/// The oid of a temporary table of this database by its storage's key; invalid if there is none.
pub fn oid_of(key: RelationKey) -> pg_sys::Oid {
    let mut found = pg_sys::InvalidOid;
    each_of_file(key.tablespace, key.relation, |form| {
        let is_temporary = form.relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP;
        if is_temporary && version::temporary_backend(form.relnamespace) == key.backend {
            found = form.oid;
        }
    });
    found
}
