//! Orphans: what a process leaves, or an idle one hands over, is freed once, by others, and not
//! while a process reads it.

use super::epochs::{BYTES, look, look_until, publish, replace};
use super::{Place, thread};
use crate::memory::Purpose;
use mot_model::{AtomicU64, Ordering, explore, finds, threads};
use std::sync::Arc;
use std::time::Duration;

/// More than a process may keep, with pages as short as models have them.
const HANDED_OVER: u64 = 7;

/// One leaves with garbage, two hand theirs over, one frees it, one reads all of it.
fn those_who_leave_and_one_who_collects() {
    let place = Place::new();
    let before = place.engine.memory().purpose_bytes(Purpose::Other);
    let words: [_; 3] = std::array::from_fn(|_| Arc::new(AtomicU64::new(0)));
    for word in &words {
        publish(place.join().memory(), word, 1);
    }
    let read = words.clone();
    let reader = thread(&place, move |place| {
        let local = place.engine.memory().join().unwrap();
        for _ in 0..3 {
            read.iter().for_each(|word| look(&local, word));
            let _pin = local.pin();
            mot_model::yield_now();
        }
    });
    let hands_over = |word: Arc<AtomicU64>| {
        thread(&place, move |place| {
            let local = place.engine.memory().join().unwrap();
            let before = local.garbage();
            for at in 2..HANDED_OVER + 2 {
                replace(&local, &word, at);
            }
            local.hand_over_garbage(before, Duration::ZERO);
        })
    };
    let left = words[0].clone();
    let leaver = thread(&place, move |place| {
        let local = place.engine.memory().join().unwrap();
        for at in 2..5 {
            replace(&local, &left, at);
            local.collect();
        }
    });
    let collector = thread(&place, move |place| {
        let local = place.engine.memory().join().unwrap();
        for _ in 0..3 {
            local.collect();
        }
    });
    threads(vec![
        reader,
        hands_over(words[1].clone()),
        hands_over(words[2].clone()),
        leaver,
        collector,
    ]);
    let last = place.engine.memory().join().unwrap();
    last.collect_all(|| {});
    drop(last);
    let report = place.engine.memory().report().epochs;
    assert_eq!((report.orphan_blocks, report.lost_bytes), (0, 0));
    let left = place.engine.memory().purpose_bytes(Purpose::Other) - before;
    assert_eq!(
        left,
        (words.len() * BYTES) as i64,
        "all is free but what is published"
    );
}

/// One leaves what it retired in two epochs, in one page. Another holds the epoch up until it
/// collects; a third may read what was retired last.
fn a_page_of_two_epochs() {
    let place = Place::new();
    let word = Arc::new(AtomicU64::new(0));
    publish(place.join().memory(), &word, 1);
    let stage = Arc::new(AtomicU64::new(0));
    let wait_for = |least| {
        let stage = stage.clone();
        move || {
            while stage.load(Ordering::Acquire) < least {
                mot_model::yield_now();
            }
        }
    };
    let (when_first_is_retired, when_left, when_collected) =
        (wait_for(1), wait_for(2), wait_for(3));
    let (read, written) = (word.clone(), word.clone());
    let (left, collected) = (stage.clone(), stage.clone());
    threads(vec![
        thread(&place, move |place| {
            let local = place.engine.memory().join().unwrap();
            when_first_is_retired();
            look_until(&local, &read, when_collected);
        }),
        thread(&place, move |place| {
            let local = place.engine.memory().join().unwrap();
            replace(&local, &written, 2);
            local.collect();
            left.store(1, Ordering::Release);
            replace(&local, &written, 3);
            drop(local);
            left.store(2, Ordering::Release);
        }),
        thread(&place, move |place| {
            let local = place.engine.memory().join().unwrap();
            let pin = local.pin();
            when_left();
            drop(pin);
            local.collect();
            local.collect();
            collected.store(3, Ordering::Release);
        }),
    ]);
    let last = place.engine.memory().join().unwrap();
    last.collect_all(|| {});
    assert_eq!(place.engine.memory().report().epochs.orphan_blocks, 0);
}

#[test]
fn what_others_left_is_freed_once_and_not_early() {
    explore(
        "orphans, those who leave and one who collects",
        2_000,
        those_who_leave_and_one_who_collects,
    );
    explore("orphans, a page of two epochs", 2_000, a_page_of_two_epochs);
}

mod seen {
    use super::*;

    const RUNS: usize = 20_000;

    #[test]
    fn the_stop_at_a_young_page() {
        let body = those_who_leave_and_one_who_collects;
        finds("orphans: the stop at a young page", RUNS, body);
    }

    #[test]
    fn the_youngest_stamp_of_a_page() {
        let body = a_page_of_two_epochs;
        finds("orphans: the youngest stamp of a page", RUNS, body);
    }

    #[test]
    fn the_tail_of_an_emptied_list() {
        let body = those_who_leave_and_one_who_collects;
        finds("orphans: the tail of an emptied list", RUNS, body);
    }

    #[test]
    fn the_stamps_of_what_is_handed_over() {
        let body = those_who_leave_and_one_who_collects;
        finds("orphans: the stamps of what is handed over", RUNS, body);
    }
}
