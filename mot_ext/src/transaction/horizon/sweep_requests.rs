//! Sweeps that VACUUM waits for.
//!
//! A session takes a number (a request). The reclaimer reads the newest number before a sweep, and
//! answers all up to it when the sweep is over. So a sweep that begins after the request has
//! resolved what had ended by then. A table that an index build or a check keeps closed is passed
//! over, and no session waits for it here.
use super::outcome_bound;
use crate::pg::interrupts;
use crate::shared_memory;
use std::sync::atomic::Ordering;

/// How often a session looks whether its request is answered, in milliseconds.
const POLL_MS: i64 = 2;

/// Waits for a sweep that begins from now on. Raises if the session is interrupted. Returns at once
/// while no reclaimer runs.
pub fn wait_for_sweep() {
    let bound = &shared_memory::control().outcome_bound;
    let number = bound.asked.fetch_add(1, Ordering::SeqCst) + 1;
    while bound.answered.load(Ordering::SeqCst) < number && outcome_bound::is_reclaimer_running() {
        shared_memory::control().reclaimer_sleeps.wake();
        interrupts::sleep_ms(POLL_MS);
        interrupts::check_for_interrupts();
    }
}

/// The newest request; `None` if all are answered.
pub fn newest() -> Option<u64> {
    let bound = &shared_memory::control().outcome_bound;
    let asked = bound.asked.load(Ordering::SeqCst);
    (asked > bound.answered.load(Ordering::SeqCst)).then_some(asked)
}

/// Answers all requests up to this one: their sweep is over, or there will be none.
pub fn answer(number: u64) {
    let bound = &shared_memory::control().outcome_bound;
    bound.answered.fetch_max(number, Ordering::SeqCst);
}
