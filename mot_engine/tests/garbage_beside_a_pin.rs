//! Garbage that somebody's pin keeps: who has it when the session that retired it may be idle, and
//! what it takes from others meanwhile.

mod common;

use common::{Fate, Me, Row, World, body, reader};
use mot_engine::memory::{LocalMemory, Purpose, Urgency};
use mot_engine::steps::steps_taken;
use mot_engine::{CommandId, Engine, Entered, Session, TableRef, Transaction, Written, Xid};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::mpsc;
use std::time::Duration;

const MIB: usize = 1 << 20;
/// Blocks that nobody minds if they stay: as many orphans as one visit frees.
const FEW_BLOCKS: usize = 2 * 508;
/// The reserve of a small arena.
const RESERVE_BYTES: u64 = 8 << 20;
const SPAN_BYTES: u64 = 64 << 10;
const SHORT: Duration = Duration::from_millis(2);

fn allocate_some(local: &LocalMemory, blocks: usize, bytes: usize) -> Vec<NonNull<u8>> {
    let one = || local.allocate(bytes, Purpose::Rows, Urgency::Ordinary);
    (0..blocks).map(|_| one().unwrap()).collect()
}

/// Blocks of this size until the arena is full.
fn fill(local: &LocalMemory, bytes: usize) -> Vec<NonNull<u8>> {
    let one = || local.allocate(bytes, Purpose::Rows, Urgency::Ordinary);
    std::iter::from_fn(|| one().ok()).collect()
}

fn retire(local: &LocalMemory, blocks: Vec<NonNull<u8>>, bytes: usize) {
    for at in blocks {
        // SAFETY: allocated by the test with this size, and nobody knows of it.
        unsafe { local.retire(at, bytes, Purpose::Rows) };
    }
}

fn retire_some(local: &LocalMemory, blocks: usize) {
    retire(local, allocate_some(local, blocks, 64), 64);
}

fn hand_over(local: &LocalMemory, blocks: Vec<NonNull<u8>>, bytes: usize) {
    let before = local.garbage();
    retire(local, blocks, bytes);
    local.hand_over_garbage(before, SHORT);
}

fn orphans(engine: Engine) -> u64 {
    engine.memory().report().epochs.orphan_blocks
}

/// Nothing is left of what tests retire, and nothing was given up.
fn assert_all_is_free(engine: Engine) {
    let report = engine.memory().report();
    let epochs = report.epochs;
    assert_eq!((epochs.orphan_blocks, epochs.lost_bytes), (0, 0));
    assert_eq!(epochs.orphan_bytes, 0);
    assert_eq!(engine.memory().purpose_bytes(Purpose::Rows), 0);
    assert_eq!(engine.memory().purpose_bytes(Purpose::Other), 0);
}

/// A thread that is pinned until it is told, and so much longer.
fn pinned_beside<R>(engine: Engine, longer: Duration, work: impl FnOnce(&dyn Fn()) -> R) -> R {
    let (tell, told) = mpsc::channel::<()>();
    let (is_pinned, when_pinned) = mpsc::channel::<()>();
    let (tell_over, is_over) = mpsc::channel::<()>();
    // Owns `tell`, so that a test that fails ends the thread.
    std::thread::scope(move |scope| {
        scope.spawn(move || {
            let local = engine.memory().join().unwrap();
            let pin = local.pin();
            is_pinned.send(()).unwrap();
            if told.recv().is_ok() {
                std::thread::sleep(longer);
                drop(pin);
                // Nobody waits for the end of a longer pin.
                let _ = tell_over.send(());
            }
        });
        when_pinned.recv().unwrap();
        let unpin = move || {
            tell.send(()).unwrap();
            if longer.is_zero() {
                is_over.recv().unwrap();
            }
        };
        work(&unpin)
    })
}

#[test]
fn who_leaves_waits_for_a_short_pin_rather_than_leave_garbage_to_others() {
    let (_region, engine) = common::engine(64 * MIB);
    let leaves = engine.memory().join().unwrap();
    let epochs = pinned_beside(engine, Duration::from_millis(50), |unpin| {
        retire_some(&leaves, 20_000);
        assert!(leaves.garbage_blocks() > 19_000);
        unpin();
        drop(leaves);
        engine.memory().report().epochs
    });
    assert!(epochs.orphan_blocks <= FEW_BLOCKS as u64, "{epochs:?}");
    assert_eq!(epochs.lost_bytes, 0);
}

