//! Fills an index beside writers, and proves that its keys are unique.
//!
//! The index is published, empty, before anything here begins. From then on every writer enters
//! what it publishes, and a process that removes a version removes its entries. What is left are
//! versions of writers that had not seen the index. These versions are in their chains once all
//! processes that were pinned at the publication have unpinned. `mot_ext/src/index_am/README.md`
//! has the states, and why this suffices.
//!
//! A row is read, entered, and read again. Its versions may go meanwhile, and the process that
//! removed one has not found the new entry. So an entry that no version of the chain needs any more
//! is removed again, under the latch of its leaf, as after any other cleaning.

mod entries;

use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::index::entry::RemainingKeys;
use crate::index::entry::append_row_id;
use crate::index::entry::posting::{Posting, has_row_id, row_ids_of};
use crate::index::entry::remove_key;
use crate::index::entry::{EntryOutcome, NOT_TESTED, enter_at};
use crate::key::{KeyBuffer, encode_row_if_any};
use crate::memory::Urgency;
use crate::row::{Anchor, Head, TxnStatus, VersionRef, resolve_maker, states_from};
use crate::session::Session;
use crate::sync::is_broken;
use crate::table::{EntryForm, IndexRef, TableRef};
use mot_index::{Batch, Bound, Direction, Tree};
use std::cmp::Ordering;

/// Row ids examined between two pins.
const ROW_IDS_PER_PIN: u64 = 256;
/// Entries examined between two pins.
const ENTRIES_PER_PIN: usize = 256;

impl Session {
    /// Enters every row of a table in an index that is published. `pause` is called unpinned, again
    /// and again; it may unwind. Returns how many entries were missing.
    pub fn fill_index(
        &self,
        clock: &impl Clock,
        table: TableRef,
        index: IndexRef,
        mut pause: impl FnMut(),
    ) -> Result<u64, EngineError> {
        if !is_broken("index builds: waiting for who is pinned") {
            self.local.wait_for_pinned(&mut pause);
        }
        let _charge = self.charge(table);
        let mut filler = Filler {
            session: self,
            clock,
            table,
            index,
            horizon: self.horizon(),
            keys: Vec::new(),
            scratch: KeyBuffer::new(),
            added: 0,
        };
        // What comes behind is entered by its inserter.
        let end = table.row_ids_end().0;
        let mut from = 0;
        while from < end {
            let to = (from + ROW_IDS_PER_PIN).min(end);
            {
                let _pin = self.local.pin();
                for row_id in (from..to).map(RowId) {
                    if let Some(anchor) = table.anchor(row_id) {
                        filler.row(row_id, anchor)?;
                    }
                }
            }
            pause();
            from = to;
        }
        Ok(filler.added)
    }

    /// Two live rows with the same key of an index that is to be unique, if there are any: rows
    /// that committed transactions left, and those that unfinished ones below `asked_from` make.
    /// A writer with a later id has asked for uniqueness. Where it depends on an unfinished
    /// transaction, `wait` is called, unpinned: `true` if that has ended, `false` to pass over the
    /// key. `pause` is called unpinned, again and again; both may unwind.
    pub fn find_duplicate(
        &self,
        clock: &impl Clock,
        (table, index): (TableRef, IndexRef),
        asked_from: Xid,
        mut wait: impl FnMut(Xid) -> bool,
        mut pause: impl FnMut(),
    ) -> Result<Option<[RowId; 2]>, EngineError> {
        let mut finder = Finder {
            session: self,
            clock,
            table,
            index,
            asked_from,
            scratch: KeyBuffer::new(),
            rows: Vec::new(),
        };
        if is_broken("index builds: those who run") {
            finder.asked_from = Xid(0);
        }
        if !index.is_unique() {
            return finder.find_in_entries(wait, pause);
        }
        let mut batch = Batch::with_capacity(ENTRIES_PER_PIN);
        let mut from: Option<(Vec<u8>, bool)> = None;
        loop {
            let bound = match &from {
                None => Bound::Start,
                Some((key, true)) => Bound::Excluded(key),
                Some((key, false)) => Bound::Included(key),
            };
            match finder.batch(bound, &mut batch)? {
                Looked::On(Some(key)) => from = Some((key, true)),
                Looked::On(None) => return Ok(None),
                Looked::Duplicate(rows) => return Ok(Some(rows)),
                Looked::Open(key, xid) => from = Some((key, !wait(xid))),
            }
            pause();
        }
    }

