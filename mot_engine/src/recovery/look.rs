//! Several threads walk all rows of a table and find those with open versions. `finish` does so
//! when replay is over, and `outcomes.rs` before the commit log is truncated.
//!
//! Only the caller's own thread asks the server's clock. The threads find the rows for which it has
//! to ask: few, as a rule.

use std::ops::Range;

use crate::errors::EngineError;
use crate::ids::Slot;
use crate::row::Anchor;
use crate::session::Session;
use crate::table::TableRef;
use crate::threads::on_threads;

/// Slots a thread reads at a time.
const UNIT_SLOTS: u64 = 1 << 16;
/// Slots examined under one pin.
const SLOTS_PER_PIN: u64 = 1024;

/// A table handed to threads.
struct Shared(TableRef);

// SAFETY: a storage of atomics, kept alive by the caller's walk.
unsafe impl Sync for Shared {}

/// Has `threads` look at each slot that has an anchor, and gives what they found, part by part in
/// the order of the slots. `look` is pinned, and takes no memory of the arena.
pub(super) fn look_at_slots<T: Default + Send>(
    session: &Session,
    table: TableRef,
    threads: usize,
    look: impl Fn(Slot, &Anchor, &mut T) -> Result<(), EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    let end = table.slots_end().0;
    let units = end.div_ceil(UNIT_SLOTS) as usize;
    let engine = session.engine();
    let shared = Shared(table);
    let shared = &shared;
    let mut parts: Vec<(usize, T)> = on_threads(threads, units, |_, next| {
        let session = engine.join()?;
        let mut parts = Vec::new();
        while let Some(unit) = next.take() {
            let first = unit as u64 * UNIT_SLOTS;
            let slots = first..end.min(first + UNIT_SLOTS);
            parts.push((unit, look_at_part(&session, shared.0, slots, &look)?));
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
    slots: Range<u64>,
    look: &impl Fn(Slot, &Anchor, &mut T) -> Result<(), EngineError>,
) -> Result<T, EngineError> {
    let mut found = T::default();
    let mut from = slots.start;
    while from < slots.end {
        let _pin = session.local.pin();
        let to = slots.end.min(from + SLOTS_PER_PIN);
        for slot in (from..to).map(Slot) {
            if let Some(anchor) = table.anchor(slot) {
                look(slot, anchor, &mut found)?;
            }
        }
        from = to;
    }
    Ok(found)
}

/// Adds a slot to those that were found.
pub(super) fn note(found: &mut Vec<Slot>, slot: Slot) -> Result<(), EngineError> {
    found
        .try_reserve(1)
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    found.push(slot);
    Ok(())
}
