//! Row locks of prepared transactions, over a restart.
//!
//! A lock on a row that its transaction did not change is an entry in memory and nowhere else. PostgreSQL writes down one kind of lock of a prepared
//! transaction: those of its lock manager, which are in the state file and in the WAL record of PREPARE and are there again after a restart, a crash,
//! a promotion. So
//!
//! 1. at PRE_PREPARE the transaction takes a lock of the lock manager for each such row (`keep`),
//!    with a tag that nobody else uses and in the mode that heapam takes for the strength. Nobody
//!    looks at these locks; they never conflict but for a moment with those of a transaction that
//!    is just ending, since the entries in memory have decided before. The lock manager's table is
//!    bounded, and everybody needs it: one transaction keeps no more rows than `SHARES` times what
//!    the table has room for per transaction; PREPARE of more is refused (53200), before any is
//!    taken.
//! 2. after a restart the first writer, whichever process it is, reads the lock manager's table and
//!    puts an entry into memory for each tag that a transaction has that was brought back
//!    (`put_back`). No process writes or locks a row before that is done
//!    (`transaction::xact::write_xid`); readers do not care for row locks. PostgreSQL brings the
//!    transactions back before it lets anybody write.
//!
//! A transaction that was prepared in this life of the server has its entries in memory; it is told from the others by its virtual transaction id.
//! A warm restart keeps the entries, too: an entry that is there is not made again. One that is made after its transaction has ended is swept.
use super::clock::{PgClock, widen};
use super::session;
use super::wait::heavyweight_mode;
use crate::pg::interrupts;
use crate::{errors, shared_memory};
use mot_engine::pause::{Point, reach};
use mot_engine::transaction::{BareLock, hold_row_lock};
use mot_engine::{Clock, LockStrength, RelationKey, Session, Slot, Xid};
use pgrx::pg_sys;
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::Ordering;

/// The fourth field of our tags: users' advisory locks have 1 and 2 there. The rest of it is the slot's high bits.
const CLASS: u16 = 0x8000;
/// The second field names a file in the database's own tablespace, and not a foreign table's oid.
const IS_FILE: u16 = 0x4000;
const HIGH_BITS: u32 = 32;

/// States of `Control::prepared_locks`.
const NOT_YET: u32 = 0;
const UNDER_WAY: u32 = 1;
const DONE: u32 = 2;

/// How often a writer looks whether another is done, in milliseconds.
const POLL_MS: i64 = 1;

/// Most rows that one prepared transaction keeps locked without having changed them, as a multiple of `max_locks_per_transaction`.
const SHARES: usize = 8;

const STRENGTHS: [LockStrength; 4] = [
    LockStrength::KeyShare,
    LockStrength::Share,
    LockStrength::NoKeyUpdate,
    LockStrength::Update,
];

fn tag_of(lock: &BareLock) -> pg_sys::LOCKTAG {
    let kind = match lock.table {
        table if table.is_foreign_table() => 0,
        table if table.tablespace == 0 => IS_FILE,
        _ => errors::unsupported(
            "row locks of prepared transactions in other tablespaces than the database's own",
            "Use COMMIT, or keep the table in the database's tablespace.",
        ),
    };
    pg_sys::LOCKTAG {
        locktag_field1: lock.table.database,
        locktag_field2: lock.table.relation,
        locktag_field3: lock.slot.0 as u32,
        locktag_field4: CLASS | kind | (lock.slot.0 >> HIGH_BITS) as u16,
        locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
        locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
    }
}

/// The row that a tag of ours means.
fn row_of(tag: &pg_sys::LOCKTAG) -> Option<(RelationKey, Slot)> {
    let is_ours = u32::from(tag.locktag_type) == pg_sys::LockTagType::LOCKTAG_ADVISORY
        && u32::from(tag.locktag_lockmethodid) == pg_sys::USER_LOCKMETHOD
        && tag.locktag_field4 & CLASS != 0;
    let high = tag.locktag_field4 & !(CLASS | IS_FILE);
    let slot = u64::from(high) << HIGH_BITS | u64::from(tag.locktag_field3);
    let (database, relation) = (tag.locktag_field1, tag.locktag_field2);
    let table = match tag.locktag_field4 & IS_FILE {
        0 => RelationKey::of_foreign_table(database, relation),
        _ => RelationKey::of_file(database, 0, relation),
    };
    is_ours.then_some((table, Slot(slot)))
}

