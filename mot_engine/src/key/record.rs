//! Row types as keys know them: their columns, in the byte form of an index's definition.
//!
//! A value of a row type does not say of which types its columns are, and a key must not hang on a
//! catalog. So the definition has the columns. A record holds no more than PostgreSQL's
//! `record_cmp` compares by: each column's kind and collation, and where it is.
//!
//! ```text
//! u32 row type, u16 columns, columns x { u8 flags, u8 kind, i16 length, u8 alignment,
//!   with a collation: u8 provider, u8 length, the locale,
//!   with a folding: u8 folder, u8 length, the locale,
//!   with a missing value: u16 length, the value,
//!   with a kind that has records: its record }
//! ```
//!
//! Contract: a record is looked up once in a process by its byte form, and never freed: kinds refer
//! to it. `read` accepts exactly what `write` writes. Records are nested no deeper than
//! [`RECORD_DEPTH_MAX`], so walking them takes little stack.

use super::definition::{AttributeLayout, TABLE_ATTRIBUTES_MAX, corrupt};
use super::kind::KeyKind;
use crate::collation::{Collation, Folder, Folding, Provider};
use crate::errors::EngineError;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How deep records may be nested.
pub const RECORD_DEPTH_MAX: usize = 16;

const HEADER_BYTES: usize = 6;
const FIELD_BYTES: usize = 5;

const FLAG_DROPPED: u8 = 1;
const FLAG_MISSING: u8 = 2;
const FLAG_COLLATION: u8 = 4;
const FLAG_FOLDING: u8 = 8;

/// A row type's columns.
#[derive(Copy, Clone)]
pub struct Record(&'static Shape);

struct Shape {
    row_type: u32,
    fields: Vec<Field>,
    depth: usize,
    bytes: Vec<u8>,
}

/// A column of a row type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// The order of its values; `None`: the column was dropped.
    pub kind: Option<KeyKind>,
    /// How it lies in a value.
    pub layout: AttributeLayout,
    /// In whose order its texts lie; `None`: in that of their bytes.
    pub collation: Option<Collation>,
    /// What it is in values that end before it, as one holds it; `None`: NULL.
    pub missing: Option<Box<[u8]>>,
}

/// Every record of this process, by its byte form.
static KNOWN: Mutex<Option<HashMap<&'static [u8], Record>>> = Mutex::new(None);

impl Record {
    /// The record of a row type with these columns.
    ///
    /// # Errors
    /// `Corrupt` where a column cannot be as it is said to be, or the nesting is too deep.
    pub fn of(row_type: u32, fields: Vec<Field>) -> Result<Record, EngineError> {
        if fields.len() > TABLE_ATTRIBUTES_MAX {
            return Err(corrupt("a row type has too many columns"));
        }
        let mut depth = 1;
        let mut bytes = Vec::new();
        bytes
            .try_reserve(HEADER_BYTES + fields.len() * FIELD_BYTES)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        bytes.extend_from_slice(&row_type.to_le_bytes());
        bytes.extend_from_slice(&(fields.len() as u16).to_le_bytes());
        for field in &fields {
            field.validate()?;
            let inner = field.kind.and_then(KeyKind::record);
            depth = depth.max(1 + inner.map_or(0, |inner| inner.0.depth));
            field.write(&mut bytes)?;
        }
        if depth > RECORD_DEPTH_MAX {
            return Err(corrupt("row types are nested too deep"));
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some(record) = known.get(&bytes[..]) {
            return Ok(*record);
        }
        let record = Record(Box::leak(Box::new(Shape {
            row_type,
            fields,
            depth,
            bytes,
        })));
        known.insert(&record.0.bytes, record);
        Ok(record)
    }

    /// The row type's oid.
    pub fn row_type(self) -> u32 {
        self.0.row_type
    }

    /// Its columns, dropped ones too.
    pub fn fields(self) -> &'static [Field] {
        &self.0.fields
    }

