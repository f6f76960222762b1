//! What an index is made of. Its byte form is in `definition/bytes.rs`.
//!
//! Contract: a definition that was decoded, or that `validate` accepts, can be used without further
//! tests: kinds fit widths, and attribute numbers the layout.

mod bytes;

pub(crate) use bytes::without_names;

use super::kind::KeyKind;
use super::missing::{self, MissingValue};
use super::record::Record;
use crate::collation::Collation;
use crate::errors::EngineError;
use crate::ids::FileKey;

/// Most key columns of one index, as PostgreSQL's INDEX_MAX_KEYS.
pub const INDEX_COLUMNS_MAX: usize = 32;

/// Most attributes of one table, as PostgreSQL's MaxHeapAttributeNumber.
pub const TABLE_ATTRIBUTES_MAX: usize = 1600;

/// An index: which attributes make the key and how they are ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexDefinition {
    /// The index's oid in PostgreSQL's catalog.
    pub relation: u32,
    /// Its file, if it is on a table of the access method.
    pub file: FileKey,
    /// At most one live row per key.
    pub unique: bool,
    /// NULLs count as equal for uniqueness.
    pub nulls_not_distinct: bool,
    /// Key columns, most significant first.
    pub columns: Vec<KeyColumn>,
    /// Attributes 1..=the largest key attribute number: what is needed to find them in an image.
    pub layout: Vec<AttributeLayout>,
    /// What key columns are in rows that end before them, by attribute; NULL where nothing is said.
    pub missing: Vec<MissingValue>,
    /// For an index with computed keys: the number under which rows' tails have them
    /// (`computed.rs`). If it is on expressions or partial, its columns name no attributes, and
    /// there is no layout. If it is computed only because of labels, both are there.
    pub computed: Option<u32>,
}

/// One key column.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct KeyColumn {
    /// Attribute number in the table, from 1; 0 where the key is computed of expressions, or of
    /// some rows.
    pub attnum: u16,
    /// The type's order.
    pub kind: KeyKind,
    /// Largest value first.
    pub descending: bool,
    /// NULLs sort before all values (independent of `descending`, as in PostgreSQL's indoption).
    pub nulls_first: bool,
    /// Whether NULL can occur. A NOT NULL column saves one byte per key.
    pub nullable: bool,
    /// In whose order texts lie, or those that the values hold; `None`: in that of their bytes.
    pub collation: Option<Collation>,
}

impl KeyColumn {
    /// Whether a range of its values can leave out values of a list by their keys.
    pub fn can_narrow_lists(&self) -> bool {
        !self.orders_roughly() && self.kind != KeyKind::Label
    }

    /// Whether a collation orders texts of it, or in it.
    #[inline]
    pub fn has_collations(&self) -> bool {
        let record = self.kind.record();
        self.collation.is_some() || record.is_some_and(|record| record.has_collations())
    }

    /// Whether keys lie in the order of the column's values only as far as a first look goes: those
    /// that it calls equal lie side by side, by their bytes. So do texts ([`Collation::is_exact`]),
    /// and an enum's values, of which a first look shows NULL alone (`enums.rs`).
    #[inline]
    pub fn orders_roughly(&self) -> bool {
        self.kind == KeyKind::Enum
            || self
                .collation
                .is_some_and(|collation| !collation.is_exact())
    }
}

/// How an attribute lies in a heap tuple: pg_attribute's attlen, attalign, attbyval.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct AttributeLayout {
    /// Width in bytes; -1 is a varlena, -2 a C string.
    pub len: i16,
    /// Alignment in bytes: 1, 2, 4 or 8.
    pub align: u8,
    /// Whether the datum holds the value itself.
    pub by_value: bool,
}

const _: () = assert!(size_of::<AttributeLayout>() == 4);

impl AttributeLayout {
    /// The next place from `offset` on where the attribute may begin.
    #[inline(always)]
    pub fn align_up(self, offset: usize) -> usize {
        let mask = usize::from(self.align).wrapping_sub(1);
        (offset + mask) & !mask
    }
}

/// Where each attribute begins in a row without NULLs, from the row's data on, if that is the same
/// in all of them. For one of variable length it is where its padding begins, if it has any.
pub fn fixed_starts(layout: &[AttributeLayout]) -> impl Iterator<Item = Option<usize>> {
    layout.iter().scan(Some(0), |next, attribute| {
        let width = usize::try_from(attribute.len).ok();
        let start = match width {
            Some(_) => next.map(|next| attribute.align_up(next)),
            None => *next,
        };
        *next = start.zip(width).map(|(start, width)| start + width);
        Some(start)
    })
}

