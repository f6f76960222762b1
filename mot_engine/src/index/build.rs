//! Building an index from the rows that are there.
//!
//! Used by CREATE INDEX on a filled table and by recovery. Every data version of every chain that is not aborted gets its entry, so that
//! older snapshots find their rows through the new index, too. Keys are collected in process-local memory, sorted, and loaded in bulk.
//! The caller makes sure that nobody changes the table meanwhile. Each step asks the clock again and again whether to go on; given up, it
//! gives back what it took, and the tree is as empty as before.

use super::append_slot;
use super::order::{Merged, PIECE_ENTRIES, sort_pieces};
use super::posting::{Posting, inline_value};
use crate::clock::{Clock, check_cancelled};
use crate::errors::EngineError;
use crate::ids::{Slot, Xid};
use crate::key::{IndexDefinition, KeyBuffer, encode_row};
use crate::memory::Urgency;
use crate::row::{Anchor, Head, Judged, judge_maker};
use crate::session::Session;
use crate::table::{EntryForm, IndexRef, TableRef};
use mot_index::{BulkError, Tree};
use std::cmp;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Slots walked between two pins: memory retired meanwhile must not wait for a whole table.
const SLOTS_PER_PIN: u64 = 1024;

/// Entries grouped or loaded between two looks at whether to go on.
const ENTRIES_PER_LOOK: usize = 4096;

/// What became of a build.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Build {
    /// The index is filled.
    Done(IndexRef),
    /// Two live rows have the same key of a unique index; nothing was built.
    Duplicate {
        /// The rows, in slot order.
        slots: [Slot; 2],
    },
}

struct Entry {
    /// First bytes of the key, big-endian: decides most comparisons.
    prefix: u64,
    offset: usize,
    length: u32,
    live: bool,
    pointed: bool,
    slot: Slot,
}

/// Keys collected so far.
#[derive(Default)]
pub(crate) struct Run {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Run {
    fn key(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.offset..entry.offset + entry.length as usize]
    }

    fn push(
        &mut self,
        key: &[u8],
        slot: Slot,
        live: bool,
        pointed: bool,
    ) -> Result<(), EngineError> {
        self.bytes
            .try_reserve(key.len())
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        self.entries
            .try_reserve(1)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        let mut prefix = [0u8; 8];
        let head = key.len().min(8);
        prefix[..head].copy_from_slice(&key[..head]);
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.entries.push(Entry {
            prefix: u64::from_be_bytes(prefix),
            offset,
            length: key.len() as u32,
            live,
            pointed,
            slot,
        });
        Ok(())
    }

    fn sort(&mut self, clock: &impl Clock) -> Result<(), EngineError> {
        let order = order(&self.bytes);
        sort_pieces(&mut self.entries, PIECE_ENTRIES, order, || {
            check_cancelled(clock)
        })
    }

    /// Adds the entries of one row.
    pub(crate) fn add_row(
        &mut self,
        index: IndexRef,
        definition: &IndexDefinition,
        slot: Slot,
        anchor: &Anchor,
        clock: &impl Clock,
        key: &mut KeyBuffer,
    ) -> Result<(), EngineError> {
        let first_of_row = self.entries.len();
        let mut has_keyless = false;
        let mut newest = true;
        let mut at = anchor.head().version();
        while let Some(version) = at {
            at = version.next();
            if version.is_lock() {
                continue;
            }
            let verdict = judge_maker(version, clock);
            if verdict == Judged::Aborted {
                continue;
            }
            let live = newest && verdict != Judged::Running;
            newest = false;
            if version.is_tombstone() {
                continue;
            }
            let has_null = encode_row(definition, version.image(), key)?.0;
            if key.is_empty() {
                has_keyless = true;
                continue;
            }
            let pointed = index.form(has_null) == EntryForm::Pointed;
            if !pointed {
                append_slot(key, slot)?;
            }
            let known = self.entries[first_of_row..]
                .iter()
                .any(|entry| self.key(entry) == key.as_slice());
            if !known {
                self.push(key.as_slice(), slot, live, pointed)?;
            }
        }
        if self.entries.len() > first_of_row + 1 || has_keyless {
            // Changed while no index minded: from now on scans must compare, and pruning must remove the entries of old versions.
            let mut latched = anchor.latch();
            latched.head = latched.head.with_flags(Head::KEYS_MOVED);
        }
        Ok(())
    }

    /// Sorts and loads. The index's tree is empty and nobody else uses it.
    pub(crate) fn load(
        mut self,
        session: &Session,
        clock: &impl Clock,
        index: IndexRef,
    ) -> Result<Build, EngineError> {
        self.sort(clock)?;
        let mut values: Vec<(usize, u64)> = Vec::new();
        values
            .try_reserve(self.entries.len())
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        let outcome = self.group(session, clock, &mut values);
        let loaded = match outcome {
            Ok(None) => {
                let memory = session.tree_memory(Urgency::Ordinary);
                // SAFETY: nobody else uses the tree (caller).
                let tree = unsafe { Tree::new(&index.storage().root, &memory) };
                let mut is_cancelled = false;
                let entries = values.iter().enumerate().map_while(|(at, value)| {
                    is_cancelled = at % ENTRIES_PER_LOOK == 0 && clock.is_cancelled();
                    let (position, value) = *value;
                    (!is_cancelled).then(|| (self.key(&self.entries[position]), value))
                });
                match tree.bulk_load(entries) {
                    Ok(_) if is_cancelled => {
                        // SAFETY: nobody else uses the tree (caller).
                        unsafe { tree.clear() };
                        Err(EngineError::Cancelled)
                    }
                    Ok(_) => {
                        index
                            .storage()
                            .entries
                            .store(self.entries.len() as i64, Ordering::Relaxed);
                        return Ok(Build::Done(index));
                    }
                    Err(BulkError::OutOfMemory) => Err(session.index_full()),
                    Err(_) => Err(EngineError::Corrupt {
                        what: "index keys out of order",
                    }),
                }
            }
            Ok(Some(slots)) => Ok(Build::Duplicate { slots }),
            Err(error) => Err(error),
        };
        for (_, value) in values {
            if let Some(block) = Posting::of(value) {
                // SAFETY: never published.
                unsafe { block.free(&session.local) };
            }
        }
        loaded
    }

