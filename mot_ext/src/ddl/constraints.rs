//! Taking PRIMARY KEY and UNIQUE out of a table definition, and turning them into index statements.
//!
//! Core refuses both on a foreign table while it analyses CREATE FOREIGN TABLE and ALTER TABLE. So they are taken out before
//! core sees the statement and become indexes right after it, in core's order: the primary key first, then the others as
//! written, a constraint that repeats an earlier one merged into it.
use super::refuse::{raise, unsupported};
use super::{identity, nodes};
use crate::pg::version;
use pgrx::pg_sys;
use pgrx::pg_sys::ConstrType::*;
use pgrx::pg_sys::NodeTag::*;
use pgrx::prelude::*;

/// Removes the index constraints of a column definition and returns them, with the column as their key.
/// Raises 0A000 for constraints no memory-optimized table can have.
pub unsafe fn take_from_column(column: *mut pg_sys::ColumnDef) -> Vec<*mut pg_sys::Constraint> {
    // SAFETY: a live ColumnDef of the statement's own copy.
    unsafe {
        let mut taken: Vec<*mut pg_sys::Constraint> = Vec::new();
        let mut kept = Vec::new();
        let mut last_was_taken = false;
        for constraint in nodes::items::<pg_sys::Constraint>((*column).constraints) {
            match (*constraint).contype {
                CONSTR_PRIMARY | CONSTR_UNIQUE => {
                    if (*constraint).keys.is_null() {
                        let key = pg_sys::makeString((*column).colname);
                        (*constraint).keys = nodes::list(&[key]);
                    }
                    taken.push(constraint);
                    last_was_taken = true;
                    continue;
                }
                CONSTR_ATTR_DEFERRABLE | CONSTR_ATTR_DEFERRED if last_was_taken => {
                    refuse_deferrable()
                }
                CONSTR_ATTR_NOT_DEFERRABLE | CONSTR_ATTR_IMMEDIATE if last_was_taken => continue,
                _ => refuse_foreign_key_and_exclusion(constraint),
            }
            last_was_taken = false;
            kept.push(constraint);
        }
        (*column).constraints = nodes::list(&kept);
        taken
    }
}

/// Removes the index constraints of a CREATE TABLE's element list, from columns and table constraints alike.
pub unsafe fn take_from_elements(
    elements: *mut pg_sys::List,
) -> (*mut pg_sys::List, Vec<*mut pg_sys::Constraint>) {
    // SAFETY: the elements of a CREATE TABLE statement's own copy, cast by tag.
    unsafe {
        let mut taken = Vec::new();
        let mut kept = Vec::new();
        for element in nodes::items::<pg_sys::Node>(elements) {
            match nodes::tag(element) {
                T_ColumnDef => taken.extend(take_from_column(element.cast())),
                T_Constraint if is_index_constraint(element.cast()) => {
                    taken.push(element.cast());
                    continue;
                }
                T_Constraint => refuse_foreign_key_and_exclusion(element.cast()),
                T_TableLikeClause => unsupported(
                    "LIKE is not supported for memory-optimized tables",
                    "Write the columns out.",
                ),
                _ => {}
            }
            kept.push(element);
        }
        mark_primary_key_columns(&mut kept, &taken);
        (nodes::list(&kept), taken)
    }
}

/// Whether a constraint is kept by an index.
pub unsafe fn is_index_constraint(constraint: *const pg_sys::Constraint) -> bool {
    // SAFETY: a live Constraint node.
    let kind = unsafe { (*constraint).contype };
    matches!(kind, CONSTR_PRIMARY | CONSTR_UNIQUE)
}

/// Raises 0A000 for FOREIGN KEY and EXCLUDE.
pub unsafe fn refuse_foreign_key_and_exclusion(constraint: *const pg_sys::Constraint) {
    // SAFETY: a live Constraint node.
    match unsafe { (*constraint).contype } {
        CONSTR_FOREIGN => unsupported(
            "foreign key constraints are not supported on memory-optimized tables",
            "Leave the FOREIGN KEY or REFERENCES clause out.",
        ),
        CONSTR_EXCLUSION => unsupported(
            "exclusion constraints are not supported on memory-optimized tables",
            "Use UNIQUE where equality is what must not repeat.",
        ),
        _ => {}
    }
}

/// Raises 0A000 for NOT NULL ... NOT VALID, which PostgreSQL 18 has: the indexes' keys rest on what NOT NULL says of every row.
pub unsafe fn refuse_unjudged_not_null(constraint: *const pg_sys::Constraint) {
    // SAFETY: a live Constraint node.
    let is_unjudged =
        unsafe { (*constraint).contype == CONSTR_NOTNULL && (*constraint).skip_validation };
    if is_unjudged {
        unsupported(
            "NOT NULL constraints that are NOT VALID are not supported on memory-optimized tables",
            "Leave NOT VALID out: all rows are in memory and are judged at once.",
        );
    }
}

