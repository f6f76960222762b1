//! SERIALIZABLE: which transaction committed first, where PostgreSQL's own notes leave it open.
//!
//! # The gap in predicate.c (15 to 18, heap tables alike)
//!
//! R -> W -> T (R did not see what W wrote, W not what T wrote) is dangerous if T committed first;
//! then R must not see T. A committing transaction goes through three moments:
//!
//! 1. *checked*: predicate.c has looked for dangerous structures, the transaction can no longer
//!    fail (PREPARED);
//! 2. *seen*: it is out of the ProcArray, snapshots see it: the moment that counts;
//! 3. *noted*: predicate.c sets COMMITTED, and keeps of its conflicts what matters
//!    (ReleasePredicateLocks).
//!
//! Between 2 and 3 lie callbacks of extensions (ours among them: a MOT table's rows get their hints
//! there) and waits for a processor. When W is noted it marks itself CONFLICT_OUT, "a transaction I
//! did not see was first", if a T is *noted*. When T is noted it forgets W -> T if W is noted. So,
//! if T is seen, R takes its snapshot, W is seen, W is noted, T is noted: W is not marked, and W ->
//! T is forgotten. R then reads what W wrote, meets a committed writer without a mark, and commits.
//! A READ ONLY R even hears that its snapshot is safe when W is noted.
//!
//! `isolation/specs/pause_serializable` has these orders, on heap and MOT tables.
//!
//! # What is done
//!
//! W marks itself between its moments 2 and 3, if a T of its conflicts is *checked*. Then no order
//! is left out:
//! - T was seen before W: so it was checked before W was seen, and it is in W's list: their
//!   conflict was found by W's read or T's write, both before T's or W's check, and nothing takes
//!   it from the list before one of the two is noted, or fails: T's being noted forgets it only if
//!   W is noted, and W is not. (Where a T is summarized for want of memory, W is marked at that.)
//! - T was not: W was first of the two, and R -> W -> T is harmless as long as R does not see T but
//!   not W, which no snapshot does.
//!
//! The mark says "T's check was number n"; a READ ONLY R whose snapshot came before n is let go, as
//! predicate.c does. What is marked needlessly, a T that was checked before W was seen and seen
//! after, costs R a 40001, as it does when predicate.c finds T checked.
//!
//! The number has the place in which predicate.c has the last number before W's snapshot, and W may
//! turn out to have written nothing (it locked rows): then others look there for the snapshot's. So
//! the place is never lowered: its value is the higher of the two.
//! - As the mark: the R that matters sees T, and W's snapshot does not, so R's is the later one and
//!   R's last number is not below W's.
//! - As the snapshot's: a reader counts as later than it is, and more is found dangerous. "No
//!   transaction has committed since" stays untrue: W's own check has a higher number than both.
//!
//! # Prepared transactions
//!
//! COMMIT PREPARED of a W calls no extension between its moments 2 and 3. So W is marked before, if
//! a T may be first:
//! - by PREPARE TRANSACTION of W, if its list has a T that has not failed, whether that is checked
//!   or not;
//! - by each T that wrote what W did not see after that, before T is checked.
//!
//! That is every T, for W reads nothing any more, T writes nothing any more, and both marks are
//! made under the lock under which the list changes. A T that is not checked yet has a higher
//! number than any given out, so the mark says W's own. A prepared transaction that a start has
//! found again is marked by predicate.c itself.
//!
//! A T that fails then, or is second after all, has marked W needlessly. Those that read beside
//! prepared transactions pay with a 40001 now and then.
use super::is_on;
use crate::errors;
use crate::pg::sxact;
use pgrx::prelude::*;
use std::ffi::c_void;

/// From now on, in every process: any transaction may be the W of a cycle that goes through a MOT
/// table.
pub fn init() {
    // SAFETY: plain variables; called once, before any fork, by the postmaster; the library is
    // never unloaded.
    unsafe {
        if pg_sys::process_shared_preload_libraries_in_progress {
            pg_sys::RegisterXactCallback(Some(on_transaction), std::ptr::null_mut());
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_transaction(event: pg_sys::XactEvent::Type, _arg: *mut c_void) {
    if !is_on() {
        return;
    }
    match event {
        pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT | pg_sys::XactEvent::XACT_EVENT_PRE_PREPARE => {
            if !sxact::is_known() {
                errors::unknown_server_layout();
            }
            sxact::note_for_prepared();
        }
        pg_sys::XactEvent::XACT_EVENT_COMMIT => sxact::note_earlier_commits(),
        pg_sys::XactEvent::XACT_EVENT_PREPARE => sxact::note_later_commits(),
        _ => {}
    }
}
