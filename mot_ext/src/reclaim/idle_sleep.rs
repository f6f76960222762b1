//! The reclaimer's long sleep while there is nothing to do; `transaction/wake.rs` ends it.
//!
//! It is one call, 25 times `mot.reclaim_naptime`. If a burst of changes begins meanwhile, all that
//! it supersedes would stay until the sleep is over, and writers would prune below an old horizon.
//! So a session that has left 64 rows behind looks whether the reclaimer sleeps, and wakes it. For
//! a busy server that is one read of a word that no process writes, once in so many rows. Fewer
//! changes do not wake it. While an old snapshot or transaction holds the horizon, no session does:
//! the reclaimer sleeps elsewhere (`reclaimer::sleep_unless_asked`), because it could do nothing.
use crate::pg::interrupts;
use crate::pg::worker::shutdown_asked;
use crate::shared_memory;
use mot_engine::pause::{Point, reach};

/// Sleeps as long as `long_ms` while nothing happens. When a session wakes this process, or did so
/// just before, it sleeps `short_ms` from then on: what was committed a moment ago is dead to
/// every snapshot a moment later. `has_news` says whether something has happened since it was last
/// looked: a session that committed then saw no sleeper, and wakes none. It must not raise.
pub fn sleep(short_ms: i64, long_ms: i64, has_news: impl FnOnce() -> bool) {
    let sleeper = &shared_memory::control().reclaimer_sleeps;
    reach(Point::ReclaimBeforeNap);
    sleeper.begin();
    if has_news() {
        sleeper.end();
        interrupts::sleep_ms(short_ms);
        return;
    }
    interrupts::sleep_ms(long_ms);
    // Taken: by a session, which has set the latch, or is about to. A signal sets it, too, and
    // takes nothing.
    let is_taken = sleeper.end();
    if is_taken && !shutdown_asked() {
        interrupts::sleep_ms(short_ms);
    }
}
