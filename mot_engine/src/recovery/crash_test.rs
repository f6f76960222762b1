//! The machine goes down at every single operation on its disk: of the log, of checkpoints, of
//! removing old ones, of recovery, and of recovery again.
//!
//! One disk holds checkpoint files and log. What was not synced is lost, torn and reordered as
//! `SimulatedDisk` says; the log is what can be read of it up to the first record that is damaged.
//! A story is a seed: what transactions do, when they flush, when checkpoints are written. It is
//! told once to count its operations, then once for each of them, with the crash there; then come a
//! crash at a drawn operation of the recovery, a whole recovery, more of the story on what was
//! recovered, and one more crash.
//!
//! Some machines are shut down instead, perhaps with prepared transactions, and the crash comes in
//! the last checkpoint, at the start or behind it. Some starts find the memory as it was left.
//!
//! Checked after each start: nothing acknowledged is lost, rows and indexes are those of the
//! commits that are in the log, and prepared transactions hold what they changed or locked. Tables
//! whose rows are not logged are empty, but behind a shutdown that came to its end. Temporary ones
//! are gone. `MOT_TEST_SEED=n` tells one story alone; `MOT_TEST_STORIES=n` so
//! many.

mod disk_log;
mod standby;

use std::cell::RefCell;
use std::rc::Rc;

use super::AppliedHorizon;
use super::tests::{Held, Random, Replayed, World};
use crate::checkpoint::remove_old;
use crate::disk::simulated::SimulatedDisk;
use crate::errors::EngineError;
use crate::ids::Lsn;
use disk_log::{DiskLog, end_of_log};
use standby::Standby;

/// Steps of a story before its crash at the latest, and after the recovery.
const STEPS: u64 = 260;
const STEPS_AFTER: u64 = 40;

/// Stories told without `MOT_TEST_SEED`.
const STORIES: u64 = 24;

/// A machine that runs, or ran.
struct Machine {
    disk: SimulatedDisk,
    world: World,
    log: DiskLog,
    tally: Rc<RefCell<Tally>>,
}

/// What the stories met, so that a test that tests nothing is noticed.
#[derive(Default, Debug)]
struct Tally {
    cases: u64,
    crashed_recoveries: u64,
    checkpoints: u64,
    checkpoints_in_replay: u64,
    ranges_reused: u64,
    ranges_in_part: u64,
    lost: u64,
    shutdowns: u64,
    starts: u64,
    starts_warm: u64,
    /// What there was when a machine went down, what its recovery has brought back, and what the
    /// start behind a shutdown has.
    crashed: Held,
    recovered: Held,
    started: Held,
}

impl Machine {
    fn new(seed: u64, tally: &Rc<RefCell<Tally>>) -> Machine {
        let disk = SimulatedDisk::new(seed);
        Machine {
            world: World::new(seed),
            log: DiskLog::new(&disk, 0, 0, 0),
            disk,
            tally: Rc::clone(tally),
        }
    }

