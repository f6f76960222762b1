//! Removes work: of the whole transaction, back to a savepoint, or of the last operation. Nothing
//! here can fail.

use super::commit::unlock;
use super::pending_free::{release_index, release_table};
use super::pinned::Pinned;
use super::prefetch::PrefetchWindow;
use super::{Kind, Operation, Own, Transaction};
use crate::ids::RowId;
use crate::pause::{Point, reach};
use crate::reclaim::{Part, take_states_out};
use crate::row::{Head, VersionRef, flags};
use crate::session::Session;
use crate::table::TableRef;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a session that has taken very much back waits for those that are pinned, to free it,
/// before it leaves it to others. A session may be idle from now on, and what failed because the
/// arena was full shall not keep it so.
const PATIENCE: Duration = Duration::from_millis(20);

impl Transaction {
    /// The transaction aborted.
    pub fn abort(&mut self, session: &Session) {
        give_row_ids_back(session, &self.operations);
        self.undo_from(session, 0).end(PATIENCE);
        session
            .engine()
            .transactions()
            .aborts
            .fetch_add(1, Ordering::Relaxed);
        self.clear();
    }

    /// The subtransaction at this nest level aborted: everything of that level or deeper is taken
    /// back.
    pub fn savepoint_abort(&mut self, session: &Session, level: i32) {
        let level = level.max(0) as u32;
        let first = self.suffix(level);
        self.take_names_back(session, first);
        give_row_ids_back(session, &self.operations[first..]);
        self.undo_from(session, first).end(PATIENCE);
        self.operations.truncate(first);
        self.own_tables.forget_since(first);
        self.own.forget_since(first);
        self.known.forget();
    }

    /// The subtransaction at this nest level ended well: its operations belong to the next outer
    /// level.
    pub fn savepoint_commit(&mut self, level: i32) {
        let level = level.max(1) as u32;
        let first = self.suffix(level);
        for operation in &mut self.operations[first..] {
            operation.set_level(level - 1);
        }
    }

    /// Takes back the last row operation: an insert whose entries met a duplicate that the
    /// statement passes over. The statement continues, so this does not wait.
    pub fn retract(&mut self, session: &Session) {
        debug_assert!(
            self.operations
                .last()
                .is_some_and(|last| last.kind().is_data())
        );
        let last = self.operations.len().saturating_sub(1);
        self.take_names_back(session, last);
        drop(self.undo_from(session, last));
        self.operations.truncate(last);
        self.own_tables.forget_since(last);
        self.known.forget();
    }

    /// Takes back the names of the states that operations from `first` on have made.
    fn take_names_back(&mut self, session: &Session, first: usize) {
        let _pin = session.local.pin();
        self.own_rows.take_back(&self.operations[first..]);
    }

    /// Takes back the insert of just now: this row and no other, with the entries that were made of
    /// it by now, in whichever indexes. False if it was not the last operation: nothing is taken
    /// back then.
    pub fn retract_insert(
        &mut self,
        session: &Session,
        table: TableRef,
        row_id: RowId,
        version: VersionRef,
    ) -> bool {
        let is_meant = self.operations.last().is_some_and(|last| {
            last.kind() == Kind::Insert
                && (last.table, last.row_id()) == (table, row_id)
                && last.address() == version.address()
        });
        if is_meant {
            self.retract(session);
        }
        is_meant
    }

    /// Where the operations of `level` and deeper begin.
    fn suffix(&self, level: u32) -> usize {
        let shallower = |operation: &Operation| operation.level() < level;
        self.operations
            .iter()
            .rposition(shallower)
            .map_or(0, |position| position + 1)
    }

    /// Takes operations back; the last of them are still under the pin.
    fn undo_from<'a>(&self, session: &'a Session, first: usize) -> Pinned<'a> {
        reach(Point::AbortBeforeUndo);
        let mut pinned = Pinned::begin(session);
        let mut undone = Undone::default();
        let operations = &self.operations[first..];
        let window = PrefetchWindow::of(operations);
        for (position, operation) in operations.iter().enumerate().rev() {
            pinned.step();
            window.prefetch_backward(position);
            match operation.kind() {
                Kind::Insert | Kind::Update | Kind::Delete if undone.has(operation) => {}
                Kind::Insert | Kind::Update | Kind::Delete => {
                    undo_row(session, &self.own, operation, first, self.is_logged);
                }
                Kind::Lock => unlock(session, &self.own, operation),
                Kind::CreateTable => release_table(session, operation.table),
                Kind::DropTable => operation
                    .table
                    .storage()
                    .dropped
                    .store(0, Ordering::Release),
                Kind::CreateIndex => release_index(session, operation.index()),
                Kind::DropIndex => operation
                    .index()
                    .storage()
                    .dropped
                    .store(0, Ordering::Release),
            }
            reach(Point::AbortBetweenRows);
        }
        pinned
    }
}

/// Gives back the unused row ids of tables whose inserts are taken back. The rows go in reverse, so
/// their row ids lie on the free list in order.
fn give_row_ids_back(session: &Session, operations: &[Operation]) {
    let mut given = None;
    for operation in operations {
        let table = operation.table;
        if operation.kind() == Kind::Insert && given != Some(table) {
            session.batches.borrow_mut().give_back_of(table);
            given = Some(table);
        }
    }
}

/// Rows that are remembered at once of which all states were removed.
const ROWS_UNDONE: usize = 16;

/// Rows of which the first operation has removed all states. Each further operation would search
/// for its own among all that old snapshots need.
#[derive(Default)]
struct Undone {
    rows: [Option<(TableRef, RowId)>; ROWS_UNDONE],
}

impl Undone {
    /// Whether the row of this operation is one of them; it is from now on.
    fn has(&mut self, operation: &Operation) -> bool {
        let row = Some((operation.table, operation.row_id()));
        let known = &mut self.rows[operation.row_id().0 as usize % ROWS_UNDONE];
        std::mem::replace(known, row) == row
    }
}

/// Takes a version of ours out, with the index entries only it needed, and with it, at once, the
/// row's other states that are taken back: all by xids that no operation before `first` has. If
/// another process is cleaning the row right now, they stay behind, marked as aborted, for the
/// sweeper.
fn undo_row(session: &Session, own: &Own, operation: &Operation, first: usize, was_logged: bool) {
    let part = |version: VersionRef| {
        let xid = version.xid();
        if version.is_lock() {
            Part::Kept
        } else if own.is_since(xid, first)
            || (version.address() == operation.address() && own.has(xid))
        {
            Part::Meant
        } else if own.has(xid) && version.flags() & flags::ABORTED == 0 {
            // An earlier one of this transaction: what is taken back is above it.
            Part::End
        } else {
            Part::Kept
        }
    };
    take_states_out(
        session,
        operation.table,
        operation.row_id(),
        part,
        |head, version| {
            version.add_flags(flags::ABORTED);
            if was_logged {
                *head = head.with_flags(Head::FULL_IMAGE_NEXT);
            }
        },
    );
    // The sweeper alone sees whether the row's KEYS_MOVED may be cleared.
    let anchor = operation.table.anchor(operation.row_id());
    if anchor.is_some_and(|anchor| anchor.head().has(Head::KEYS_MOVED)) {
        operation.table.set_dirty(operation.row_id());
    }
}
