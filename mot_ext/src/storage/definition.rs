//! From catalog rows to the engine's definition of an index. Here each key column gets its kind, or
//! labels.
use super::computed_keys::{is_computed, is_on_expressions};
use super::{core_keys, file_of};
use crate::keys::IndexColumn;
use crate::pg::{self, version};
use mot_engine::FileKey;
use mot_engine::key::{IndexDefinition, KeyColumn, KeyKind};
use pgrx::pg_sys;

/// Flags of `pg_index.indoption`.
const INDOPTION_DESC: i16 = 1;
const INDOPTION_NULLS_FIRST: i16 = 2;

/// The definition of an open index on a table that the caller has open: what the engine needs to
/// build keys from rows.
pub unsafe fn index_definition(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
) -> IndexDefinition {
    // SAFETY: both relations are open; an index has as many keys, options and classes as its form
    // says.
    unsafe {
        let form = &*(*index).rd_index;
        let is_computed = is_computed(index);
        // An index that has storage keeps its encoding, or its labels, until it is built anew,
        // whatever the catalog says of the type by now.
        let stored = super::definition_of(index);
        let mut columns = Vec::with_capacity(form.indnkeyatts as usize);
        let mut last = 0;
        for position in 0..form.indnkeyatts as usize {
            let attnum = form.indkey.values.as_slice(form.indnatts as usize)[position];
            let column = IndexColumn::of(crate::pg::relation::Relation::enter(index), position);
            let encoded = column.kind_in(is_computed);
            let kind = match stored.map(|stored| stored.columns[position].kind) {
                Some(KeyKind::Label) => KeyKind::Label,
                Some(kind) => encoded.unwrap_or(kind),
                None if column.has_encoding(is_computed) => encoded.unwrap_or(KeyKind::Label),
                None => KeyKind::Label,
            };
            let option = *(*index).rd_indoption.add(position);
            let attnum = if is_on_expressions(index) { 0 } else { attnum };
            columns.push(KeyColumn {
                attnum: attnum as u16,
                kind,
                descending: option & INDOPTION_DESC != 0,
                nulls_first: option & INDOPTION_NULLS_FIRST != 0,
                nullable: is_computed
                    || !version::promises_no_null((*table).rd_att, attnum as usize - 1),
                collation: match kind {
                    KeyKind::Label => None,
                    _ => column.collation(is_computed),
                },
            });
            last = last.max(attnum as usize);
        }
        // Labels of one file must not be compared with those of another. Each build gives all rows
        // new labels, so their number is the file's.
        let has_labels = columns.iter().any(|column| column.kind == KeyKind::Label);
        IndexDefinition {
            relation: (*index).rd_id.to_u32(),
            file: FileKey::NONE,
            unique: core_keys::is_kept_unique(table, index),
            nulls_not_distinct: form.indnullsnotdistinct,
            columns,
            layout: pg::attribute_layouts((*table).rd_att, last),
            missing: Vec::new(),
            computed: is_computed.then(|| match has_labels {
                true => file_of(index).relation,
                false => (*index).rd_id.to_u32(),
            }),
        }
    }
}
