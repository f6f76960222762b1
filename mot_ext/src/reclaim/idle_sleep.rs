//! The reclaimer's long naps; `transaction/wake.rs` ends them.
//!
//! With nothing to do it looks around twice a second. A burst that begins in such a nap would leave
//! all it supersedes until the nap is over, and writers would prune below a horizon of before it.
//! So whoever has left some rows behind looks whether it naps, and wakes it: for a busy server that
//! is one look at a word that nobody writes, once in so many rows. Few changes now and then wake
//! nobody; nor does anybody where an old snapshot or transaction holds the horizon, for then it
//! would find that it can do nothing.
use crate::pg::interrupts;
use crate::pg::worker::shutdown_asked;
use crate::shared_memory;
use mot_engine::pause::{Point, reach};

/// Naps as long as `long_ms` while nothing happens. When a session wakes this process, or did so
/// just before, it sleeps `short_ms` from then on: what was committed a moment ago is dead to
/// everybody a moment later. `has_news` says whether something has happened since it was last
/// looked: who committed then saw nobody nap, and wakes nobody. It must not raise.
pub fn nap(short_ms: i64, long_ms: i64, has_news: impl FnOnce() -> bool) {
    let napping = &shared_memory::control().napping;
    reach(Point::ReclaimBeforeNap);
    napping.begin();
    if has_news() {
        napping.end();
        interrupts::sleep_ms(short_ms);
        return;
    }
    interrupts::sleep_ms(long_ms);
    // Taken: by a session, which has set the latch, or is about to. A signal sets it, too, and
    // takes nothing.
    let is_taken = napping.end();
    if is_taken && !shutdown_asked() {
        interrupts::sleep_ms(short_ms);
    }
}
