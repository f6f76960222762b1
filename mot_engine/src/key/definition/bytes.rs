//! The byte form of an index's definition, in the log, the checkpoint and the arena.
//!
//! Contract: `from_bytes` accepts exactly what `write_bytes` writes and checks it (kinds against
//! widths, attribute numbers against the layout), so a decoded definition can be used without
//! further tests. `write_bytes` of the same definition always gives the same bytes.
//!
//! Form 1 is that of a foreign table's index, which its oid names. Form 2 also has the file by
//! which an index of a table of the access method is found. Forms 3 and 4 are 1 and 2 with values
//! of columns that older rows lack. Forms 5 and 6 are 1 and 2 of an index with computed keys. Forms
//! 9 to 14 are 1 to 6 of an index with collations. Forms from 17 on are these with records.

use super::{
    AttributeLayout, INDEX_COLUMNS_MAX, IndexDefinition, KeyColumn, TABLE_ATTRIBUTES_MAX, corrupt,
};
use crate::collation::Collation;
use crate::errors::EngineError;
use crate::ids::FileKey;
use crate::key::kind::KeyKind;
use crate::key::record::Record;
use crate::key::{collations, missing};

/// First byte of the form of an index that has neither a file nor missing values.
const FORM_FIRST: u8 = 1;
/// What is added to it for a file.
const FORM_FILE: u8 = 1;
/// What is added to it for missing values.
const FORM_MISSING: u8 = 2;
/// What is added to it for computed keys; not together with missing values.
const FORM_COMPUTED: u8 = 4;
/// What is added to it for collations.
const FORM_COLLATIONS: u8 = 8;
/// What is added to it for key columns that are or hold records.
const FORM_RECORDS: u8 = 16;
const FORM_LAST: u8 = FORM_FIRST + FORM_FILE + FORM_COMPUTED + FORM_COLLATIONS + FORM_RECORDS;

/// Bytes before the columns: form, flags, relation, column count, attribute count.
const HEADER_BYTES: usize = 10;
/// Where in them the index's oid is.
const RELATION_BYTES: std::ops::Range<usize> = 2..6;
/// Behind the header of an index that has a file: tablespace and number.
const FILE_BYTES: usize = 8;
const COLUMN_BYTES: usize = 4;
const ATTRIBUTE_BYTES: usize = 4;

const FLAG_UNIQUE: u8 = 1;
const FLAG_NULLS_NOT_DISTINCT: u8 = 2;
const COLUMN_DESCENDING: u8 = 1;
const COLUMN_NULLS_FIRST: u8 = 2;
const COLUMN_NULLABLE: u8 = 4;

impl IndexDefinition {
    /// Appends the byte form.
    ///
    /// ```text
    /// u8 form, u8 flags, u32 relation, u16 columns, u16 attributes,
    /// with a file: u32 tablespace, u32 file,
    /// columns x { u16 attnum, u8 kind, u8 flags },
    /// attributes x { i16 len, u8 align, u8 by_value },
    /// with collations: u16 collations, collations x { u8 column, u8 provider, u8 length, locale },
    /// with records: for each column whose kind has them, in order, its record (`record.rs`),
    /// with missing values: u16 values, values x { u16 attnum, u16 length, value }
    /// with computed keys: u32 number in rows' tails
    /// ```
    pub fn write_bytes(&self, out: &mut Vec<u8>) -> Result<(), EngineError> {
        self.validate()?;
        out.try_reserve(self.bytes_len())
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        let flags = if self.unique { FLAG_UNIQUE } else { 0 }
            | if self.nulls_not_distinct {
                FLAG_NULLS_NOT_DISTINCT
            } else {
                0
            };
        let form = FORM_FIRST
            + if self.file.is_some() { FORM_FILE } else { 0 }
            + match (&self.missing[..], self.computed) {
                ([], None) => 0,
                ([], Some(_)) => FORM_COMPUTED,
                _ => FORM_MISSING,
            }
            + if self.has_collations() {
                FORM_COLLATIONS
            } else {
                0
            }
            + if self.records().next().is_some() {
                FORM_RECORDS
            } else {
                0
            };
        out.extend_from_slice(&[form, flags]);
        out.extend_from_slice(&self.relation.to_le_bytes());
        out.extend_from_slice(&(self.columns.len() as u16).to_le_bytes());
        out.extend_from_slice(&(self.layout.len() as u16).to_le_bytes());
        if self.file.is_some() {
            out.extend_from_slice(&self.file.tablespace.to_le_bytes());
            out.extend_from_slice(&self.file.relation.to_le_bytes());
        }
        for column in &self.columns {
            let flags = if column.descending {
                COLUMN_DESCENDING
            } else {
                0
            } | if column.nulls_first {
                COLUMN_NULLS_FIRST
            } else {
                0
            } | if column.nullable { COLUMN_NULLABLE } else { 0 };
            out.extend_from_slice(&column.attnum.to_le_bytes());
            out.extend_from_slice(&[column.kind.number(), flags]);
        }
        for attribute in &self.layout {
            out.extend_from_slice(&attribute.len.to_le_bytes());
            out.extend_from_slice(&[attribute.align, u8::from(attribute.by_value)]);
        }
        collations::write(&self.columns, out);
        for record in self.records() {
            out.extend_from_slice(record.bytes());
        }
        missing::write(&self.missing, out);
        out.extend(self.computed.iter().flat_map(|number| number.to_le_bytes()));
        Ok(())
    }

