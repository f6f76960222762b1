//! The collations of an index's key columns, in the byte form of its definition.
//!
//! ```text
//! u16 entries, entries x { u8 column (from 0, ascending), u8 provider, u8 length, the locale }
//! ```
//! A column has an entry of its collation's provider, or one of its folder, or both in this order.

use super::definition::{INDEX_COLUMNS_MAX, KeyColumn, corrupt};
use crate::collation::{Collation, Folder, Folding, Provider};
use crate::errors::EngineError;

const COUNT_BYTES: usize = size_of::<u16>();
const HEADER_BYTES: usize = 3;

const _: () = assert!(INDEX_COLUMNS_MAX <= u8::MAX as usize);

/// Most entries: two for each column.
const ENTRIES_MAX: usize = 2 * INDEX_COLUMNS_MAX;

/// An entry: a column's place, whose the locale is, and its name.
type Entry = (usize, u8, &'static str);

/// The entries of the columns.
fn of(columns: &[KeyColumn]) -> impl Iterator<Item = Entry> {
    columns.iter().enumerate().flat_map(|(at, column)| {
        let collation = column.collation;
        let order = collation.and_then(|collation| {
            let provider = collation.provider()?;
            Some((at, provider as u8, collation.locale()))
        });
        let folding = collation.and_then(Collation::folding);
        let folding = folding.map(|folding| (at, folding.folder() as u8, folding.locale()));
        order.into_iter().chain(folding)
    })
}

/// Length of the byte form; 0 without collations.
pub(super) fn bytes_len(columns: &[KeyColumn]) -> usize {
    let each = |(_, _, locale): Entry| HEADER_BYTES + locale.len();
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
    for (at, provider, locale) in of(columns) {
        out.extend_from_slice(&[at as u8, provider, locale.len() as u8]);
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
    if count == 0 || count > ENTRIES_MAX {
        return Err(corrupt("a definition has no or too many collations"));
    }
    let mut collations: Vec<(usize, Collation)> = Vec::new();
    collations
        .try_reserve(count)
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    for _ in 0..count {
        let ([column, provider, length], behind) =
            rest.split_first_chunk::<HEADER_BYTES>().ok_or_else(cut)?;
        let (locale, behind) = behind
            .split_at_checked(usize::from(*length))
            .ok_or_else(cut)?;
        let locale =
            std::str::from_utf8(locale).map_err(|_| corrupt("a collation's locale is no text"))?;
        let column = usize::from(*column);
        rest = behind;
        let unordered = || corrupt("collations are not in the order of columns");
        if let Some(provider) = Provider::from_number(*provider) {
            if collations.last().is_some_and(|(last, _)| *last >= column) {
                return Err(unordered());
            }
            collations.push((column, Collation::named(provider, locale)?));
            continue;
        }
        let folder = Folder::from_number(*provider)
            .ok_or_else(|| corrupt("a collation has an unknown provider"))?;
        let folding = Folding::named(folder, locale)?;
        match collations.last_mut() {
            Some((last, order)) if *last == column && order.folding().is_none() => {
                *order = Collation::folded(folding, Some(*order));
            }
            Some((last, _)) if *last >= column => return Err(unordered()),
            _ => collations.push((column, Collation::folded(folding, None))),
        }
    }
    Ok((collations, rest))
}