fn refuse_deferrable() -> ! {
    unsupported(
        "deferrable unique constraints are not supported on memory-optimized tables",
        "Leave DEFERRABLE out: uniqueness is checked row by row.",
    )
}

/// A primary key makes its columns NOT NULL; core would have marked them here.
unsafe fn mark_primary_key_columns(
    elements: &mut Vec<*mut pg_sys::Node>,
    constraints: &[*mut pg_sys::Constraint],
) {
    // SAFETY: live nodes of the statement's copy, cast by tag.
    unsafe {
        let mut marks = Vec::new();
        for constraint in constraints
            .iter()
            .filter(|c| (***c).contype == CONSTR_PRIMARY)
        {
            for key in nodes::items::<pg_sys::Node>((**constraint).keys) {
                let key = nodes::text(nodes::string(key));
                for element in elements.iter().filter(|e| nodes::tag(**e) == T_ColumnDef) {
                    let column = element.cast::<pg_sys::ColumnDef>();
                    if nodes::text((*column).colname) == key {
                        marks.extend(version::make_not_null(column));
                    }
                }
            }
        }
        elements.extend(marks);
    }
}

/// A constraint to make: its index statement, or the index that is already there (`USING INDEX`).
pub struct Request {
    pub statement: *mut pg_sys::IndexStmt,
    /// Name of an existing index, or NULL.
    pub existing: *mut std::ffi::c_char,
}

/// The index statements of some constraints, in the order to run them.
pub unsafe fn index_requests(
    table: *mut pg_sys::RangeVar,
    constraints: &[*mut pg_sys::Constraint],
) -> Vec<Request> {
    // SAFETY: live Constraint nodes of the statement's copy.
    unsafe {
        let mut requests: Vec<Request> = Vec::new();
        let (primary, others): (Vec<*mut pg_sys::Constraint>, Vec<_>) = constraints
            .iter()
            .copied()
            .partition(|c| (**c).contype == CONSTR_PRIMARY);
        if primary.len() > 1 {
            raise(
                PgSqlErrorCode::ERRCODE_INVALID_TABLE_DEFINITION,
                format!(
                    "multiple primary keys for table \"{}\" are not allowed",
                    nodes::text((*table).relname)
                ),
                None,
                None,
            );
        }
        for constraint in primary.into_iter().chain(others) {
            let statement = index_statement(table, constraint);
            let existing = (*constraint).indexname;
            let repeated = requests.iter().find(|prior| {
                existing.is_null()
                    && prior.existing.is_null()
                    && (*prior.statement).nulls_not_distinct == (*statement).nulls_not_distinct
                    && pg_sys::equal(
                        (*prior.statement).indexParams.cast(),
                        (*statement).indexParams.cast(),
                    )
            });
            match repeated {
                Some(prior) if (*prior.statement).idxname.is_null() => {
                    (*prior.statement).idxname = (*statement).idxname;
                }
                Some(_) => {}
                None => requests.push(Request {
                    statement,
                    existing,
                }),
            }
        }
        requests
    }
}

unsafe fn index_statement(
    table: *mut pg_sys::RangeVar,
    constraint: *mut pg_sys::Constraint,
) -> *mut pg_sys::IndexStmt {
    // SAFETY: a live Constraint node; the new nodes are ours.
    unsafe {
        if (*constraint).deferrable || (*constraint).initdeferred {
            refuse_deferrable();
        }
        if version::is_temporal(&*constraint) {
            unsupported(
                "WITHOUT OVERLAPS is not supported on memory-optimized tables",
                "Use PRIMARY KEY or UNIQUE over columns where equality is what must not repeat.",
            );
        }
        let statement = nodes::make::<pg_sys::IndexStmt>(T_IndexStmt);
        (*statement).unique = true;
        (*statement).primary = (*constraint).contype == CONSTR_PRIMARY;
        (*statement).isconstraint = true;
        (*statement).nulls_not_distinct = (*constraint).nulls_not_distinct;
        (*statement).idxname = (*constraint).conname;
        (*statement).relation = table;
        (*statement).accessMethod = pg_sys::pstrdup(identity::INDEX_METHOD.as_ptr());
        (*statement).options = (*constraint).options;
        (*statement).tableSpace = (*constraint).indexspace;
        if !(*constraint).including.is_null() {
            super::index::refuse_include();
        }
        let mut elements = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        for key in nodes::items::<pg_sys::Node>((*constraint).keys) {
            let name = nodes::string(key);
            let text = nodes::text(name);
            if seen.contains(&text) {
                let kind = if (*statement).primary {
                    "primary key"
                } else {
                    "unique"
                };
                raise(
                    PgSqlErrorCode::ERRCODE_DUPLICATE_COLUMN,
                    format!("column \"{text}\" appears twice in {kind} constraint"),
                    None,
                    None,
                );
            }
            seen.push(text);
            let element = nodes::make::<pg_sys::IndexElem>(T_IndexElem);
            (*element).name = name;
            elements.push(element);
        }
        (*statement).indexParams = nodes::list(&elements);
        statement
    }
}
