//! The key ranges in which a row's index entries lie. SSI asks for them: the server noted which
//! ranges a transaction has read.

use crate::errors::EngineError;
use crate::key::{encode_row_if_any, prefix_numbers};
use crate::session::Session;
use crate::table::TableRef;

/// A range of an index's keys: those that begin with some columns' values.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct EntryRange {
    /// The index's oid.
    pub index: u32,
    /// See [`crate::key::prefix_number`].
    pub number: u32,
}

impl Session {
    /// The ranges of all entries that the row state `new` needs and `old`, the one it replaces, did
    /// not have: for each such index one per number of leading columns. Dropped indexes count while
    /// they are there: their drop may be taken back.
    pub fn entry_ranges(
        &self,
        table: TableRef,
        old: Option<&[u8]>,
        new: &[u8],
    ) -> Result<Vec<EntryRange>, EngineError> {
        let _pin = self.local.pin();
        let mut ranges = Vec::new();
        for index in table.all_indexes() {
            let definition = self.definition(index)?;
            self.with_keys(|keys| {
                let [key, old_key, ..] = keys;
                if let Some(old) = old {
                    encode_row_if_any(definition, old, old_key)?;
                    encode_row_if_any(definition, new, key)?;
                    if key.as_slice() == old_key.as_slice() {
                        return Ok(());
                    }
                }
                prefix_numbers(definition, new, key, |number| {
                    ranges
                        .try_reserve(1)
                        .map_err(|_| EngineError::OutOfProcessMemory)?;
                    ranges.push(EntryRange {
                        index: index.relation_oid(),
                        number,
                    });
                    Ok(())
                })
            })?;
        }
        Ok(ranges)
    }
}