    /// One value per distinct key. `Some`: two live rows share a pointed key.
    fn group(
        &self,
        session: &Session,
        clock: &impl Clock,
        values: &mut Vec<(usize, u64)>,
    ) -> Result<Option<[Slot; 2]>, EngineError> {
        let mut group: Vec<&Entry> = Vec::new();
        let mut first = 0;
        let merged = Merged::new(&self.entries, PIECE_ENTRIES, order(&self.bytes));
        for (at, position) in merged.enumerate() {
            if at % ENTRIES_PER_LOOK == 0 {
                check_cancelled(clock)?;
            }
            let entry = &self.entries[position];
            if group
                .first()
                .is_some_and(|first| self.key(first) != self.key(entry))
            {
                match value_of(session, &group)? {
                    Grouped::Value(value) => values.push((first, value)),
                    Grouped::Duplicate(slots) => return Ok(Some(slots)),
                }
                group.clear();
            }
            if group.is_empty() {
                first = position;
            }
            group.push(entry);
        }
        if group.is_empty() {
            return Ok(None);
        }
        match value_of(session, &group)? {
            Grouped::Value(value) => values.push((first, value)),
            Grouped::Duplicate(slots) => return Ok(Some(slots)),
        }
        Ok(None)
    }
}

/// The order of entries: by key, then by slot.
fn order(bytes: &[u8]) -> impl Fn(&Entry, &Entry) -> cmp::Ordering + Copy {
    let key = |entry: &Entry| &bytes[entry.offset..entry.offset + entry.length as usize];
    move |a, b| {
        a.prefix
            .cmp(&b.prefix)
            .then_with(|| key(a).cmp(key(b)))
            .then_with(|| a.slot.cmp(&b.slot))
            .then_with(|| b.live.cmp(&a.live))
    }
}

enum Grouped {
    Value(u64),
    /// Two live rows share a pointed key.
    Duplicate([Slot; 2]),
}

/// The value for the rows that have a key.
fn value_of(session: &Session, group: &[&Entry]) -> Result<Grouped, EngineError> {
    if let [entry] = group {
        return Ok(Grouped::Value(inline_value(entry.slot)));
    }
    debug_assert!(group[0].pointed, "a suffixed key is unique by its slot");
    let mut live = group.iter().filter(|entry| entry.live);
    if let (Some(a), Some(b)) = (live.next(), live.next()) {
        return Ok(Grouped::Duplicate([a.slot, b.slot]));
    }
    let block = Posting::allocate(&session.local, group.len().next_power_of_two().max(3))?;
    for entry in group {
        block.add(entry.slot);
    }
    Ok(Grouped::Value(block.value()))
}

/// Fills an empty index from the table's rows. The caller keeps the sweeper out until the index is published.
pub(crate) fn build(
    session: &Session,
    clock: &impl Clock,
    table: TableRef,
    index: IndexRef,
) -> Result<Build, EngineError> {
    let mut run = Run::default();
    let definition = session.definition(index)?;
    let mut key = KeyBuffer::new();
    collect(
        session,
        clock,
        table,
        index,
        definition,
        0..table.slots_end().0,
        &mut key,
        &mut run,
    )?;
    run.load(session, clock, index)
}

#[allow(clippy::too_many_arguments)]
fn collect(
    session: &Session,
    clock: &impl Clock,
    table: TableRef,
    index: IndexRef,
    definition: &IndexDefinition,
    range: Range<u64>,
    key: &mut KeyBuffer,
    run: &mut Run,
) -> Result<(), EngineError> {
    let mut from = range.start;
    while from < range.end {
        let to = (from + SLOTS_PER_PIN).min(range.end);
        check_cancelled(clock)?;
        let _pin = session.local.pin();
        for slot in (from..to).map(Slot) {
            if let Some(anchor) = table.anchor(slot) {
                run.add_row(index, definition, slot, anchor, clock, key)?;
            }
        }
        from = to;
    }
    Ok(())
}

/// Fills an empty index while tables are being loaded: from rows of different moments, among which two may have the same key until the
/// log is replayed. So nothing is judged and nothing counts as a duplicate. As for `build`, the caller keeps the sweeper out.
pub(crate) fn build_unjudged(
    session: &Session,
    table: TableRef,
    index: IndexRef,
) -> Result<(), EngineError> {
    let mut run = Run::default();
    let definition = session.definition(index)?;
    let mut key = KeyBuffer::new();
    let slots = 0..table.slots_end().0;
    collect(
        session, &Unjudged, table, index, definition, slots, &mut key, &mut run,
    )?;
    for entry in &mut run.entries {
        entry.live = false;
    }
    match run.load(session, &Unjudged, index)? {
        Build::Done(_) => Ok(()),
        Build::Duplicate { .. } => unreachable!("no entry is live"),
    }
}

/// Leaves open what has no hint.
struct Unjudged;

impl Clock for Unjudged {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }

    fn is_in_progress(&self, _xid: Xid) -> bool {
        true
    }

    fn did_commit(&self, _xid: Xid) -> bool {
        false
    }
}
