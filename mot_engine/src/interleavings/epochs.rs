//! Epochs: no participant reads a block that was given back, also while participants come and go.

use super::{Place, thread};
use crate::memory::{LocalMemory, Purpose, Urgency};
use mot_model::{AtomicU64, Ordering, explore, finds, threads};
use std::ptr::NonNull;
use std::sync::Arc;

pub(super) const BYTES: usize = 64;

/// A published block: its first word says what it is.
pub(super) fn publish(local: &LocalMemory, place: &AtomicU64, word: u64) -> u64 {
    let block = local
        .allocate(BYTES, Purpose::Other, Urgency::Ordinary)
        .unwrap();
    // SAFETY: the block is ours and that large; all bytes are an atomic's.
    unsafe { block.cast::<AtomicU64>().as_ref() }.store(word, Ordering::Relaxed);
    place.swap(block.addr().get() as u64, Ordering::AcqRel)
}

pub(super) fn look(local: &LocalMemory, place: &AtomicU64) {
    look_until(local, place, || ());
}

/// Finds a block, and reads it some time later.
pub(super) fn look_until(local: &LocalMemory, place: &AtomicU64, wait: impl FnOnce()) {
    let _pin = local.pin();
    let block = NonNull::new(place.load(Ordering::Acquire) as *mut AtomicU64).unwrap();
    wait();
    // SAFETY: published blocks are retired, and we are pinned. (If not, the model says so.)
    let word = unsafe { block.as_ref() }.load(Ordering::Relaxed);
    assert!((1..100).contains(&word), "a block that is not one: {word}");
}

pub(super) fn replace(local: &LocalMemory, place: &AtomicU64, word: u64) {
    let old = publish(local, place, word);
    let old = NonNull::new(old as *mut u8).unwrap();
    // SAFETY: nothing finds it any more.
    unsafe { local.retire(old, BYTES, Purpose::Other) };
}

/// One replaces a block again and again and frees what it may; others read it, one of which comes
/// late.
fn readers_beside_a_remover() {
    let place = Place::new();
    let word = Arc::new(AtomicU64::new(0));
    publish(place.join().memory(), &word, 1);
    let reader = |looks: usize| {
        let word = word.clone();
        thread(&place, move |place| {
            let local = place.engine.memory().join().unwrap();
            (0..looks).for_each(|_| look(&local, &word));
        })
    };
    let written = word.clone();
    let remover = thread(&place, move |place| {
        let local = place.engine.memory().join().unwrap();
        for at in 2..4 {
            replace(&local, &written, at);
            local.collect();
        }
        local.collect();
        local.collect();
    });
    threads(vec![reader(2), reader(1), remover]);
    let local = place.engine.memory().join().unwrap();
    for _ in 0..3 {
        local.collect();
    }
    assert_eq!(
        place.engine.memory().report().epochs.orphan_blocks,
        0,
        "all is freed in the end"
    );
}

/// A leaver hands over what it could not free; one that waits for the others waits long enough.
fn waiting_for_pinned() {
    let place = Place::new();
    let word = Arc::new(AtomicU64::new(0));
    publish(place.join().memory(), &word, 1);
    let (read, written) = (word.clone(), word.clone());
    threads(vec![
        thread(&place, move |place| {
            let local = place.engine.memory().join().unwrap();
            look(&local, &read);
            drop(local);
            let again = place.engine.memory().join().unwrap();
            look(&again, &read);
        }),
        thread(&place, move |place| {
            let local = place.engine.memory().join().unwrap();
            let old = NonNull::new(publish(&local, &written, 2) as *mut u8).unwrap();
            local.wait_for_pinned(|| ());
            // SAFETY: nothing finds it, and what had found it is gone.
            unsafe { local.free(old, BYTES, Purpose::Other) };
        }),
    ]);
}

#[test]
fn nobody_reads_freed_memory() {
    explore(
        "epochs, readers beside a remover",
        3_000,
        readers_beside_a_remover,
    );
    explore(
        "epochs, waiting for who is pinned",
        2_000,
        waiting_for_pinned,
    );
}

mod seen {
    use super::*;

    const RUNS: usize = 40_000;

    #[test]
    fn the_fence_of_a_pin() {
        finds("epochs: the fence of a pin", RUNS, readers_beside_a_remover);
    }

    #[test]
    fn waiting_for_who_is_pinned() {
        finds(
            "epochs: waiting for who is pinned",
            RUNS,
            readers_beside_a_remover,
        );
    }

    #[test]
    fn the_second_epoch() {
        finds("epochs: the second epoch", RUNS, readers_beside_a_remover);
    }

    #[test]
    fn telling_of_a_new_participant() {
        finds(
            "epochs: telling of a new participant",
            RUNS,
            readers_beside_a_remover,
        );
    }

    #[test]
    fn retiring_what_others_may_read() {
        finds(
            "memory: retiring what others may read",
            RUNS,
            readers_beside_a_remover,
        );
    }
}