#[test]
fn all_that_gone_sessions_left_is_freed_in_one_go() {
    let (_region, engine) = common::engine(64 * MIB);
    let (leaves, stays) = (
        engine.memory().join().unwrap(),
        engine.memory().join().unwrap(),
    );
    pinned_beside(engine, Duration::ZERO, |unpin| {
        retire_some(&leaves, 20_000);
        drop(leaves);
        let left = engine.memory().report().epochs;
        assert_eq!((left.orphan_blocks, left.lost_bytes), (20_000, 0));
        unpin();
    });
    let looks = Cell::new(0);
    stays.collect_all(|| looks.set(looks.get() + 1));
    stays.flush();
    assert_all_is_free(engine);
    assert!(looks.get() > 10, "who collects for long is asked meanwhile");
}

#[test]
fn who_may_be_idle_leaves_to_others_what_a_pin_keeps() {
    let (_region, engine) = common::engine(64 * MIB);
    let (idle, other) = (
        engine.memory().join().unwrap(),
        engine.memory().join().unwrap(),
    );
    pinned_beside(engine, Duration::ZERO, |unpin| {
        hand_over(&idle, allocate_some(&idle, 20_000, 64), 64);
        assert_eq!(idle.garbage_blocks(), 0);
        let left = engine.memory().report().epochs;
        assert_eq!((left.orphan_blocks, left.lost_bytes), (20_000, 0));
        unpin();
    });
    other.collect_all(|| {});
    idle.flush();
    other.flush();
    assert_all_is_free(engine);
}

/// Everybody who collects makes such a visit, under a latch.
#[test]
fn a_visit_looks_at_few_pages_however_many_are_too_young() {
    let (_region, engine) = common::engine(64 * MIB);
    let (idle, other) = (
        engine.memory().join().unwrap(),
        engine.memory().join().unwrap(),
    );
    pinned_beside(engine, Duration::ZERO, |unpin| {
        hand_over(&idle, allocate_some(&idle, 100_000, 64), 64);
        assert_eq!(orphans(engine), 100_000);
        other.collect();
        let before = steps_taken();
        assert_eq!(other.collect(), 0);
        let steps = steps_taken() - before;
        assert!(steps <= 2, "looks at {steps} pages");
        unpin();
    });
    other.collect_all(|| {});
    assert_eq!(orphans(engine), 0);
}

#[test]
fn old_garbage_is_freed_though_much_that_is_younger_came_after_it() {
    let (_region, engine) = common::engine(64 * MIB);
    let idle = engine.memory().join().unwrap();
    let other = engine.memory().join().unwrap();
    let (old, young) = (20_000, 50_000);
    let of_old = allocate_some(&idle, old, 64);
    let of_young = allocate_some(&idle, young, 64);
    pinned_beside(engine, Duration::ZERO, |unpin| {
        hand_over(&idle, of_old, 64);
        unpin();
    });
    // Moves the epoch, and frees at most what two visits do.
    other.collect();
    other.collect();
    pinned_beside(engine, Duration::ZERO, |unpin| {
        hand_over(&idle, of_young, 64);
        other.collect_all(|| {});
        assert_eq!(orphans(engine), young as u64);
        unpin();
    });
    other.collect_all(|| {});
    assert_eq!(orphans(engine), 0);
}

#[test]
fn two_that_hand_over_beside_one_that_collects_lose_nothing() {
    const TURNS: usize = 20;
    let (_region, engine) = common::engine(64 * MIB);
    let hands_over = || {
        let local = engine.memory().join().unwrap();
        for _ in 0..TURNS {
            let blocks = allocate_some(&local, 5_000, 64);
            hand_over(&local, blocks, 64);
        }
    };
    let pins = || {
        let local = engine.memory().join().unwrap();
        for _ in 0..TURNS {
            let _pin = local.pin();
            std::thread::sleep(2 * SHORT);
        }
    };
    let collects = || {
        let local = engine.memory().join().unwrap();
        for _ in 0..TURNS * 10 {
            local.collect_all(|| {});
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(hands_over);
        scope.spawn(hands_over);
        scope.spawn(pins);
        scope.spawn(collects);
    });
    let last = engine.memory().join().unwrap();
    last.collect_all(|| {});
    drop(last);
    assert_all_is_free(engine);
}

