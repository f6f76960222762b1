//! Keys of rows that were there before their index, put behind them in place.
//!
//! A row's computed keys lie behind it (`key/computed.rs`), and an index may come after the row.
//! Then its newest committed state gets another *image*: the same columns, transaction, command,
//! ordinal and LSN, with one entry more. Entries of indexes that are gone are left out where the
//! caller keeps all other builds away: those of an index that is being built look the same. It is
//! no change of the row. No snapshot sees anything else, no transaction is refused for it (40001),
//! and no transaction decides about it. An entry of an index that is not made after all is in
//! no transaction's way.
//!
//! Protocol, for some rows at a time:
//!
//! 1. **Allocate** the new images. All that may fail is over then, but for the log.
//! 2. **Announce**: under its latch a row whose newest state is the one seen, committed and with no
//!    unfinished one on top, gets FULL_IMAGE_NEXT. A row that is not so is left to the caller.
//! 3. **Log** one record. It names each state by row, ordinal and checksum.
//! 4. **Put**: under the row's latch the new image takes the place of the one seen, which stays
//!    right below it. A change that has come on top since 2 stays on top.
//!
//! Why it is right:
//!
//! - **The log's differences.** A change of the row logs a difference to the state below,
//!   which replay has with or without the new entry. A change that came before 2 is on top, and the
//!   row was left. A change behind 2 finds FULL_IMAGE_NEXT, whichever image it finds, and is logged
//!   whole. The flag goes when that is done (`Anchor::mark_version`), and comes back if it is
//!   rolled back.
//! - **Checkpoints.** The `logging` flag is up from before 3 until 4 is through, as of any record.
//!   So a checkpoint whose redo position is behind the record has the new images. The rows' LSNs
//!   do not show them to it: a checkpoint writes all rows of a table that
//!   [`TableRef::was_reformed`].
//! - **An error in 3, or a crash between 3 and 4**, leaves rows without the key, or the log with it
//!   alone. The caller finds such a row as before, and logs it again. Replay passes over a row that
//!   has the entry, or is another one by now.
//! - **Readers.** A reader on the former image continues as ever. A later one meets the new one
//!   first. A row id of a snapshot may show the former image for long, without a pin. So it stays
//!   in the chain until no snapshot from that moment is left: the horizon has to pass
//!   `reformed_below`, the next transaction id behind 4. While 4 is under way (`reforming`) nothing
//!   that is below a reformed state goes for its sake.
//! - **Writers.** A writer that has seen the former image finds the new one
//!   ([`VersionRef::is_or_replaces`]). A walk that counts states, or wants a key of each, passes
//!   over former images (`row::states_from`).
//! - **Several at once.** Each step reads the row under its latch. One that finds another image
//!   than the one seen leaves the row to its caller, which computes anew.
//! - **The index is not there**, in this table's storage, while its entries are put: no process
//!   enters or removes by a number that no index has. A replay that began in the middle may have
//!   it; it enters the key (`recovery/replay/keys.rs`).

use super::log::{Log, Mark, append};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::key::{Tail, row_checksum, without_tail};
use crate::log::{KeysWriter, RowKey};
use crate::memory::{Purpose, Urgency};
use crate::pause::{Point, reach};
use crate::row::{Head, TxnStatus, VersionRef, block_bytes, flags, resolve_maker};
use crate::session::Session;
use crate::table::{TableRef, TableStorage};
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

/// Rows of one record at most: checkpoints wait for it, and memory is bounded.
const ROWS_AT_A_TIME: usize = 256;
/// After so many bytes of rows no other one is added.
const BYTES_AT_A_TIME: usize = 256 << 10;

/// Flags of a state that its new image has, too.
const KEPT: u32 = flags::COMMITTED
    | flags::LOGGED
    | flags::KEYS_CHANGED
    | flags::UNIQUE_KEYS_CHANGED
    | flags::NO_LOCKS_BELOW;

/// What a row is to a caller that wants all of its later states to have a key.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Standing {
    /// No committed state, or a deleted row.
    Gone,
    /// The caller's own state.
    Own(VersionRef),
    /// A committed state.
    Committed(VersionRef),
    /// A committed state under the unfinished work of this transaction.
    Under(VersionRef, Xid),
}

/// Rows that are to get a key in one index.
pub struct Reforms {
    /// The index's number in rows' tails.
    number: u32,
    /// The numbers of others whose entries stay; `None`: of all.
    kept: Option<Vec<u32>>,
    rows: Vec<Row>,
    bodies: Vec<u8>,
    record: KeysWriter,
}

struct Row {
    row_id: RowId,
    seen: VersionRef,
    /// Where the new body is.
    body: Range<usize>,
    /// Where the entry is in it.
    entry: Range<usize>,
    /// The new image, as long as no process reaches it.
    made: Option<VersionRef>,
    is_left: bool,
}