    /// Steps of transactions, with flushes and checkpoints in between, until one meets the end of
    /// the machine.
    fn run(&mut self, steps: u64) -> Result<(), EngineError> {
        for _ in 0..steps {
            self.world.step();
            match self.world.random.below(100) {
                0..8 => {
                    self.log.flush(&self.world.wal.borrow())?;
                }
                8..12 => self.checkpoint()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), EngineError> {
        let steps = self.world.random.below(4);
        let wal = Rc::clone(&self.world.wal);
        let log = &mut self.log;
        let flush = &mut |_| log.flush(&wal.borrow()).map(Lsn);
        let written = self.world.try_checkpoint(&self.disk, steps, flush)?;
        let mut tally = self.tally.borrow_mut();
        tally.checkpoints += 1;
        tally.ranges_reused += written.ranges_reused;
        tally.ranges_in_part += written.ranges_in_part;
        let keep = 1 + self.world.random.below(2) as usize;
        remove_old(&self.disk, keep, |_| false).map(drop)
    }

    /// Shuts down: the last checkpoint, when all transactions have ended.
    fn shut_down(&mut self) -> Result<(), EngineError> {
        let wal = Rc::clone(&self.world.wal);
        let log = &mut self.log;
        self.tally.borrow_mut().shutdowns += 1;
        let flush = &mut |_| log.flush(&wal.borrow()).map(Lsn);
        self.world.last_checkpoint(&self.disk, flush).map(drop)
    }

    /// Starts after a shutdown; the machine may go down at operation `at`.
    fn start(&mut self, at: u64) -> Result<(), EngineError> {
        self.disk = self.disk.restart();
        let kept = self.world.wal.borrow().clone();
        let end = end_of_log(&self.disk, self.log.segment);
        assert_eq!(end, kept.end, "nothing is lost in a shutdown");
        self.disk.fail_at(at);
        let (entries, is_warm) = (kept.entries.len(), self.world.random.below(3) == 0);
        // In place of a server that is gone.
        let mut left = std::mem::replace(&mut self.world, World::new(0));
        let random = Random(left.random.below(u64::MAX));
        let started = match is_warm {
            true => left.start_warm(&self.disk),
            false => World::start(random, left.wal.take(), &self.disk),
        };
        match started {
            Ok(world) => self.world = world,
            Err(error) => {
                *self.world.wal.borrow_mut() = kept;
                return Err(error);
            }
        }
        self.log = DiskLog::new(&self.disk, self.log.segment + 1, entries, end);
        self.world.check();
        let mut tally = self.tally.borrow_mut();
        tally.starts += 1;
        tally.starts_warm += u64::from(is_warm);
        tally.started.add(&self.world);
        Ok(())
    }

    /// The machine went down, or does now. It comes up, goes down again at operation `again` of its
    /// recovery if there are that many, and then comes up for good.
    fn restart(self, again: Option<u64>) -> Machine {
        let Machine {
            mut disk,
            mut world,
            log,
            tally,
        } = self;
        tally.borrow_mut().crashed.add(&world);
        let mut wal = std::mem::take(&mut *world.wal.borrow_mut());
        let mut random = Random(world.random.below(u64::MAX));
        drop(world);
        let mut again = again;
        loop {
            disk = disk.restart();
            let end = end_of_log(&disk, log.segment);
            assert!(end >= log.flushed, "acknowledged and lost");
            tally.borrow_mut().lost += u64::from(end < wal.end);
            wal.cut(end);
            wal.end = end;
            if let Some(at) = again {
                disk.fail_at(at);
            }
            let mut standby = Standby {
                disk: &disk,
                tally: &tally,
                random: Random(random.below(u64::MAX)),
                // A checkpoint at every restart would leave little to replay.
                odds: [0, 0, 20][random.below(3) as usize],
                applied: AppliedHorizon::default(),
            };
            let mut replayed = |at: Replayed<'_>| standby.replayed(&at);
            let up = World::try_recover(&mut random, wal.clone(), &disk, end, &mut replayed);
            match up {
                Ok(world) => {
                    world.check();
                    tally.borrow_mut().recovered.add(&world);
                    let entries = world.wal.borrow().entries.len();
                    let log = DiskLog::new(&disk, log.segment + 1, entries, end);
                    return Machine {
                        disk,
                        world,
                        log,
                        tally,
                    };
                }
                Err(error) => {
                    assert!(again.is_some(), "{error}");
                    again = None;
                    tally.borrow_mut().crashed_recoveries += 1;
                }
            }
        }
    }
}

/// A story with its crash at operation `at` of the disk. False if the story had fewer operations.
fn tell(seed: u64, at: u64, tally: &Rc<RefCell<Tally>>) -> bool {
    let mut machine = Machine::new(seed, tally);
    machine.disk.fail_at(at);
    let went_down = machine.run(STEPS).is_err();
    let mut random = Random(seed ^ at << 32);
    let again = random.below(60);
    let mut machine = machine.restart((again < 40).then_some(again));
    tally.borrow_mut().cases += 1;
    machine.disk.fail_at(random.below(60));
    if machine.run(STEPS_AFTER).is_ok() {
        // Prepared ones stay over a shutdown.
        match random.below(2) {
            0 => machine.world.end_all(),
            _ => machine.world.leave_prepared(),
        }
        machine.world.check();
        if random.below(2) == 0
            && machine.shut_down().is_ok()
            && machine.start(random.below(40)).is_ok()
            && machine.run(random.below(STEPS_AFTER)).is_ok()
        {
            machine.world.end_all();
            machine.world.check();
        }
    }
    let mut machine = machine.restart(None);
    machine.world.end_all();
    machine.world.check();
    went_down
}

#[test]
fn nothing_is_lost_wherever_the_machine_goes_down() {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().expect("a number"))
    };
    let seeds = match number("MOT_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MOT_TEST_STORIES").unwrap_or(STORIES),
    };
    let tally = Rc::new(RefCell::new(Tally::default()));
    for seed in seeds.clone() {
        for at in 0.. {
            let told = std::panic::AssertUnwindSafe(|| tell(seed, at, &tally));
            match std::panic::catch_unwind(told) {
                Ok(true) => {}
                Ok(false) => break,
                Err(payload) => {
                    eprintln!("failed with MOT_TEST_SEED={seed}, crash at operation {at}");
                    std::panic::resume_unwind(payload);
                }
            }
        }
    }
    let tally = tally.borrow();
    println!("{tally:?}");
    let stories = seeds.end - seeds.start;
    assert!(tally.cases > 100 * stories, "{tally:?}");
    if stories >= STORIES {
        assert!(tally.crashed_recoveries > 500, "{tally:?}");
        assert!(tally.checkpoints_in_replay > 500, "{tally:?}");
        assert!(tally.ranges_reused > 2 * tally.cases, "{tally:?}");
        assert!(tally.ranges_in_part > tally.cases / 4, "{tally:?}");
        assert!(tally.lost > 1000, "{tally:?}");
        assert!(tally.shutdowns > tally.starts, "{tally:?}");
        assert!(tally.starts > tally.cases / 20, "{tally:?}");
        let (crashed, started) = (&tally.crashed, &tally.started);
        let lost = crashed.rows_unlogged.min(crashed.rows_temporary);
        assert!(lost > tally.cases / 4, "{tally:?}");
        assert!(crashed.locks_unlogged > tally.cases / 100, "{tally:?}");
        assert!(tally.recovered.least() > tally.cases / 100, "{tally:?}");
        assert!(started.least() > stories / 4, "{tally:?}");
        assert!(started.locks_unlogged > stories / 4, "{tally:?}");
        assert!(started.rows_unlogged > tally.starts / 8, "{tally:?}");
        assert!(tally.starts_warm > tally.starts / 5, "{tally:?}");
    }
}