    /// The oid of an index that has just answered a writer, if the table still has it: it may be
    /// dropped and freed meanwhile.
    pub fn index_oid(&self, table: TableRef, index: IndexRef) -> Option<u32> {
        let _pin = self.local.pin();
        let is_there = table.all_indexes().any(|other| other == index);
        is_there.then(|| index.relation_oid())
    }

    /// Shows writers that the server's catalog has an index as dead: it is asked for uniqueness no
    /// more. False: they knew.
    pub fn index_is_dead(&self, table: TableRef, relation: u32) -> bool {
        let _pin = self.local.pin();
        let mut is_news = false;
        for index in table.all_indexes() {
            is_news |= index.relation_oid() == relation && index.set_dead();
        }
        is_news
    }
}

/// A key of a row, without suffix.
struct RowKey {
    bytes: KeyBuffer,
    has_null: bool,
}

impl RowKey {
    fn order(&self, other: &RowKey) -> Ordering {
        crate::steps::step();
        self.bytes.as_slice().cmp(other.bytes.as_slice())
    }

    fn is(&self, other: &RowKey) -> bool {
        self.order(other) == Ordering::Equal
    }
}

/// What a walk along a chain met, beside its keys.
struct Collected {
    /// Some version has no key.
    has_keyless: bool,
    /// Nothing is below the first version.
    is_alone: bool,
}

struct Filler<'a, C> {
    session: &'a Session,
    clock: &'a C,
    table: TableRef,
    index: IndexRef,
    /// What a committed transaction below this superseded is seen by no snapshot.
    horizon: Xid,
    keys: Vec<RowKey>,
    scratch: KeyBuffer,
    added: u64,
}