impl Reforms {
    /// None yet. Tails are to have entries of `kept`, and no others but the index's; `None`: all
    /// that they have. Only a build that keeps all others out knows whose entries are of use.
    pub fn new(number: u32, kept: Option<Vec<u32>>) -> Reforms {
        Reforms {
            number,
            kept,
            rows: Vec::new(),
            bodies: Vec::new(),
            record: KeysWriter::default(),
        }
    }

    /// Adds a row: the state that was seen, and the tail that it is to have, whose last entry is
    /// the index's. Rows come in ascending order. What keeps the state valid does so until the
    /// rows are put in place.
    pub fn add(&mut self, row_id: RowId, seen: VersionRef, tail: &Tail) -> Result<(), EngineError> {
        debug_assert!(!self.kept.iter().flatten().any(|kept| *kept == self.number));
        let entry = tail.last(self.number)?.len();
        self.rows
            .try_reserve(1)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        let start = self.bodies.len();
        tail.append_to(without_tail(seen.body()), &mut self.bodies)?;
        let end = self.bodies.len();
        super::insert::check_length(&self.bodies[start..end])?;
        // Behind the entries is their length.
        let entries_end = end - size_of::<u32>();
        self.rows.push(Row {
            row_id,
            seen,
            body: start..end,
            entry: entries_end - entry..entries_end,
            made: None,
            is_left: false,
        });
        Ok(())
    }

    /// Whether they are enough for one record.
    pub fn are_many(&self) -> bool {
        self.rows.len() >= ROWS_AT_A_TIME || self.bodies.len() >= BYTES_AT_A_TIME
    }

    /// Forgets the rows, and gives those that were left because others have changed them.
    pub fn take_left(&mut self) -> impl Iterator<Item = RowId> {
        self.bodies.clear();
        self.rows
            .drain(..)
            .filter(|row| row.is_left)
            .map(|row| row.row_id)
    }
}

/// Images that no process reaches are freed when this goes.
struct Made<'a> {
    session: &'a Session,
    rows: &'a mut Reforms,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        for row in &mut self.rows.rows {
            if let Some(image) = row.made.take() {
                let (block, bytes) = (image.block(), image.block_bytes());
                // SAFETY: never published.
                unsafe { self.session.local.free(block, bytes, Purpose::Rows) };
            }
        }
    }
}

/// Images are being put in the place of others; what these are stays as long as this says.
pub(crate) struct Reforming<'a, N: Fn() -> Xid> {
    storage: &'a TableStorage,
    /// The next transaction id.
    next: N,
}

impl<N: Fn() -> Xid> Reforming<'_, N> {
    pub(crate) fn begin(table: TableRef, next: N) -> Self {
        let storage = table.storage();
        storage.reforming.fetch_add(1, Ordering::AcqRel);
        Reforming { storage, next }
    }
}