    /// How deep records are nested in it, from 1.
    pub fn depth(self) -> usize {
        self.0.depth
    }

    /// The byte form.
    pub(super) fn bytes(self) -> &'static [u8] {
        &self.0.bytes
    }

    /// Calls `each` with the collations in it, and in records in it.
    pub fn each_collation(self, each: &mut impl FnMut(Collation)) {
        for field in self.fields() {
            field.collation.into_iter().for_each(&mut *each);
            if let Some(inner) = field.kind.and_then(KeyKind::record) {
                inner.each_collation(each);
            }
        }
    }

    /// Whether a collation orders texts in it.
    pub fn has_collations(self) -> bool {
        let mut has_one = false;
        self.each_collation(&mut |_| has_one = true);
        has_one
    }

    /// The same whose texts lie by their bytes.
    pub(super) fn without_collations(self) -> Result<Record, EngineError> {
        let fields = self.fields().iter().map(|field| {
            Ok(Field {
                kind: field.kind.map(KeyKind::without_collations).transpose()?,
                collation: None,
                ..field.clone()
            })
        });
        Record::of(self.row_type(), fields.collect::<Result<_, EngineError>>()?)
    }

    /// Reads a byte form; gives what is behind it.
    pub(super) fn read(bytes: &[u8]) -> Result<(Record, &[u8]), EngineError> {
        Record::read_nested(bytes, RECORD_DEPTH_MAX)
    }

    fn read_nested(bytes: &[u8], depth: usize) -> Result<(Record, &[u8]), EngineError> {
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| corrupt("row types are nested too deep"))?;
        let ([a, b, c, d, low, high], mut rest) =
            bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(cut)?;
        let count = usize::from(u16::from_le_bytes([*low, *high]));
        let mut fields = Vec::new();
        fields
            .try_reserve(count.min(TABLE_ATTRIBUTES_MAX))
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        for _ in 0..count {
            let (field, behind) = Field::read(rest, depth)?;
            fields.push(field);
            rest = behind;
        }
        let record = Record::of(u32::from_le_bytes([*a, *b, *c, *d]), fields)?;
        // An optional part that is empty would be another form of the same.
        match bytes.strip_suffix(rest) {
            Some(own) if own == record.bytes() => Ok((record, rest)),
            _ => Err(corrupt("a row type has another form")),
        }
    }
}