impl<C: Clock> Filler<'_, C> {
    /// Enters the keys of a row. The caller is pinned.
    fn row(&mut self, row_id: RowId, anchor: &Anchor) -> Result<(), EngineError> {
        let before = anchor.head();
        let Collected {
            has_keyless,
            is_alone,
        } = self.collect(before)?;
        if self.keys.is_empty() {
            return Ok(());
        }
        let has_moved = self.keys.len() > 1 || has_keyless;
        if has_moved && !is_broken("index builds: saying that keys have moved") {
            self.mark_moved(row_id, anchor);
        }
        for number in 0..self.keys.len() {
            self.enter(row_id, number)?;
        }
        // Under the latch under which versions are removed: a removal before this is visible here,
        // and one after this finds the entry, even in a tree that was empty.
        let after = if is_broken("index builds: the latch of the second look") {
            anchor.head()
        } else {
            anchor.latch().head
        };
        let may_have_gone = !is_alone || !after.same_chain(before);
        if may_have_gone && !is_broken("index builds: looking at the row again") {
            self.remove_gone(row_id, after)?;
        }
        Ok(())
    }

    /// Collects the different keys of a chain. A version that may be the row's after all that runs
    /// must have one. Of one that only older snapshots see, the index remembers that it has none.
    fn collect(&mut self, head: Head) -> Result<Collected, EngineError> {
        self.keys.clear();
        let mut has_keyless = false;
        let mut may_be_current = true;
        let mut may_be_seen = true;
        let top = head.version();
        // Shown before the walk: what is below the first version may go at any time.
        let is_alone = top.is_none_or(|top| top.next().is_none());
        for version in states_from(top) {
            let status = resolve_maker(version, self.clock);
            if status == TxnStatus::Aborted {
                continue;
            }
            let is_needed = may_be_current;
            let is_seen = may_be_seen;
            may_be_current &= status == TxnStatus::Running;
            may_be_seen &= status != TxnStatus::Committed || version.xid() >= self.horizon;
            if version.is_tombstone() {
                continue;
            }
            let mut bytes = KeyBuffer::new();
            let has_null = if is_needed {
                self.session
                    .encode_key(self.index, version.body(), &mut bytes)?
                    .0
            } else {
                self.session
                    .encode_key_if_any(self.index, version.body(), &mut bytes)?
                    .0
            };
            if bytes.is_empty() {
                has_keyless = true;
                if is_seen && !self.session.is_outside(self.index, version.body())? {
                    self.index.leave_out();
                }
                continue;
            }
            let key = RowKey { bytes, has_null };
            if self.keys.last().is_none_or(|above| !above.is(&key)) {
                self.keys
                    .try_reserve(1)
                    .map_err(|_| EngineError::OutOfProcessMemory)?;
                self.keys.push(key);
            }
        }
        // A row that changes all the time has as many versions as there are changes in a snapshot's
        // time.
        self.keys.sort_unstable_by(RowKey::order);
        self.keys.dedup_by(|one, other| one.is(other));
        Ok(Collected {
            has_keyless,
            is_alone,
        })
    }

    /// From now on scans of the row compare keys, and a process that takes a version out removes
    /// its entries. Before they are made.
    fn mark_moved(&self, row_id: RowId, anchor: &Anchor) {
        let mut latched = anchor.latch();
        // The row id may be its next taker's by now, which waits for an empty head.
        if !latched.head.is_empty() {
            latched.head = latched.head.with_flags(Head::KEYS_MOVED);
        }
        drop(latched);
        self.table.set_dirty(row_id);
    }

    fn enter(&mut self, row_id: RowId, number: usize) -> Result<(), EngineError> {
        let RowKey { bytes, has_null } = &mut self.keys[number];
        let memory = self.session.tree_memory(Urgency::Ordinary);
        // SAFETY: the caller is pinned.
        let tree = unsafe { Tree::new(&self.index.storage().root, &memory) };
        let form = self.index.form(*has_null);
        let length = bytes.len();
        if form == EntryForm::Suffixed {
            append_row_id(bytes, row_id)?;
        }
        let value = tree.get(bytes.as_slice());
        if value.is_some_and(|value| has_row_id(value, row_id)) {
            bytes.truncate(length);
            return Ok(());
        }
        let (session, table, index) = (self.session, self.table, self.index);
        // SAFETY: no insert position; pinned.
        let entered = unsafe {
            enter_at(
                session,
                table,
                index,
                form,
                &tree,
                None,
                bytes,
                &mut self.scratch,
                row_id,
                NOT_TESTED,
            )?
        };
        debug_assert!(entered == EntryOutcome::Done, "asked without a clock");
        self.added += 1;
        bytes.truncate(length);
        Ok(())
    }

    /// Removes the entries again of keys that no version of the row has any more, as of a second
    /// look at its head. A process that takes one of these versions out finds its entry.
    fn remove_gone(&mut self, row_id: RowId, after: Head) -> Result<(), EngineError> {
        let definition = self.session.definition(self.index)?;
        let left = RemainingKeys::of(after, definition);
        for number in 0..self.keys.len() {
            let key = self.keys[number].bytes.as_slice();
            let is_left = match &left {
                Some(left) => left.have(definition, key, &mut self.scratch)?,
                None => false,
            };
            if !is_left {
                self.remove_if_gone(row_id, number)?;
            }
        }
        Ok(())
    }

    /// Removes an entry again if no version of the row has its key any more.
    fn remove_if_gone(&mut self, row_id: RowId, number: usize) -> Result<(), EngineError> {
        let RowKey { bytes, has_null } = &mut self.keys[number];
        let (session, table, index) = (self.session, self.table, self.index);
        remove_key(
            session,
            table,
            index,
            *has_null,
            bytes,
            &mut self.scratch,
            row_id,
            None,
        )
    }
}

/// Where a walk over some entries ended.
enum Looked {
    /// At this key; none: at the last.
    On(Option<Vec<u8>>),
    /// At a key of two live rows.
    Duplicate([RowId; 2]),
    /// At a key on which a transaction decides.
    Open(Vec<u8>, Xid),
}

/// How many rows have a key.
enum Holders {
    One,
    Two([RowId; 2]),
    Open(Xid),
}

/// Whether a row has a key.
#[derive(Copy, Clone)]
enum Holds {
    No,
    Yes,
    /// Unless this transaction decides otherwise.
    Open(Xid),
}

struct Finder<'a, C> {
    session: &'a Session,
    clock: &'a C,
    table: TableRef,
    index: IndexRef,
    asked_from: Xid,
    scratch: KeyBuffer,
    rows: Vec<(RowId, Head, Holds)>,
}

