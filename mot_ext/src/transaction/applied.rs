//! On a standby a reader waits until the rows that its snapshot may see are applied.
use crate::pg::interrupts;
use crate::{errors, shared_memory};
use mot_engine::engine::Reached;
use mot_engine::{Engine, Lsn};
use std::time::{Duration, Instant};

/// How often a replay that waits for memory says so; and how long a reader waits for one that does.
pub const FULL_REPORT: Duration = Duration::from_secs(5);

/// A reader gives the processor away so often before it sleeps between looks.
const YIELDS: u32 = 100;
const READER_POLL_MS: i64 = 1;

/// In a standby's backend: waits until everything is applied that was handed over before this call.
/// Whatever the snapshot in the caller's hand takes for ended is then in the tables. Called with no
/// latch and no pin held; raises when the wait is cancelled, when replay ends unfinished, and when
/// replay itself waits for memory, perhaps for what this reader's snapshot keeps.
#[inline]
pub fn wait_until_applied() {
    let Some(engine) = shared_memory::engine() else {
        return;
    };
    let handed = engine.replay_handed();
    if engine.replay_reached(handed) != Reached::Yes {
        wait_for(engine, handed);
    }
}

#[cold]
fn wait_for(engine: Engine, handed: Lsn) {
    let mut looks = 0;
    let mut full_since: Option<Instant> = None;
    loop {
        match engine.replay_reached(handed) {
            Reached::Yes => return,
            Reached::NotYet => full_since = None,
            Reached::NoMemory => {
                let since = *full_since.get_or_insert_with(Instant::now);
                if since.elapsed() > FULL_REPORT {
                    errors::replay_without_memory();
                }
            }
            Reached::GivenUp => errors::replay_given_up(),
        }
        looks += 1;
        if looks < YIELDS {
            std::thread::yield_now();
        } else {
            interrupts::sleep_ms(READER_POLL_MS);
            interrupts::check_for_interrupts();
        }
    }
}
