//! The collations of an index's key columns, in the byte form of its definition.
//!
//! ```text
//! u16 collations (1..=32), collations x { u8 column (from 0, ascending), u8 provider, u8 length,
//! the locale's name }
//! ```

use super::definition::{INDEX_COLUMNS_MAX, KeyColumn, corrupt};
use crate::collation::{Collation, Provider};
use crate::errors::EngineError;

const COUNT_BYTES: usize = size_of::<u16>();
const HEADER_BYTES: usize = 3;

const _: () = assert!(INDEX_COLUMNS_MAX <= u8::MAX as usize);

/// The columns that have a collation, by place.
fn of(columns: &[KeyColumn]) -> impl Iterator<Item = (usize, Collation)> {
    let columns = columns.iter().enumerate();
    columns.filter_map(|(at, column)| Some((at, column.collation?)))
}

/// Length of the byte form; 0 without collations.
pub(super) fn bytes_len(columns: &[KeyColumn]) -> usize {
    let each = |(_, collation): (usize, Collation)| HEADER_BYTES + collation.locale().len();
    match of(columns).map(each).sum() {
        0 => 0,
        bytes => COUNT_BYTES + bytes,
    }
}

/// Appends the byte form, if there are any.
pub(super) fn write(columns: &[KeyColumn], out: &mut Vec<u8>) {
    let count = of(columns).count() as u16;
    if count == 0 {
        return;
    }
    out.extend_from_slice(&count.to_le_bytes());
    for (at, collation) in of(columns) {
        let locale = collation.locale();
        out.extend_from_slice(&[at as u8, collation.provider() as u8, locale.len() as u8]);
        out.extend_from_slice(locale.as_bytes());
    }
}

/// Columns' places and collations, and what is behind the byte form of them.
pub(super) type Read<'a> = (Vec<(usize, Collation)>, &'a [u8]);

/// Reads the byte form.
pub(super) fn read(bytes: &[u8]) -> Result<Read<'_>, EngineError> {
    let cut = || corrupt("a definition's collations are cut");
    let (count, mut rest) = bytes.split_first_chunk().ok_or_else(cut)?;
    let count = usize::from(u16::from_le_bytes(*count));
    if count == 0 || count > INDEX_COLUMNS_MAX {
        return Err(corrupt("a definition has no or too many collations"));
    }
    let mut collations = Vec::new();
    collations
        .try_reserve(count)
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    for _ in 0..count {
        let ([column, provider, length], behind) =
            rest.split_first_chunk::<HEADER_BYTES>().ok_or_else(cut)?;
        let (locale, behind) = behind
            .split_at_checked(usize::from(*length))
            .ok_or_else(cut)?;
        let provider = Provider::from_number(*provider)
            .ok_or_else(|| corrupt("a collation has an unknown provider"))?;
        let locale =
            std::str::from_utf8(locale).map_err(|_| corrupt("a collation's locale is no text"))?;
        let column = usize::from(*column);
        if collations.last().is_some_and(|(last, _)| *last >= column) {
            return Err(corrupt("collations are not in the order of columns"));
        }
        collations.push((column, Collation::named(provider, locale)?));
        rest = behind;
    }
    Ok((collations, rest))
}
