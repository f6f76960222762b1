//! From catalog rows to the engine's definition of an index. Here each key column gets its kind, or
//! labels.
use super::computed_keys::{is_computed, is_on_expressions};
use super::{core_keys, file_of};
use crate::keys::IndexColumn;
use crate::pg::relation::Relation;
use crate::pg::{self, version};
use mot_engine::FileKey;
use mot_engine::key::{IndexDefinition, KeyColumn, KeyKind};

/// Flags of `pg_index.indoption`.
const INDOPTION_DESC: i16 = 1;
const INDOPTION_NULLS_FIRST: i16 = 2;

/// The definition of an index of a table: what the engine needs to build keys from rows.
pub fn index_definition(table: Relation<'_>, index: Relation<'_>) -> IndexDefinition {
    assert_eq!(index.table(), table.oid());
    let is_computed = is_computed(index);
    let is_on_expressions = is_on_expressions(index);
    // An index that has storage keeps its encoding, or its labels, until it is built anew, whatever
    // the catalog says of the type by now.
    let stored = super::definition_of(index);
    let form = index.index_row();
    let mut columns = Vec::with_capacity(form.indnkeyatts as usize);
    for position in 0..form.indnkeyatts as usize {
        let stored = stored.map(|stored| stored.columns[position].kind);
        let column = IndexColumn::of(index, position);
        let kind = kind_of(column, stored, is_computed);
        let attnum = match is_on_expressions {
            true => 0,
            false => index.index_columns()[position] as u16,
        };
        let order = index.column_order(position);
        columns.push(KeyColumn {
            attnum,
            kind,
            descending: order & INDOPTION_DESC != 0,
            nulls_first: order & INDOPTION_NULLS_FIRST != 0,
            // SAFETY: an index whose keys are not computed is on columns of its table.
            nullable: is_computed
                || unsafe { !version::promises_no_null(table.row_type(), attnum as usize - 1) },
            collation: match kind {
                KeyKind::Label => None,
                _ => column.collation(is_computed),
            },
        });
    }
    let last = columns.iter().map(|column| column.attnum).max();
    // Labels of one file must not be compared with those of another. Each build gives all rows new
    // labels, so their number is the file's.
    let has_labels = columns.iter().any(|column| column.kind == KeyKind::Label);
    IndexDefinition {
        relation: index.oid().to_u32(),
        file: FileKey::NONE,
        unique: core_keys::is_kept_unique(table, index),
        nulls_not_distinct: form.indnullsnotdistinct,
        // SAFETY: the table's row type, which has the columns of its index.
        layout: unsafe {
            pg::attribute_layouts(table.row_type(), usize::from(last.unwrap_or_default()))
        },
        columns,
        missing: Vec::new(),
        computed: is_computed.then(|| match has_labels {
            true => file_of(index).relation,
            false => index.oid().to_u32(),
        }),
    }
}

/// The kind of a key column, of an index that may be stored.
fn kind_of(column: IndexColumn, stored: Option<KeyKind>, is_computed: bool) -> KeyKind {
    let encoded = column.kind_in(is_computed);
    match stored {
        Some(KeyKind::Label) => KeyKind::Label,
        Some(kind) => encoded.unwrap_or(kind),
        None if column.has_encoding(is_computed) => encoded.unwrap_or(KeyKind::Label),
        None => KeyKind::Label,
    }
}