/// What ordinary memory is left is for others' rows.
#[test]
fn who_may_be_idle_takes_little_of_a_nearly_full_arena() {
    let (_region, engine) = common::engine(64 * MIB);
    let memory = engine.memory();
    let idle = memory.join().unwrap();
    let left_bytes = RESERVE_BYTES + 6 * MIB as u64;
    let blocks = allocate_some(&idle, 600_000, 16);
    let mut live = Vec::new();
    while memory.arena_bytes_free() > left_bytes {
        live.extend(allocate_some(&idle, 1, SPAN_BYTES as usize));
    }
    let free_before = memory.arena_bytes_free();
    pinned_beside(engine, Duration::ZERO, |unpin| {
        hand_over(&idle, blocks, 16);
        let taken = free_before - memory.arena_bytes_free();
        assert!(
            taken <= RESERVE_BYTES / 2 + SPAN_BYTES,
            "took {taken} bytes"
        );
        let (kept, left) = (idle.garbage_blocks() as u64, memory.report().epochs);
        assert_eq!((kept + left.orphan_blocks, left.lost_bytes), (600_000, 0));
        assert!(left.orphan_blocks > 500_000, "{left:?}");
        unpin();
    });
    idle.collect_all(|| {});
    retire(&idle, live, SPAN_BYTES as usize);
    drop(idle);
    memory.join().unwrap().collect_all(|| {});
    assert_all_is_free(engine);
}

/// A part of the reserve is for that, else the arena would stay full until the idle session does
/// something.
#[test]
fn what_is_taken_back_in_a_full_arena_is_free_for_others_after_the_pin() {
    let (_region, engine) = common::engine(32 * MIB);
    let memory = engine.memory();
    let (idle, other) = (memory.join().unwrap(), memory.join().unwrap());
    let blocks: Vec<_> = [64 << 10, 4096, 512]
        .map(|bytes| (bytes, fill(&idle, bytes)))
        .into();
    let retired: usize = blocks.iter().map(|(_, blocks)| blocks.len()).sum();
    let free_before = memory.arena_bytes_free();
    pinned_beside(engine, Duration::ZERO, |unpin| {
        let before = idle.garbage();
        for (bytes, blocks) in blocks {
            retire(&idle, blocks, bytes);
        }
        idle.hand_over_garbage(before, SHORT);
        let left = memory.report().epochs;
        assert_eq!((left.orphan_blocks, left.lost_bytes), (retired as u64, 0));
        assert!(free_before - memory.arena_bytes_free() <= RESERVE_BYTES / 2);
        unpin();
    });
    let large = other.allocate(16 * MIB, Purpose::Rows, Urgency::Ordinary);
    // SAFETY: allocated just now.
    unsafe { other.free(large.unwrap(), 16 * MIB, Purpose::Rows) };
    other.collect_all(|| {});
    idle.flush();
    other.flush();
    assert_all_is_free(engine);
}

/// Half of the reserve at most, however many sessions have garbage.
#[test]
fn who_may_be_idle_keeps_what_finds_no_room_in_a_full_arena() {
    let (_region, engine) = common::engine(32 * MIB);
    let memory = engine.memory();
    let idle = [memory.join().unwrap(), memory.join().unwrap()];
    let half = allocate_some(&idle[0], 500_000, 16);
    let blocks = [half, fill(&idle[1], 16)];
    let retired: usize = blocks.iter().map(Vec::len).sum();
    let free_before = memory.arena_bytes_free();
    pinned_beside(engine, Duration::ZERO, |unpin| {
        for (idle, blocks) in idle.iter().zip(blocks) {
            hand_over(idle, blocks, 16);
        }
        let taken = free_before - memory.arena_bytes_free();
        assert!(
            taken <= RESERVE_BYTES / 2 + 2 * SPAN_BYTES,
            "took {taken} bytes"
        );
        let left = memory.report().epochs;
        let kept: usize = idle.iter().map(LocalMemory::garbage_blocks).sum();
        assert_eq!(left.orphan_blocks as usize + kept, retired);
        assert!(kept > 0 && left.lost_bytes == 0, "{left:?}");
        unpin();
    });
    idle.iter().for_each(|idle| idle.collect_all(|| {}));
    idle.iter().for_each(LocalMemory::flush);
    assert_all_is_free(engine);
}

