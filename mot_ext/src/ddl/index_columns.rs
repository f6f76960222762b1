//! The columns of an index: which attribute, collation, operator class and order each has, and what the index is called.
//!
//! Core's ComputeIndexAttrs, ChooseIndexColumnNames and ChooseIndexName, for the indexes a memory-optimized table can have.
use super::refuse::{raise, unsupported};
use super::{identity, nodes};
use crate::keys;
use crate::pg::{text, version};
use pgrx::pg_sys::NodeTag::*;
use pgrx::pg_sys::{self, SortByDir::*, SortByNulls::*};
use pgrx::prelude::*;
use std::ffi::c_char;

/// Bits of pg_index.indoption, from catalog/pg_index.h.
pub const INDOPTION_DESC: i16 = 1;
pub const INDOPTION_NULLS_FIRST: i16 = 2;

/// A key column as the catalog wants it.
pub struct Column {
    pub attnum: i16,
    pub collation: pg_sys::Oid,
    pub class: pg_sys::Oid,
    pub option: i16,
}

/// A key column's attribute, collation, operator class and order.
pub unsafe fn resolve(
    table: pg_sys::Relation,
    element: *mut pg_sys::IndexElem,
    am: pg_sys::Oid,
    is_constraint: bool,
) -> Column {
    // SAFETY: a live IndexElem and an open table.
    unsafe {
        let name = simple_column(element);
        let attribute = nodes::attributes(table)
            .iter()
            .find(|a| !a.attisdropped && nodes::name(&a.attname) == name);
        let Some(attribute) = attribute else {
            if pg_sys::SystemAttributeByName(nodes::pstrdup(&name)).is_null() {
                let in_key = if is_constraint { " named in key" } else { "" };
                raise(
                    PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                    format!("column \"{name}\"{in_key} does not exist"),
                    None,
                    None,
                );
            }
            unsupported(
                "index creation on system columns is not supported",
                "Index a column of the table.",
            );
        };
        if version::is_virtual(attribute) {
            unsupported(
                "indexes on virtual generated columns are not supported",
                "Make the generated column a STORED one.",
            );
        }
        if !(*element).opclassopts.is_null() {
            unsupported(
                "operator class options are not supported on memory-optimized tables",
                "Leave the options out.",
            );
        }
        let mut collation = attribute.attcollation;
        if !(*element).collation.is_null() {
            if collation == pg_sys::InvalidOid {
                raise(
                    PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                    format!(
                        "collations are not supported by type {}",
                        type_name(attribute.atttypid)
                    ),
                    None,
                    None,
                );
            }
            collation = pg_sys::get_collation_oid((*element).collation, false);
        }
        if collation != pg_sys::InvalidOid && !pg_sys::get_collation_isdeterministic(collation) {
            unsupported(
                "nondeterministic collations are not supported in indexes of memory-optimized tables",
                "Use a deterministic collation: keys are equal when their bytes are.",
            );
        }
        let class = operator_class(element, attribute.atttypid, am);
        let mut option = 0;
        let descending = (*element).ordering == SORTBY_DESC;
        if descending {
            option |= INDOPTION_DESC;
        }
        let nulls = (*element).nulls_ordering;
        if nulls == SORTBY_NULLS_FIRST || (nulls == SORTBY_NULLS_DEFAULT && descending) {
            option |= INDOPTION_NULLS_FIRST;
        }
        Column {
            attnum: attribute.attnum,
            collation,
            class,
            option,
        }
    }
}

/// The column an element names, also written as `(column)`; expressions are refused.
unsafe fn simple_column(element: *mut pg_sys::IndexElem) -> String {
    // SAFETY: a live IndexElem, cast by tag.
    unsafe {
        if !(*element).name.is_null() {
            return nodes::text((*element).name);
        }
        let mut expression = (*element).expr;
        if nodes::tag(expression) == T_CollateClause {
            let clause = expression.cast::<pg_sys::CollateClause>();
            if (*element).collation.is_null() {
                (*element).collation = (*clause).collname;
            }
            expression = (*clause).arg;
        }
        if !expression.is_null() && nodes::tag(expression) == T_ColumnRef {
            let fields =
                nodes::items::<pg_sys::Node>((*expression.cast::<pg_sys::ColumnRef>()).fields);
            if let [field] = fields[..]
                && nodes::tag(field) == T_String
            {
                return nodes::text(nodes::string(field));
            }
        }
        unsupported(
            "indexes on expressions are not supported on memory-optimized tables",
            "Add a generated column with the expression and index that column.",
        )
    }
}

