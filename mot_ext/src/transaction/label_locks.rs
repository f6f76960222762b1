//! The locks under which values get their labels (`storage/labels.rs`).
//!
//! A writer that makes a label must see the entries of all labels made before. So it holds one
//! exclusive lock for each index with labels, from before it looks for the neighbours until the
//! row's entries are made. This is an object lock on a part of the index that no other code locks.
//!
//! - No session waits for a transaction while it holds such a lock, since that transaction may want
//!   the lock, too. It releases the locks first ([`release_to_wait`]), then forms the row again
//!   with new labels.
//! - Comparisons are code of users, which may write rows. [`begin`] sets aside the locks of the row
//!   that is being formed.
//! - After an error PostgreSQL's resource owner releases the locks of the (sub)transaction.
use crate::pg;
use crate::pg::local::ProcessLocal;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

const MODE: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
/// `DEFAULT_LOCKMETHOD` of storage/lock.h.
const DEFAULT_LOCK_METHOD: u8 = 1;
/// Represents an index's labels where core has a column: an index has fewer.
const LABELS: u16 = u16::MAX;

/// A lock of an index that a row has.
struct Lock {
    index: u32,
    /// The nesting level of the (sub)transaction that took it.
    level: i32,
}

/// The locks of one row that is being formed and entered.
#[derive(Default)]
struct Held {
    locks: Vec<Lock>,
    was_released: bool,
}

static HELD: ProcessLocal<RefCell<Held>> = ProcessLocal(RefCell::new(Held {
    locks: Vec::new(),
    was_released: false,
}));
/// Whether a lock was taken since a transaction failed. If not, `HELD` is empty.
static IS_USED: ProcessLocal<Cell<bool>> = ProcessLocal(Cell::new(false));

/// The locks of the outer row, restored at the drop, also after an error.
pub struct Outer(Option<Held>);

impl Drop for Outer {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            // What the row held goes with its (sub)transaction.
            HELD.0.replace(held);
        }
    }
}

/// Begins to form a row, which has no locks yet.
pub fn begin() -> Outer {
    Outer(Some(HELD.0.take()))
}

/// Begins to form the row again: releases its locks.
pub fn begin_again() {
    let mut held = HELD.0.take();
    release(&mut held.locks);
}

/// Takes an index's lock, until the row's [`end`]. May wait.
pub fn acquire(index: u32) {
    IS_USED.0.set(true);
    let is_held = |lock: &Lock| lock.index == index;
    if HELD.0.borrow().locks.iter().any(is_held) {
        return;
    }
    let tag = tag(index);
    // SAFETY: a lock of the session's; the caller has the index locked.
    unsafe { pg_sys::LockAcquire(&raw const tag, MODE, false, false) };
    let level = pg::nest_level();
    HELD.0.borrow_mut().locks.push(Lock { index, level });
}

/// Whether the row holds locks: no other session makes labels in its indexes.
pub fn are_held() -> bool {
    IS_USED.0.get() && !HELD.0.borrow().locks.is_empty()
}

/// Releases the row's locks before a wait.
pub fn release_to_wait() {
    if are_held() {
        let mut held = HELD.0.borrow_mut();
        held.was_released = true;
        release(&mut held.locks);
    }
}

/// Whether the row's locks were released since its labels were made: others may have made labels.
pub fn were_released() -> bool {
    IS_USED.0.get() && HELD.0.borrow().was_released
}

/// The row is entered, or given up: releases its locks, and restores the outer row's.
pub fn end(mut outer: Outer) {
    let mut held = HELD.0.replace(outer.0.take().unwrap_or_default());
    release(&mut held.locks);
}

/// The (sub)transaction of a nesting level ended by an error, and its locks with it.
pub fn forget(level: i32) {
    if IS_USED.0.get() {
        HELD.0.borrow_mut().locks.retain(|lock| lock.level < level);
    }
}

/// The transaction ended by an error.
pub fn forget_all() {
    if IS_USED.0.replace(false) {
        HELD.0.take();
    }
}

fn release(locks: &mut Vec<Lock>) {
    for lock in locks.drain(..) {
        let tag = tag(lock.index);
        // SAFETY: `acquire` took it, in this (sub)transaction.
        unsafe { pg_sys::LockRelease(&raw const tag, MODE, false) };
    }
}

/// `SET_LOCKTAG_OBJECT` of storage/lock.h, of a part of the index that is no column.
fn tag(index: u32) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        // SAFETY: a plain variable of this process.
        locktag_field1: unsafe { pg_sys::MyDatabaseId }.to_u32(),
        locktag_field2: pg_sys::RelationRelationId.to_u32(),
        locktag_field3: index,
        locktag_field4: LABELS,
        locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
        locktag_lockmethodid: DEFAULT_LOCK_METHOD,
    }
}