    /// Length of the byte form.
    pub fn bytes_len(&self) -> usize {
        let file = if self.file.is_some() { FILE_BYTES } else { 0 };
        let columns = self.columns.len() * COLUMN_BYTES;
        let attributes = self.layout.len() * ATTRIBUTE_BYTES;
        let computed = self.computed.map_or(0, |number| size_of_val(&number));
        let missing = missing::bytes_len(&self.missing);
        let collations = collations::bytes_len(&self.columns);
        let records: usize = self.records().map(|record| record.bytes().len()).sum();
        HEADER_BYTES + file + columns + attributes + collations + records + missing + computed
    }

    /// Whether texts of a column lie otherwise than by their bytes.
    fn has_collations(&self) -> bool {
        self.columns.iter().any(|column| column.collation.is_some())
    }

    /// Decodes and checks a byte form that fills `bytes` exactly.
    pub fn from_bytes(bytes: &[u8]) -> Result<IndexDefinition, EngineError> {
        let (header, file, rest) = split(bytes)?;
        if header[1] & !(FLAG_UNIQUE | FLAG_NULLS_NOT_DISTINCT) != 0 {
            return Err(corrupt("definition has unknown flags"));
        }
        let column_count = usize::from(u16::from_le_bytes([header[6], header[7]]));
        let attribute_count = usize::from(u16::from_le_bytes([header[8], header[9]]));
        if column_count > INDEX_COLUMNS_MAX || attribute_count > TABLE_ATTRIBUTES_MAX {
            return Err(corrupt("definition has too many columns"));
        }
        let cut = || corrupt("definition is cut");
        let (column_bytes, rest) = rest
            .split_at_checked(column_count * COLUMN_BYTES)
            .ok_or_else(cut)?;
        let (attribute_bytes, rest) = rest
            .split_at_checked(attribute_count * ATTRIBUTE_BYTES)
            .ok_or_else(cut)?;
        let (collations, rest) = match has_collations(header[0]) {
            true => collations::read(rest)?,
            false => (Vec::new(), rest),
        };
        let (columns, rest) = read_columns((header[0], column_bytes), collations, rest)?;
        let mut missing = Vec::new();
        let mut computed = None;
        if has_missing(header[0]) {
            missing = missing::read(rest)?;
        } else if has_computed(header[0]) {
            let number = rest.try_into().map_err(|_| cut())?;
            computed = Some(u32::from_le_bytes(number));
        } else if !rest.is_empty() {
            return Err(corrupt("definition has bytes after its end"));
        }
        let mut layout = Vec::new();
        layout
            .try_reserve(attribute_count)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        for entry in attribute_bytes.chunks_exact(ATTRIBUTE_BYTES) {
            if entry[3] > 1 {
                return Err(corrupt("attribute layout has unknown flags"));
            }
            layout.push(AttributeLayout {
                len: i16::from_le_bytes([entry[0], entry[1]]),
                align: entry[2],
                by_value: entry[3] == 1,
            });
        }
        let definition = IndexDefinition {
            relation: u32::from_le_bytes([header[2], header[3], header[4], header[5]]),
            file,
            unique: header[1] & FLAG_UNIQUE != 0,
            nulls_not_distinct: header[1] & FLAG_NULLS_NOT_DISTINCT != 0,
            columns,
            layout,
            missing,
            computed,
        };
        definition.validate()?;
        Ok(definition)
    }
}