#[test]
fn who_is_out_of_memory_frees_all_that_may_be_freed_first() {
    let (_region, engine) = common::engine(64 * MIB);
    let memory = engine.memory();
    let idle = memory.join().unwrap();
    let blocks = allocate_some(&idle, 250_000, 64);
    let live = fill(&idle, MIB);
    pinned_beside(engine, Duration::ZERO, |unpin| {
        hand_over(&idle, blocks, 64);
        assert_eq!(orphans(engine), 250_000);
        unpin();
    });
    let large = idle.allocate(8 * MIB, Purpose::Rows, Urgency::Ordinary);
    retire(&idle, vec![large.unwrap()], 8 * MIB);
    retire(&idle, live, MIB);
    idle.collect_all(|| {});
    idle.flush();
    assert_all_is_free(engine);
}

const ROWS: i32 = 20_000;

/// A table with a unique key.
fn table(session: &Session, world: &World) -> TableRef {
    let indexes = [common::definition(101, true, &[(1, false)])];
    common::table(session, world, &indexes)
}

/// Inserts a row with this key, and takes it back if there is one.
fn insert(
    session: &Session,
    me: &Me,
    work: &mut Transaction,
    table: TableRef,
    a: i32,
    xid: u64,
) -> bool {
    let new = body(Row { a, b: a, c: None });
    let made = work.insert(session, table, &new, Xid(xid), CommandId(1));
    let (row_id, version) = made.unwrap();
    match work.enter(session, me, table, row_id, version).unwrap() {
        Entered::Done => true,
        Entered::Duplicate(_) => {
            work.retract(session);
            false
        }
        Entered::Busy(by, _) => panic!("{by:?} is not there"),
    }
}

/// Garbage that a session keeps after the end of what retired much, beside a pin; then the others
/// have the rest.
fn assert_is_handed_over(engine: Engine, session: &Session, least: u64) {
    let kept = session.memory().garbage_blocks();
    assert!(kept <= FEW_BLOCKS, "{kept} blocks are kept");
    let handed_over = orphans(engine);
    assert!(handed_over >= least, "{handed_over} are handed over");
}

fn assert_is_free_after_the_pin(engine: Engine) {
    let other = engine.memory().join().unwrap();
    other.collect_all(|| {});
    assert_eq!(orphans(engine), 0);
}

#[test]
fn a_rollback_beside_a_pin_hands_over_what_it_takes_back() {
    let (_region, engine) = common::engine(64 * MIB);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = table(session, &world);
    pinned_beside(engine, Duration::ZERO, |unpin| {
        let (mut work, me) = (Transaction::new(), world.begin());
        for a in 0..ROWS {
            assert!(insert(session, &me, &mut work, table, a, me.top));
        }
        me.end(Fate::Aborted);
        work.abort(session);
        assert_is_handed_over(engine, session, ROWS as u64);
        unpin();
    });
    assert_is_free_after_the_pin(engine);
    assert_eq!(common::check(session, table, &reader(&world)).rows, 0);
}

#[test]
fn a_savepoint_taken_back_beside_a_pin_hands_over_what_it_takes_back() {
    let (_region, engine) = common::engine(64 * MIB);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = table(session, &world);
    pinned_beside(engine, Duration::ZERO, |unpin| {
        let (mut work, me) = (Transaction::new(), world.begin());
        assert!(insert(session, &me, &mut work, table, -1, me.top));
        let inner = me.savepoint();
        work.set_level(2).unwrap();
        for a in 0..ROWS {
            assert!(insert(session, &me, &mut work, table, a, inner));
        }
        me.abort_one(inner);
        work.savepoint_abort(session, 2);
        assert_is_handed_over(engine, session, ROWS as u64);
        me.end(Fate::Committed);
        work.commit(session);
        unpin();
    });
    assert_is_free_after_the_pin(engine);
    assert_eq!(common::check(session, table, &reader(&world)).rows, 1);
}

