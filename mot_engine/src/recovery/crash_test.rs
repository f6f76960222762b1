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
//! Some machines are shut down instead, and the crash comes in the last checkpoint, at the start or
//! behind it.
//!
//! Checked after each recovery: nothing acknowledged is lost, rows and indexes are those of the
//! commits that are in the log. A relation whose rows are not logged is empty, but behind a
//! shutdown that came to its end. `MOT_TEST_SEED=n` tells one story alone; `MOT_TEST_STORIES=n` so
//! many.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::tests::{Entry, Outcomes, Random, Replayed, SYSTEM, TestClock, Wal, World};
use super::{Settled, settle};
use crate::checkpoint::{
    self, CheckpointContext, CheckpointProgress, Pace, generations, next_generation, remove_old,
};
use crate::disk::Disk;
use crate::disk::simulated::SimulatedDisk;
use crate::errors::EngineError;
use crate::ids::{Lsn, Xid};

/// Steps of a story before its crash at the latest, and after the recovery.
const STEPS: u64 = 260;
const STEPS_AFTER: u64 = 40;

/// Stories told without `MOT_TEST_SEED`.
const STORIES: u64 = 24;

/// The log on the disk: segments, one for each start, of records with checksums.
struct DiskLog {
    disk: SimulatedDisk,
    writer: Option<Box<dyn crate::disk::DiskWriter>>,
    segment: u64,
    /// Entries of the log in memory that are on the disk, and up to where that is durable.
    written: usize,
    flushed: u64,
}

const RECORD_HEADER_BYTES: usize = 16;

fn io(source: std::io::Error) -> EngineError {
    EngineError::Io {
        action: "could not use",
        file: "the log".into(),
        source,
    }
}

fn segment_name(segment: u64) -> String {
    format!("wal-{segment:08}")
}

impl DiskLog {
    /// Goes on behind `entries` entries, which end at `end`.
    fn new(disk: &SimulatedDisk, segment: u64, entries: usize, end: u64) -> DiskLog {
        DiskLog {
            disk: disk.clone(),
            writer: None,
            segment,
            written: entries,
            flushed: end,
        }
    }

    /// Makes everything that is in the log durable.
    fn flush(&mut self, wal: &Wal) -> Result<u64, EngineError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let mut writer = self.disk.create(&segment_name(self.segment)).map_err(io)?;
                // Which segments are older, and where this one goes on.
                writer.append(&self.flushed.to_le_bytes()).map_err(io)?;
                writer.sync().map_err(io)?;
                self.disk.sync_directory().map_err(io)?;
                none.insert(writer)
            }
        };
        for (lsn, entry) in &wal.entries[self.written..] {
            writer.append(&stored(*lsn, entry)).map_err(io)?;
        }
        self.written = wal.entries.len();
        writer.sync().map_err(io)?;
        self.flushed = wal.entries.last().map_or(self.flushed, |(lsn, _)| *lsn);
        Ok(self.flushed)
    }
}

/// u32 length, u32 CRC32C of what follows, u64 LSN, the record or the xid.
fn stored(lsn: u64, entry: &Entry) -> Vec<u8> {
    let mut content = lsn.to_le_bytes().to_vec();
    match entry {
        Entry::Record { bytes, .. } => content.extend_from_slice(bytes),
        Entry::Commit { xid } | Entry::Prepare { xid } | Entry::Abort { xid } => {
            content.extend_from_slice(&xid.to_le_bytes());
        }
    }
    let mut out = (content.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&crc32c::crc32c(&content).to_le_bytes());
    out.extend_from_slice(&content);
    out
}

/// Where the log that can be read ends. The machine may have gone down before a segment had
/// anything.
fn end_of_log(disk: &SimulatedDisk, segments: u64) -> u64 {
    let mut end = 0;
    for segment in 0..=segments {
        let bytes = disk.contents(&segment_name(segment)).unwrap_or_default();
        let Some((first, mut rest)) = bytes.split_at_checked(8) else {
            continue;
        };
        if u64::from_le_bytes(first.try_into().expect("8 bytes")) != end {
            continue;
        }
        while let Some((lsn, next)) = read(rest) {
            end = lsn;
            rest = next;
        }
    }
    end
}