/// The operator class of a column: ours for the type, by default or by name. A type whose order is not the one our class
/// gives (citext, say, which is text to the type system) is refused.
unsafe fn operator_class(
    element: *mut pg_sys::IndexElem,
    type_oid: pg_sys::Oid,
    am: pg_sys::Oid,
) -> pg_sys::Oid {
    // SAFETY: a live IndexElem; catalog look-ups.
    unsafe {
        let class = if (*element).opclass.is_null() || names_default_order(element, type_oid, am) {
            pg_sys::GetDefaultOpClass(type_oid, am)
        } else {
            pg_sys::ResolveOpClass(
                (*element).opclass,
                type_oid,
                identity::INDEX_METHOD.as_ptr(),
                am,
            )
        };
        let refuse = || -> ! {
            unsupported(
                format!(
                    "columns of type {} cannot be indexed in memory-optimized tables",
                    type_name(type_oid)
                ),
                "Key columns can be of the built-in scalar types: numbers, dates and times, strings, uuid, bytea, network addresses.",
            )
        };
        if class == pg_sys::InvalidOid {
            refuse();
        }
        let input = pg_sys::get_opclass_input_type(class);
        let order = pg_sys::lookup_type_cache(type_oid, pg_sys::TYPECACHE_BTREE_OPFAMILY as i32);
        let ours = pg_sys::lookup_type_cache(input, pg_sys::TYPECACHE_BTREE_OPFAMILY as i32);
        if (*order).btree_opf != (*ours).btree_opf || keys::kind(input).is_none() {
            refuse();
        }
        class
    }
}

/// Whether an element names btree's operator class for the type's own order (`int4_ops`), and none of ours: it means ours for the type.
unsafe fn names_default_order(
    element: *mut pg_sys::IndexElem,
    type_oid: pg_sys::Oid,
    am: pg_sys::Oid,
) -> bool {
    // SAFETY: a live IndexElem with a class's name; catalog look-ups.
    unsafe {
        if pg_sys::get_opclass_oid(am, (*element).opclass, true) != pg_sys::InvalidOid {
            return false;
        }
        let named = pg_sys::get_opclass_oid(pg_sys::BTREE_AM_OID, (*element).opclass, true);
        let order = pg_sys::lookup_type_cache(type_oid, pg_sys::TYPECACHE_BTREE_OPFAMILY as i32);
        named != pg_sys::InvalidOid
            && pg_sys::get_opclass_family(named) == (*order).btree_opf
            && pg_sys::IsBinaryCoercible(type_oid, pg_sys::get_opclass_input_type(named))
    }
}

fn type_name(oid: pg_sys::Oid) -> String {
    // SAFETY: a catalog look-up that returns a palloc'd string.
    unsafe { nodes::text(pg_sys::format_type_be(oid)) }
}

/// Names of the index's own columns, as core's ChooseIndexColumnNames chooses them.
pub unsafe fn column_names(elements: &[*mut pg_sys::IndexElem]) -> Vec<*mut c_char> {
    let mut names: Vec<String> = Vec::new();
    for element in elements {
        // SAFETY: live elements of the statement.
        let original = unsafe {
            if (**element).indexcolname.is_null() {
                simple_column(*element)
            } else {
                nodes::text((**element).indexcolname)
            }
        };
        let mut name = original.clone();
        let mut number = 0;
        while names.contains(&name) {
            number += 1;
            let suffix = number.to_string();
            let room = pg_sys::NAMEDATALEN as usize - 1 - suffix.len();
            name = format!("{}{suffix}", text::clip(&original, room));
        }
        names.push(name);
    }
    // SAFETY: copies into the current memory context.
    names
        .iter()
        .map(|name| unsafe { nodes::pstrdup(name) })
        .collect()
}

/// The name core's ChooseIndexName gives an unnamed index.
pub unsafe fn choose_name(
    table: &str,
    namespace: pg_sys::Oid,
    names: &[*mut c_char],
    stmt: *mut pg_sys::IndexStmt,
) -> *mut c_char {
    // SAFETY: NUL-terminated names.
    unsafe {
        let table = nodes::pstrdup(table);
        if (*stmt).primary {
            return pg_sys::ChooseRelationName(
                table,
                std::ptr::null(),
                c"pkey".as_ptr(),
                namespace,
                true,
            );
        }
        let columns = names
            .iter()
            .map(|name| nodes::text(*name))
            .collect::<Vec<_>>()
            .join("_");
        let label = if (*stmt).isconstraint { c"key" } else { c"idx" };
        pg_sys::ChooseRelationName(
            table,
            nodes::pstrdup(&columns),
            label.as_ptr(),
            namespace,
            (*stmt).isconstraint,
        )
    }
}