/// Has PostgreSQL keep the locks of the transaction that is being prepared. May raise.
pub fn keep(locks: &[BareLock]) {
    // SAFETY: a plain setting, fixed at server start.
    let rows_max = SHARES * unsafe { pg_sys::max_locks_per_xact }.max(0) as usize;
    if locks.len() > rows_max {
        // A row that is locked several times takes one place.
        let rows: HashSet<_> = locks.iter().map(|lock| (lock.table, lock.slot)).collect();
        if rows.len() > rows_max {
            errors::too_many_prepared_locks(rows.len(), rows_max);
        }
    }
    for lock in locks {
        // SAFETY: the tag lives for the call; a lock of the transaction, which PREPARE hands over.
        unsafe {
            pg_sys::LockAcquire(&tag_of(lock), heavyweight_mode(lock.strength), false, false)
        };
    }
}

/// This process is the one that puts the entries back: `Control::prepared_locks` is `UNDER_WAY` by its hand.
struct Claimed(Cell<bool>);

// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for Claimed {}

static CLAIMED: Claimed = Claimed(Cell::new(false));

/// Puts the entries back, if nobody has yet. May raise, and the process may be ended in the midst; then the next caller tries again.
/// In a transaction: its abort gives the claim up (`give_up`).
pub fn put_back() {
    // Joined before the claim: nothing of it can fail while the others wait.
    let session = session::session();
    let state = &shared_memory::control().prepared_locks;
    loop {
        match state.compare_exchange(NOT_YET, UNDER_WAY, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => {
                CLAIMED.0.set(true);
                put_back_all(session);
                state.store(DONE, Ordering::SeqCst);
                CLAIMED.0.set(false);
                return;
            }
            Err(DONE) => return,
            Err(_) => {
                interrupts::sleep_ms(POLL_MS);
                interrupts::check_for_interrupts();
            }
        }
    }
}

/// Whether some process is putting entries back, so that some may come of transactions that have ended meanwhile. If not, then such ones are all there, or
/// will be of transactions only that still run.
pub fn is_under_way() -> bool {
    shared_memory::control()
        .prepared_locks
        .load(Ordering::SeqCst)
        == UNDER_WAY
}

/// At the abort of a transaction or subtransaction: leaves the entries to the next writer if this process was to put them back. Not a
/// matter for a destructor: a process that is ended (FATAL) aborts its transaction and leaves its stack as it is. Calls nothing that can
/// fail.
pub fn give_up() {
    if CLAIMED.0.replace(false) {
        shared_memory::control()
            .prepared_locks
            .store(NOT_YET, Ordering::SeqCst);
    }
}

fn put_back_all(session: &Session) {
    reach(Point::LockBeforePutBack);
    // SAFETY: copies the lock manager's table into this context's memory; no interrupt is served meanwhile.
    let found = unsafe {
        let data = &*pg_sys::GetLockStatusData();
        std::slice::from_raw_parts(data.locks, data.nelements.max(0) as usize)
    };
    for held in found {
        let (Some((table, slot)), Some(xid)) = (row_of(&held.locktag), brought_back(held)) else {
            continue;
        };
        // One that ends may have its locks still. Its outcome may not be asked for any more (`is_under_way`).
        if !PgClock.is_in_progress(xid) {
            continue;
        }
        let Some(storage) = session.find_table(table, &PgClock) else {
            continue;
        };
        for strength in STRENGTHS {
            if held.holdMask & (1 << heavyweight_mode(strength)) == 0 {
                continue;
            }
            let lock = BareLock {
                table,
                slot,
                strength,
            };
            if let Err(error) = hold_row_lock(session, storage, &lock, xid) {
                errors::raise(error);
            }
        }
    }
}

/// The prepared transaction that holds the lock, if it was prepared before this server began: its process is no process, and where others have
/// a number within their session it has its id.
fn brought_back(held: &pg_sys::LockInstanceData) -> Option<Xid> {
    const NO_SESSION: i32 = -1;
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let (session, xid) = (held.backend, held.lxid);
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    let (session, xid) = (held.vxid.procNumber, held.vxid.localTransactionId);
    (held.pid == 0 && session == NO_SESSION).then(|| widen(pg_sys::TransactionId::from_inner(xid)))
}