fn read(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (header, rest) = bytes.split_at_checked(RECORD_HEADER_BYTES - 8)?;
    let length = u32::from_le_bytes(header[..4].try_into().ok()?) as usize;
    let crc = u32::from_le_bytes(header[4..].try_into().ok()?);
    let (content, rest) = rest.split_at_checked(length)?;
    let lsn = content.get(..8)?.try_into().ok()?;
    (crc32c::crc32c(content) == crc).then_some((u64::from_le_bytes(lsn), rest))
}

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
        let wal = std::mem::take(&mut *self.world.wal.borrow_mut());
        let end = end_of_log(&self.disk, self.log.segment);
        assert_eq!(end, wal.end, "nothing is lost in a shutdown");
        self.disk.fail_at(at);
        let random = Random(self.world.random.below(u64::MAX));
        let entries = wal.entries.len();
        let kept = wal.clone();
        match World::start(random, wal, &self.disk) {
            Ok(world) => self.world = world,
            Err(error) => {
                *self.world.wal.borrow_mut() = kept;
                return Err(error);
            }
        }
        self.log = DiskLog::new(&self.disk, self.log.segment + 1, entries, end);
        self.world.check();
        self.tally.borrow_mut().starts += 1;
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
                settled: Settled::default(),
            };
            let mut replayed = |at: Replayed<'_>| standby.replayed(&at);
            let up = World::try_recover(&mut random, wal.clone(), &disk, end, &mut replayed);
            match up {
                Ok(world) => {
                    world.check();
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

/// Writes checkpoints and sweeps while replay goes on.
struct Standby<'a> {
    disk: &'a SimulatedDisk,
    tally: &'a RefCell<Tally>,
    random: Random,
    /// In a hundred records.
    odds: u64,
    settled: Settled,
}

impl Standby<'_> {
    fn replayed(&mut self, at: &Replayed<'_>) -> Result<(), EngineError> {
        if self.random.below(100) >= self.odds {
            return Ok(());
        }
        let outcomes = outcomes_at(at.wal, at.lsn);
        let settled = outcomes.running.borrow().first().copied();
        let settled = Xid(settled.unwrap_or(u64::MAX));
        let engine = at.session.engine();
        engine.raise_horizon(settled);
        let clock = TestClock {
            outcomes: &outcomes,
            me: 0,
        };
        for walk in at.session.tables() {
            at.session.sweep(&clock, walk.table(), true, || {});
        }
        self.settled.raise(engine, settled);
        settle(at.session, &clock, self.settled);
        let below = self.settled.below();
        at.session.drop_ended_locks(|xid| xid < below)?;
        crate::transaction::free_doomed(at.session, || ());
        let newest = generations(self.disk)?.first().copied();
        // What was loaded may be ahead of what was replayed; a server waits until it is not.
        if let Some(newest) = newest
            && checkpoint::read_manifest(self.disk, newest)?.flushed.0 >= at.lsn
        {
            return Ok(());
        }
        let progress = CheckpointProgress::default();
        let mut context = CheckpointContext {
            system_id: SYSTEM,
            timeline: 1,
            redo: Lsn(at.lsn),
            generation: next_generation(self.disk)?,
            settled,
            is_final: false,
            threads: 1,
            pace: Pace::unlimited(),
            progress: &progress,
            outcomes: &mut |open| {
                let committed = outcomes.committed.borrow();
                let has_committed = |xid: &Xid| committed.contains(&xid.0);
                Ok(open.iter().copied().filter(has_committed).collect())
            },
            // The log up to here was read from the disk.
            flush: &mut |_| Ok(Lsn(at.lsn)),
        };
        let written = checkpoint::write(at.session, self.disk, &mut context)?;
        let mut tally = self.tally.borrow_mut();
        tally.checkpoints_in_replay += 1;
        tally.ranges_reused += written.ranges_reused;
        tally.ranges_in_part += written.ranges_in_part;
        remove_old(self.disk, 1, |_| false).map(drop)
    }
}

/// What a standby knows that has replayed up to `lsn`: whose commit it has not seen may be running.
fn outcomes_at(wal: &Wal, lsn: u64) -> Outcomes {
    let outcomes = Outcomes::default();
    let mut aborted = BTreeSet::new();
    for (at, entry) in &wal.entries {
        match entry {
            Entry::Commit { xid } if *at <= lsn => {
                outcomes.committed.borrow_mut().insert(*xid);
            }
            // Of no transaction: what was freed.
            Entry::Record { xid: 0, .. } => {}
            Entry::Abort { xid } if *at <= lsn => {
                aborted.insert(*xid);
            }
            Entry::Commit { xid }
            | Entry::Record { xid, .. }
            | Entry::Prepare { xid }
            | Entry::Abort { xid } => {
                outcomes.running.borrow_mut().insert(*xid);
            }
        }
    }
    let committed = outcomes.committed.borrow();
    outcomes
        .running
        .borrow_mut()
        .retain(|xid| !committed.contains(xid) && !aborted.contains(xid));
    drop(committed);
    outcomes
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
        machine.world.end_all();
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
    machine.restart(None);
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
    }
}