/// What lies between the first and the last state of a row goes when the transaction commits.
#[test]
fn a_commit_and_a_prepare_beside_a_pin_hand_over_what_they_take_out() {
    for is_prepared in [false, true] {
        let (_region, engine) = common::engine(64 * MIB);
        let session = &engine.join().unwrap();
        let world = World::new();
        let table = common::table(session, &world, &[]);
        pinned_beside(engine, Duration::ZERO, |unpin| {
            let (mut work, me) = (Transaction::new(), world.begin());
            for a in 0..ROWS / 4 {
                let new = |c| body(Row { a, b: a, c });
                let xid = Xid(me.top);
                let made = work.insert(session, table, &new(None), xid, CommandId(1));
                let (row_id, mut seen) = made.unwrap();
                for cid in 2..4 {
                    let (new, cid) = (new(Some(cid as i32)), CommandId(cid));
                    let written = work.update(session, &me, table, row_id, seen, &new, xid, cid);
                    let Ok(Written::Done(version)) = written else {
                        panic!("{written:?}")
                    };
                    seen = version;
                }
            }
            work.log(session, &mut common::Positions::new()).unwrap();
            if is_prepared {
                work.give_up(session);
                me.end(Fate::Committed);
            } else {
                me.end(Fate::Committed);
                work.commit(session);
            }
            assert_is_handed_over(engine, session, ROWS as u64 / 4);
            unpin();
        });
        assert_is_free_after_the_pin(engine);
        let rows = common::check(session, table, &reader(&world)).rows;
        assert_eq!(rows, ROWS as u64 / 4);
    }
}

/// As INSERT ... ON CONFLICT DO NOTHING does: none of these ends is large.
#[test]
fn a_commit_beside_a_pin_hands_over_what_duplicates_have_left() {
    let (_region, engine) = common::engine(64 * MIB);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = table(session, &world);
    pinned_beside(engine, Duration::ZERO, |unpin| {
        let (mut work, me) = (Transaction::new(), world.begin());
        assert!(insert(session, &me, &mut work, table, 1, me.top));
        for _ in 0..ROWS {
            assert!(!insert(session, &me, &mut work, table, 1, me.top));
        }
        assert_eq!(
            orphans(engine),
            0,
            "a statement goes on, and hands nothing over"
        );
        assert!(session.memory().garbage_blocks() >= ROWS as usize);
        me.end(Fate::Committed);
        work.commit(session);
        assert_is_handed_over(engine, session, ROWS as u64);
        unpin();
    });
    assert_is_free_after_the_pin(engine);
    assert_eq!(common::check(session, table, &reader(&world)).rows, 1);
}

/// As blocks with EXCEPTION in PL/pgSQL.
#[test]
fn many_small_savepoints_taken_back_beside_a_pin_keep_little() {
    let (_region, engine) = common::engine(64 * MIB);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = table(session, &world);
    pinned_beside(engine, Duration::ZERO, |unpin| {
        let (mut work, me) = (Transaction::new(), world.begin());
        for a in 0..ROWS {
            let inner = me.savepoint();
            work.set_level(2).unwrap();
            assert!(insert(session, &me, &mut work, table, a, inner));
            me.abort_one(inner);
            work.savepoint_abort(session, 2);
            work.set_level(1).unwrap();
            let kept = session.memory().garbage_blocks();
            assert!(kept <= FEW_BLOCKS, "{kept} blocks after {a} rows");
        }
        me.end(Fate::Aborted);
        work.abort(session);
        unpin();
    });
    assert_is_free_after_the_pin(engine);
    assert_eq!(common::check(session, table, &reader(&world)).rows, 0);
}

#[test]
fn a_load_that_failed_beside_a_pin_leaves_a_full_arena_to_others() {
    let (_region, engine) = common::engine(32 * MIB);
    let (failed, other) = (engine.join().unwrap(), engine.join().unwrap());
    let world = World::new();
    let table = table(&failed, &world);
    let load = |session: &Session, work: &mut Transaction, me: &Me| {
        let mut count = 0;
        loop {
            let (a, xid) = (count, Xid(me.top));
            let new = body(Row { a, b: a, c: None });
            let Ok((row_id, version)) = work.insert(session, table, &new, xid, CommandId(1)) else {
                return count;
            };
            if work.enter(session, me, table, row_id, version).is_err() {
                return count;
            }
            count += 1;
        }
    };
    let count = pinned_beside(engine, Duration::ZERO, |unpin| {
        let (mut work, me) = (Transaction::new(), world.begin());
        let count = load(&failed, &mut work, &me);
        me.end(Fate::Aborted);
        work.abort(&failed);
        unpin();
        count
    });
    let (mut work, me) = (Transaction::new(), world.begin());
    let again = load(&other, &mut work, &me);
    assert!(again > count * 9 / 10, "{again} rows after {count}");
    me.end(Fate::Aborted);
    work.abort(&other);
}