/// Decodes key columns, with their collations and the records that lie where `rest` begins. Gives
/// what is behind those.
fn read_columns<'a>(
    (form, entries): (u8, &[u8]),
    collations: Vec<(usize, Collation)>,
    mut rest: &'a [u8],
) -> Result<(Vec<KeyColumn>, &'a [u8]), EngineError> {
    let mut columns = Vec::new();
    columns
        .try_reserve(entries.len() / COLUMN_BYTES)
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    let unknown = || corrupt("key column has an unknown kind");
    let mut record_count = 0;
    for entry in entries.chunks_exact(COLUMN_BYTES) {
        if entry[3] & !(COLUMN_DESCENDING | COLUMN_NULLS_FIRST | COLUMN_NULLABLE) != 0 {
            return Err(corrupt("key column has unknown flags"));
        }
        let kind = if KeyKind::names_record(entry[2]) && has_records(form) {
            let (record, behind) = Record::read(rest)?;
            rest = behind;
            record_count += 1;
            KeyKind::of_record(entry[2], record)
        } else {
            KeyKind::from_number(entry[2])
        };
        columns.push(KeyColumn {
            attnum: u16::from_le_bytes([entry[0], entry[1]]),
            kind: kind.ok_or_else(unknown)?,
            descending: entry[3] & COLUMN_DESCENDING != 0,
            nulls_first: entry[3] & COLUMN_NULLS_FIRST != 0,
            nullable: entry[3] & COLUMN_NULLABLE != 0,
            collation: None,
        });
    }
    if has_records(form) && record_count == 0 {
        return Err(corrupt("a definition has no record"));
    }
    for (column, collation) in collations {
        let column = columns.get_mut(column);
        column
            .ok_or_else(|| corrupt("a collation is of no key column"))?
            .collation = Some(collation);
    }
    Ok((columns, rest))
}

/// Replaces `out` by the byte form of a definition without what names the index: indexes of the
/// same columns have the same.
pub(crate) fn without_names(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), EngineError> {
    let (header, _, rest) = split(bytes)?;
    out.clear();
    out.try_reserve(bytes.len())
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    out.extend_from_slice(header);
    if has_file(header[0]) {
        out[0] -= FORM_FILE;
    }
    out[RELATION_BYTES].fill(0);
    out.extend_from_slice(rest);
    Ok(())
}

/// Whether the form with this number has a file; it is one of those there are.
fn has_file(form: u8) -> bool {
    (form - FORM_FIRST) & FORM_FILE != 0
}

/// Whether the form with this number has missing values; it is one of those there are.
fn has_missing(form: u8) -> bool {
    (form - FORM_FIRST) & FORM_MISSING != 0
}

/// Whether the form with this number is of computed keys; it is one of those there are.
fn has_computed(form: u8) -> bool {
    (form - FORM_FIRST) & FORM_COMPUTED != 0
}

/// Whether the form with this number has collations; it is one of those there are.
fn has_collations(form: u8) -> bool {
    (form - FORM_FIRST) & FORM_COLLATIONS != 0
}

/// Whether the form with this number has records; it is one of those there are.
fn has_records(form: u8) -> bool {
    (form - FORM_FIRST) & FORM_RECORDS != 0
}

/// Parts a byte form: header, file, and what follows.
fn split(bytes: &[u8]) -> Result<(&[u8; HEADER_BYTES], FileKey, &[u8]), EngineError> {
    let cut = || corrupt("definition is cut");
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(cut)?;
    let is_known = (FORM_FIRST..=FORM_LAST).contains(&header[0]);
    if !is_known || has_missing(header[0]) && has_computed(header[0]) {
        return Err(corrupt("definition has an unknown form"));
    }
    if !has_file(header[0]) {
        return Ok((header, FileKey::NONE, rest));
    }
    let (file, rest) = rest.split_first_chunk::<FILE_BYTES>().ok_or_else(cut)?;
    let [a, b, c, d, e, f, g, h] = *file;
    let file = FileKey {
        tablespace: u32::from_le_bytes([a, b, c, d]),
        relation: u32::from_le_bytes([e, f, g, h]),
    };
    if !file.is_some() {
        return Err(corrupt("an index's file has no number"));
    }
    Ok((header, file, rest))
}