impl IndexDefinition {
    /// Whether each column names an attribute.
    pub(crate) fn is_of_columns(&self) -> bool {
        self.columns.iter().all(|column| column.attnum > 0)
    }

    /// Whether values of some column are known by their labels (`label.rs`).
    pub fn has_labels(&self) -> bool {
        (self.columns.iter()).any(|column| column.kind == KeyKind::Label)
    }

    /// The records of key columns, in order.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.columns
            .iter()
            .filter_map(|column| column.kind.record())
    }

    /// The first column from `start` on whose texts are ordered only roughly.
    pub fn rough_column(&self, start: usize) -> Option<usize> {
        let rough = self
            .columns
            .iter()
            .skip(start)
            .position(KeyColumn::orders_roughly);
        rough.map(|at| start + at)
    }

    /// A number that two processes have in common whose libraries order this index's texts in the
    /// same way; 0 where no library does.
    pub fn collations_fingerprint(&self) -> u64 {
        let mut sum = 0;
        let mut add = |collation: Collation| {
            sum = u64::rotate_left(sum, 1) ^ collation.fingerprint();
        };
        for column in &self.columns {
            column.collation.into_iter().for_each(&mut add);
            if let Some(record) = column.kind.record() {
                record.each_collation(&mut add);
            }
        }
        sum
    }

    /// Checks what the encoder relies on.
    pub fn validate(&self) -> Result<(), EngineError> {
        if self.columns.is_empty() || self.columns.len() > INDEX_COLUMNS_MAX {
            return Err(corrupt("an index has 1 to 32 key columns"));
        }
        if self.layout.len() > TABLE_ATTRIBUTES_MAX {
            return Err(corrupt("definition has too many attributes"));
        }
        if !self.file.is_some() && self.file != FileKey::NONE {
            return Err(corrupt("an index's file has no number"));
        }
        for attribute in &self.layout {
            if !matches!(attribute.align, 1 | 2 | 4 | 8) {
                return Err(corrupt("attribute alignment is not 1, 2, 4 or 8"));
            }
            if attribute.len == 0 || attribute.len < -2 {
                return Err(corrupt("attribute length is not positive, -1 or -2"));
            }
        }
        let fits = |column: &KeyColumn| match column.collation {
            Some(collation) if collation.is_exact() => column.kind.has_texts(),
            // A scan puts texts in order, but no values that hold them.
            Some(_) => column.kind.is_text(),
            None => true,
        };
        if !self.columns.iter().all(fits) {
            return Err(corrupt("a collation is of a key column without texts"));
        }
        if self.computed.is_some() {
            return self.validate_computed();
        }
        for column in &self.columns {
            let attribute = usize::from(column.attnum)
                .checked_sub(1)
                .and_then(|index| self.layout.get(index))
                .ok_or_else(|| corrupt("key column names an attribute without layout"))?;
            if attribute.len != column.kind.width() {
                return Err(corrupt(
                    "key column's kind does not have the attribute's width",
                ));
            }
        }
        missing::validate(self)
    }

    /// Checks that nothing is said of attributes, but where labels are of these, and that each
    /// column has a mark for NULL. A tail's key gives a text back, but not one inside another
    /// value.
    fn validate_computed(&self) -> Result<(), EngineError> {
        let is_computed = |column: &KeyColumn| {
            let is_text = matches!(column.kind, KeyKind::Text | KeyKind::Bpchar);
            column.nullable && (is_text || !column.has_collations())
        };
        // Where all are of attributes, some have labels.
        let names_attributes = match self.has_labels() && self.is_of_columns() {
            true => {
                (self.columns.iter()).all(|column| usize::from(column.attnum) <= self.layout.len())
            }
            false => self.layout.is_empty() && self.columns.iter().all(|column| column.attnum == 0),
        };
        if names_attributes && self.missing.is_empty() && self.columns.iter().all(is_computed) {
            return Ok(());
        }
        Err(corrupt("a computed key is of attributes"))
    }
}

pub(super) fn corrupt(what: &'static str) -> EngineError {
    EngineError::Corrupt { what }
}