impl Field {
    fn validate(&self) -> Result<(), EngineError> {
        let AttributeLayout { len, align, .. } = self.layout;
        if !matches!(align, 1 | 2 | 4 | 8) || len == 0 || len < -2 {
            return Err(corrupt("a row type's column cannot lie so"));
        }
        let Some(kind) = self.kind else {
            return match (self.collation, &self.missing) {
                (None, None) => Ok(()),
                _ => Err(corrupt("a dropped column has an order")),
            };
        };
        if kind.width() != len {
            return Err(corrupt("a row type's column has another width"));
        }
        if self
            .collation
            .is_some_and(|own| !own.is_exact() || !kind.has_texts())
        {
            return Err(corrupt("a row type's column cannot have the collation"));
        }
        match &self.missing {
            Some(bytes) if bytes.len() > usize::from(u16::MAX) => {
                Err(corrupt("a row type's missing value is too long"))
            }
            _ => Ok(()),
        }
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), EngineError> {
        let order = self.collation.and_then(|collation| {
            let provider = collation.provider()?;
            Some((provider as u8, collation.locale()))
        });
        let folding = self.collation.and_then(Collation::folding);
        let folding = folding.map(|folding| (folding.folder() as u8, folding.locale()));
        let inner = self.kind.and_then(KeyKind::record);
        let missing = self.missing.as_deref();
        let length = FIELD_BYTES
            + 2 * (2 + crate::collation::LOCALE_BYTES_MAX)
            + missing.map_or(0, |missing| 2 + missing.len())
            + inner.map_or(0, |inner| inner.bytes().len());
        out.try_reserve(length)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.kind.is_none(), FLAG_DROPPED)
            | flag(missing.is_some(), FLAG_MISSING)
            | flag(order.is_some(), FLAG_COLLATION)
            | flag(folding.is_some(), FLAG_FOLDING);
        out.extend_from_slice(&[flags, self.kind.map_or(0, KeyKind::number)]);
        out.extend_from_slice(&self.layout.len.to_le_bytes());
        out.push(self.layout.align);
        for (number, locale) in order.into_iter().chain(folding) {
            out.extend_from_slice(&[number, locale.len() as u8]);
            out.extend_from_slice(locale.as_bytes());
        }
        if let Some(missing) = missing {
            out.extend_from_slice(&(missing.len() as u16).to_le_bytes());
            out.extend_from_slice(missing);
        }
        out.extend_from_slice(inner.map_or(&[], Record::bytes));
        Ok(())
    }

    fn read(bytes: &[u8], depth: usize) -> Result<(Field, &[u8]), EngineError> {
        let ([flags, number, low, high, align], mut rest) =
            bytes.split_first_chunk::<FIELD_BYTES>().ok_or_else(cut)?;
        let has = |flag: u8| flags & flag != 0;
        if flags & !(FLAG_DROPPED | FLAG_MISSING | FLAG_COLLATION | FLAG_FOLDING) != 0 {
            return Err(corrupt("a row type's column has unknown flags"));
        }
        let mut collation = None;
        if has(FLAG_COLLATION) {
            let (provider, locale, behind) = read_locale(rest)?;
            let provider = Provider::from_number(provider)
                .ok_or_else(|| corrupt("a collation has an unknown provider"))?;
            collation = Some(Collation::named(provider, locale)?);
            rest = behind;
        }
        if has(FLAG_FOLDING) {
            let (folder, locale, behind) = read_locale(rest)?;
            let folder = Folder::from_number(folder)
                .ok_or_else(|| corrupt("a collation has an unknown folder"))?;
            collation = Some(Collation::folded(
                Folding::named(folder, locale)?,
                collation,
            ));
            rest = behind;
        }
        let mut missing = None;
        if has(FLAG_MISSING) {
            let (length, behind) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
            let length = usize::from(u16::from_le_bytes(*length));
            let (value, behind) = behind.split_at_checked(length).ok_or_else(cut)?;
            missing = Some(value.into());
            rest = behind;
        }
        let mut kind = None;
        if KeyKind::names_record(*number) && !has(FLAG_DROPPED) {
            let (record, behind) = Record::read_nested(rest, depth)?;
            kind = KeyKind::of_record(*number, record);
            rest = behind;
        } else if !has(FLAG_DROPPED) {
            let known = KeyKind::from_number(*number);
            kind = Some(known.ok_or_else(|| corrupt("a row type's column has an unknown kind"))?);
        }
        let layout = AttributeLayout {
            len: i16::from_le_bytes([*low, *high]),
            align: *align,
            by_value: false,
        };
        let field = Field {
            kind,
            layout,
            collation,
            missing,
        };
        Ok((field, rest))
    }
}

/// A number, the name of a locale, and what is behind.
fn read_locale(bytes: &[u8]) -> Result<(u8, &str, &[u8]), EngineError> {
    let ([number, length], rest) = bytes.split_first_chunk::<2>().ok_or_else(cut)?;
    let (locale, rest) = rest
        .split_at_checked(usize::from(*length))
        .ok_or_else(cut)?;
    let locale = std::str::from_utf8(locale);
    let locale = locale.map_err(|_| corrupt("a collation's locale is no text"))?;
    Ok((*number, locale, rest))
}

impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Record {}

impl std::hash::Hash for Record {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.bytes.hash(state);
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = self.fields().iter().map(|field| field.kind);
        write!(formatter, "{} ", self.row_type())?;
        formatter.debug_list().entries(kinds).finish()
    }
}

#[cold]
fn cut() -> EngineError {
    corrupt("a definition's row type is cut")
}