impl<N: Fn() -> Xid> Drop for Reforming<'_, N> {
    fn drop(&mut self) {
        // Behind what was put: a session that has read a former image has a snapshot from before.
        fence(Ordering::SeqCst);
        let next = (self.next)();
        self.storage
            .reformed_below
            .fetch_max(next.0, Ordering::AcqRel);
        self.storage.reforming.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Session {
    /// The numbers in rows' tails of all indexes that a table has in memory, dropped ones included
    /// until they are gone for good.
    pub fn computed_numbers(&self, table: TableRef) -> Result<Vec<u32>, EngineError> {
        let _pin = self.local.pin();
        let mut numbers = Vec::new();
        for index in table.all_indexes() {
            numbers.extend(self.definition(index)?.computed);
        }
        Ok(numbers)
    }

    /// What a row is at this moment. What is given is kept as the newest state is.
    pub fn standing(&self, clock: &impl Clock, table: TableRef, row_id: RowId) -> Standing {
        let _pin = self.local.pin();
        let mut unfinished = None;
        let mut at = table
            .anchor(row_id)
            .and_then(|anchor| anchor.head().version());
        while let Some(version) = at {
            at = version.next();
            if version.is_lock() {
                continue;
            }
            match resolve_maker(version, clock) {
                TxnStatus::Aborted => {}
                TxnStatus::Running => {
                    unfinished.get_or_insert(version.xid());
                }
                TxnStatus::Mine | TxnStatus::Committed if version.is_tombstone() => {
                    return Standing::Gone;
                }
                TxnStatus::Mine => return Standing::Own(version),
                TxnStatus::Committed => {
                    return match unfinished {
                        Some(xid) => Standing::Under(version, xid),
                        None => Standing::Committed(version),
                    };
                }
            }
        }
        Standing::Gone
    }

    /// Puts keys behind rows, in place. `next` is the next transaction id, whenever it is asked
    /// for. Which rows were left says [`Reforms::take_left`].
    pub fn reform(
        &self,
        clock: &impl Clock,
        table: TableRef,
        rows: &mut Reforms,
        log: &mut impl Log,
        next: impl Fn() -> Xid,
    ) -> Result<(), EngineError> {
        // All rows of a table that the transaction has made are logged when it ends.
        let created = Xid(table.storage().created.load(Ordering::Acquire));
        let is_own = created.is_some() && clock.is_current(created);
        let is_logged = table.is_logged() && !is_own;
        let _charge = self.charge(table);
        let mut made = Made {
            session: self,
            rows,
        };
        {
            let _pin = self.local.pin();
            made.allocate()?;
            made.announce(table, is_logged);
        }
        if made.rows.rows.iter().all(|row| row.is_left) {
            return Ok(());
        }
        made.describe(table)?;
        reach(Point::KeysBeforeLog);
        let _reforming = Reforming::begin(table, next);
        if !is_logged {
            made.put(table);
            return Ok(());
        }
        let end = log.held(|log| {
            let (_mark, round) = Mark::raise(self);
            let end = append(self, log, made.rows.record.record());
            reach(Point::KeysBeforeRows);
            made.put(table);
            table.note_reformed(round);
            end
        });
        let last = &self.engine().root().last_lsn;
        last.fetch_max(end.0, Ordering::AcqRel);
        Ok(())
    }
}

impl Made<'_> {
    fn allocate(&mut self) -> Result<(), EngineError> {
        let rows = &mut *self.rows;
        for row in &mut rows.rows {
            let body = &rows.bodies[row.body.clone()];
            let bytes = block_bytes(body.len());
            let local = &self.session.local;
            let block = local.allocate(bytes, Purpose::Rows, Urgency::Ordinary)?;
            let (xid, cid) = (row.seen.xid(), row.seen.cid());
            // SAFETY: the block is fresh and large enough.
            row.made = Some(unsafe { VersionRef::write(block, body, xid, cid, flags::REFORMED) });
        }
        Ok(())
    }

    /// Leaves the rows of which another state is the newest. The others are logged whole when they
    /// are changed next, if they are logged.
    fn announce(&mut self, table: TableRef, is_logged: bool) {
        for row in &mut self.rows.rows {
            row.is_left = true;
            let Some(anchor) = table.anchor(row.row_id) else {
                continue;
            };
            let mut latched = anchor.latch();
            row.is_left = !is_newest(latched.head, row.seen);
            if is_logged && !row.is_left {
                latched.head = latched.head.with_flags(Head::FULL_IMAGE_NEXT);
            }
        }
    }

    fn describe(&mut self, table: TableRef) -> Result<(), EngineError> {
        let rows = &mut *self.rows;
        rows.record
            .begin(table.id(), rows.number, rows.kept.as_deref())?;
        for row in rows.rows.iter().filter(|row| !row.is_left) {
            rows.record.add(RowKey {
                row_id: row.row_id,
                ordinal: row.seen.ordinal(),
                checksum: row_checksum(&rows.bodies[row.body.clone()]),
                entry: &rows.bodies[row.entry.clone()],
            })?;
        }
        Ok(())
    }

    fn put(&mut self, table: TableRef) {
        let _pin = self.session.local.pin();
        for row in self.rows.rows.iter_mut().filter(|row| !row.is_left) {
            let image = row
                .made
                .filter(|image| put(table, row.row_id, row.seen, *image));
            match image {
                Some(_) => row.made = None,
                None => row.is_left = true,
            }
        }
    }
}

/// Whether a state is a row's newest one, and committed. Latched.
fn is_newest(head: Head, seen: VersionRef) -> bool {
    let mut at = head.version();
    while let Some(version) = at {
        if version.flags() & (flags::LOCK_ONLY | flags::ABORTED) == 0 {
            return version == seen && version.is_known_committed();
        }
        at = version.next();
    }
    false
}

/// Puts an image in the place of a state; `false` if that is in its chain no more, or below a newer
/// committed one. Pinned.
pub(crate) fn put(table: TableRef, row_id: RowId, seen: VersionRef, image: VersionRef) -> bool {
    let Some(anchor) = table.anchor(row_id) else {
        return false;
    };
    let mut latched = anchor.latch();
    let mut above = None;
    let mut at = latched.head.version();
    while let Some(version) = at.filter(|version| *version != seen) {
        let is_committed = version.is_known_committed() && !version.is_lock();
        at = version.next().filter(|_| !is_committed);
        above = Some(version);
    }
    if at.is_none() {
        return false;
    }
    image.set_next(Head::empty().with_address(seen.address()));
    image.add_flags(seen.flags() & KEPT);
    match above {
        Some(above) => VersionRef::replace_next(&above, Some(image)),
        None => latched.head = latched.head.with_address(image.address()),
    }
    drop(latched);
    let counters = table.counters();
    let grown = image.image_bytes() as i64 - seen.image_bytes() as i64;
    counters.row_bytes.fetch_add(grown, Ordering::Relaxed);
    counters.stale_versions.fetch_add(1, Ordering::Relaxed);
    table.set_dirty(row_id);
    true
}
