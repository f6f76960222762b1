//! The locks under which values get their labels (`storage/labels`).
//!
//! Two writers who label two values beside each other must see each other's. So a row's labels are
//! made, and its entries with them, under one exclusive lock of each such index: that of its page
//! 0, which no other code locks.
//!
//! - Nobody waits for a transaction with such a lock: that transaction may want the lock, too. Who
//!   has to wait gives the locks up first ([`release_to_wait`]), and has his labels made anew.
//! - A row of INSERT ... ON CONFLICT is entered after it was formed: its locks are kept until it is
//!   confirmed or taken back. Core may wait in between, for a key of an index that is no arbiter.
//! - Labels are made by code of users, which may write rows, too: [`begin`] puts the locks of who
//!   was under way aside.
//! - After an error PostgreSQL's resource owner gives the locks back.
use crate::pg::local::ProcessLocal;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

const MODE: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
/// `DEFAULT_LOCKMETHOD` of storage/lock.h.
const DEFAULT_LOCK_METHOD: u8 = 1;

/// The locks of one row that is being formed and entered.
#[derive(Default)]
struct Held {
    indexes: Vec<u32>,
    was_released: bool,
}

static HELD: ProcessLocal<RefCell<Held>> = ProcessLocal(RefCell::new(Held {
    indexes: Vec::new(),
    was_released: false,
}));
/// The locks of a row that is not confirmed.
static KEPT: ProcessLocal<RefCell<Vec<u32>>> = ProcessLocal(RefCell::new(Vec::new()));
/// Whether any row has had labels in this transaction: nothing is to be forgotten where none had.
static IS_USED: ProcessLocal<Cell<bool>> = ProcessLocal(Cell::new(false));

/// What was held for the row that was under way.
pub struct Outer(Held);

/// Begins with a row, without locks.
pub fn begin() -> Outer {
    Outer(HELD.0.take())
}

/// Takes an index's lock for the row, to its end. May wait.
pub fn acquire(index: u32) {
    IS_USED.0.set(true);
    if HELD.0.borrow().indexes.contains(&index) {
        return;
    }
    let tag = tag(index);
    // SAFETY: a lock of the session's; the caller has the index locked.
    unsafe { pg_sys::LockAcquire(&raw const tag, MODE, false, false) };
    HELD.0.borrow_mut().indexes.push(index);
}

/// Whether the row has labels that nobody else can put others beside.
pub fn are_held() -> bool {
    IS_USED.0.get() && !HELD.0.borrow().indexes.is_empty()
}

/// Gives the row's locks up before a wait.
pub fn release_to_wait() {
    if are_held() {
        let mut held = HELD.0.borrow_mut();
        held.was_released = true;
        release(&mut held.indexes);
    }
}

/// Whether the row's locks were given up since its labels were made: others may have taken them.
pub fn were_released() -> bool {
    IS_USED.0.get() && HELD.0.borrow().was_released
}

/// Ends with a row that is entered, or given up.
pub fn end(outer: Outer) {
    let mut held = HELD.0.replace(outer.0);
    release(&mut held.indexes);
}

/// As [`end`], of a row that is entered later.
pub fn keep(outer: Outer) {
    let held = HELD.0.replace(outer.0);
    KEPT.0.borrow_mut().extend(held.indexes);
}

/// Ends with the row that was entered later.
pub fn release_kept() {
    release(&mut KEPT.0.borrow_mut());
}

/// The (sub)transaction ended by an error, and its locks with it.
pub fn forget() {
    if IS_USED.0.replace(false) {
        HELD.0.take();
        KEPT.0.take();
    }
}

fn release(indexes: &mut Vec<u32>) {
    for index in indexes.drain(..) {
        let tag = tag(index);
        // SAFETY: `acquire` took it, in this (sub)transaction.
        unsafe { pg_sys::LockRelease(&raw const tag, MODE, false) };
    }
}

/// `SET_LOCKTAG_PAGE` of storage/lock.h.
fn tag(index: u32) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        // SAFETY: a plain variable of this process.
        locktag_field1: unsafe { pg_sys::MyDatabaseId }.to_u32(),
        locktag_field2: index,
        locktag_field3: 0,
        locktag_field4: 0,
        locktag_type: pg_sys::LockTagType::LOCKTAG_PAGE as u8,
        locktag_lockmethodid: DEFAULT_LOCK_METHOD,
    }
}
