//! Several threads walk all rows of a table and find those with open versions. `finish` does so
//! when replay is over, and `outcomes.rs` before the commit log is truncated.
//!
//! Only the caller's own thread asks the server's clock. The threads find the rows for which it has
//! to ask: few, as a rule.

use std::ops::Range;

use crate::errors::EngineError;
use crate::ids::RowId;
use crate::row::Anchor;
use crate::session::Session;
use crate::table::TableRef;
use crate::threads::on_threads;

/// Row ids a thread reads at a time.
const UNIT_ROW_IDS: u64 = 1 << 16;
/// Row ids examined under one pin.
const ROW_IDS_PER_PIN: u64 = 1024;

/// A table handed to threads.
struct Shared(TableRef);

// SAFETY: a storage of atomics, kept alive by the caller's walk.
unsafe impl Sync for Shared {}

/// Has `threads` look at each row id that has an anchor, and gives what they found, part by part in
/// the order of the row ids. `look` is pinned, and takes no memory of the arena.
pub(super) fn look_at_row_ids<T: Default + Send>(
    session: &Session,
    table: TableRef,
    threads: usize,
    look: impl Fn(RowId, &Anchor, &mut T) -> Result<(), EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    let end = table.row_ids_end().0;
    let units = end.div_ceil(UNIT_ROW_IDS) as usize;
    let engine = session.engine();
    let shared = Shared(table);
    let shared = &shared;
    let mut parts: Vec<(usize, T)> = on_threads(threads, units, |_, next| {
        let session = engine.join()?;
        let mut parts = Vec::new();
        while let Some(unit) = next.take() {
            let first = unit as u64 * UNIT_ROW_IDS;
            let row_ids = first..end.min(first + UNIT_ROW_IDS);
            parts.push((unit, look_at_part(&session, shared.0, row_ids, &look)?));
        }
        Ok(parts)
    })?
    .into_iter()
    .flatten()
    .collect();
    parts.sort_unstable_by_key(|(unit, _)| *unit);
    Ok(parts.into_iter().map(|(_, found)| found).collect())
}

fn look_at_part<T: Default>(
    session: &Session,
    table: TableRef,
    row_ids: Range<u64>,
    look: &impl Fn(RowId, &Anchor, &mut T) -> Result<(), EngineError>,
) -> Result<T, EngineError> {
    let mut found = T::default();
    let mut from = row_ids.start;
    while from < row_ids.end {
        let _pin = session.local.pin();
        let to = row_ids.end.min(from + ROW_IDS_PER_PIN);
        for row_id in (from..to).map(RowId) {
            if let Some(anchor) = table.anchor(row_id) {
                look(row_id, anchor, &mut found)?;
            }
        }
        from = to;
    }
    Ok(found)
}

/// Adds a row id to those that were found.
pub(super) fn note(found: &mut Vec<RowId>, row_id: RowId) -> Result<(), EngineError> {
    found
        .try_reserve(1)
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    found.push(row_id);
    Ok(())
}