impl<C: Clock> Finder<'_, C> {
    fn batch(&mut self, bound: Bound<'_>, batch: &mut Batch) -> Result<Looked, EngineError> {
        let _pin = self.session.local.pin();
        let memory = self.session.tree_memory(Urgency::Ordinary);
        // SAFETY: pinned while it is used.
        let tree = unsafe { Tree::new(&self.index.storage().root, &memory) };
        tree.scan_batch(bound, Direction::Forward, batch);
        for (key, value) in batch.iter() {
            // An entry with one row needs no look, nor does one of a key with a NULL.
            if Posting::of(value).is_none() {
                continue;
            }
            match self.holders(key, value)? {
                Holders::One => {}
                Holders::Two(rows) => return Ok(Looked::Duplicate(rows)),
                Holders::Open(xid) => return Ok(Looked::Open(key.to_vec(), xid)),
            }
        }
        if batch.is_exhausted() {
            return Ok(Looked::On(None));
        }
        let last = batch.len().checked_sub(1);
        Ok(Looked::On(last.map(|at| batch.get(at).0.to_vec())))
    }

    /// How many of an entry's rows have its key at one moment: one in the way may have gone
    /// before the next came.
    fn holders(&mut self, key: &[u8], value: u64) -> Result<Holders, EngineError> {
        loop {
            self.rows.clear();
            let mut row_ids = Ok(());
            let rows = &mut self.rows;
            row_ids_of(value, |row_id| {
                row_ids = rows.try_reserve(1);
                if row_ids.is_ok() {
                    rows.push((row_id, Head::empty(), Holds::No));
                }
            });
            row_ids.map_err(|_| EngineError::OutOfProcessMemory)?;
            for at in 0..self.rows.len() {
                let (head, holds) = self.holds(self.rows[at].0, key)?;
                (self.rows[at].1, self.rows[at].2) = (head, holds);
            }
            self.rows.retain(|row| !matches!(row.2, Holds::No));
            let rows = &self.rows;
            let [first, second, ..] = rows[..] else {
                return Ok(Holders::One);
            };
            let is_open = |row: &(RowId, Head, Holds)| match row.2 {
                Holds::Open(xid) => Some(xid),
                _ => None,
            };
            if let Some(xid) = rows.iter().find_map(is_open) {
                return Ok(Holders::Open(xid));
            }
            // One after the other was examined: both must still be as they were.
            if self.is_same(first.0, first.1) && self.is_same(second.0, second.1) {
                return Ok(Holders::Two([first.0, second.0]));
            }
        }
    }

    /// Whether a row is as it was at a head.
    fn is_same(&self, row_id: RowId, head: Head) -> bool {
        let anchor = self.table.anchor(row_id);
        anchor.is_some_and(|anchor| anchor.head().same_chain(head))
    }

    /// Whether a row has the key, and at which head. The caller is pinned.
    fn holds(&mut self, row_id: RowId, key: &[u8]) -> Result<(Head, Holds), EngineError> {
        let Some(anchor) = self.table.anchor(row_id) else {
            return Ok((Head::empty(), Holds::No));
        };
        let definition = self.session.definition(self.index)?;
        let head = anchor.head();
        let mut running = None;
        let mut has_running_key = false;
        let chain = std::iter::successors(head.version(), VersionRef::next);
        for version in chain.filter(|version| !version.is_lock()) {
            let status = resolve_maker(version, self.clock);
            if status == TxnStatus::Aborted {
                continue;
            }
            let has_key = !version.is_tombstone() && {
                let has_null = encode_row_if_any(definition, version.body(), &mut self.scratch)?.0;
                let is_distinct = has_null && !definition.nulls_not_distinct;
                !is_distinct && self.scratch.as_slice() == key
            };
            if status == TxnStatus::Running {
                running.get_or_insert(version.xid());
                has_running_key |= has_key && version.xid() < self.asked_from;
                continue;
            }
            return Ok(match (has_key, running) {
                (true, None) => (head, Holds::Yes),
                (true, Some(xid)) => (head, Holds::Open(xid)),
                (false, Some(xid)) if has_running_key => (head, Holds::Open(xid)),
                (false, _) => (head, Holds::No),
            });
        }
        Ok(match running {
            Some(xid) if has_running_key => (head, Holds::Open(xid)),
            _ => (head, Holds::No),
        })
    }
}
