//! A region that outlives its server: what is taken over, and everything that must not be.

mod common;

use common::{Fate, Me, Positions, Row, World, body, check, row, sweep};
use mot_engine::memory::*;
use mot_engine::{
    Build, CommandId, Engine, Entered, NotQuiescent, NotTakenOver, RowScan, Session, State,
    TableRef, Transaction, Xid,
};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const BYTES: usize = 64 << 20;
const PROOF: Mark = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// A file of one test's own, and an address for it.
struct Place {
    path: PathBuf,
    base: usize,
}

impl Place {
    fn new() -> Place {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("mot-test.{}.{number}", std::process::id());
        Place {
            path: PathBuf::from("/dev/shm").join(name),
            base: 0x2100_0000_0000 + (number << 30),
        }
    }

    fn open_at(&self, base: usize, bytes: usize) -> Result<(Region, Found), KeptError> {
        let path = &self.path;
        Region::open_kept(KeptPlace { path, base }, bytes, HugePages::Off)
    }

    fn open(&self) -> (Region, Found) {
        self.open_at(self.base, BYTES).unwrap()
    }

    /// A marked file that holds one byte of ours.
    fn marked(&self) {
        let (region, _) = self.open();
        // SAFETY: inside the mapping, which only this test uses; the page is there or the test
        // machine is full.
        unsafe { region.base().add(5 << 20).write(7) };
        region.mark(&PROOF).unwrap();
    }

    /// Opening finds nothing for this reason, and an empty region.
    fn finds_nothing(&self, why: Unmarked) {
        let (region, found) = self.open();
        assert_eq!(found, Found::Nothing(why));
        // SAFETY: inside the mapping, which only this test uses.
        assert_eq!(unsafe { region.base().add(5 << 20).read() }, 0);
    }

    fn file(&self) -> std::fs::File {
        let file = std::fs::OpenOptions::new().write(true).open(&self.path);
        file.unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[test]
fn what_is_marked_is_found_once() {
    let place = Place::new();
    place.finds_nothing(Unmarked::New);
    place.finds_nothing(Unmarked::NotClean);
    place.marked();
    let (region, found) = place.open();
    assert_eq!(found, Found::Marked(PROOF));
    // SAFETY: inside the mapping, which only this test uses.
    assert_eq!(unsafe { region.base().add(5 << 20).read() }, 7);
    assert_eq!(region.base().addr().get(), place.base);
    // Whatever happens next, the mark is off already.
    drop(region);
    place.finds_nothing(Unmarked::NotClean);
}

#[test]
fn another_size_or_address_is_not_taken() {
    let place = Place::new();
    place.marked();
    let (region, found) = place.open_at(place.base, 2 * BYTES).unwrap();
    assert_eq!(found, Found::Nothing(Unmarked::Otherwise));
    drop(region);
    std::fs::remove_file(&place.path).unwrap();
    place.marked();
    let elsewhere = place.base + (256 << 20);
    let (_region, found) = place.open_at(elsewhere, BYTES).unwrap();
    assert_eq!(found, Found::Nothing(Unmarked::Otherwise));
}

#[test]
fn a_file_that_was_touched_is_not_taken() {
    let damages: [fn(&Place); 5] = [
        |place| place.file().write_all_at(b"x", 9 << 20).unwrap(),
        |place| place.file().write_all_at(b"x", 12).unwrap(),
        |place| place.file().set_len(1 << 20).unwrap(),
        |place| place.file().set_len(16).unwrap(),
        |place| {
            let copy = place.path.with_extension("copy");
            std::fs::copy(&place.path, &copy).unwrap();
            std::fs::rename(&copy, &place.path).unwrap();
        },
    ];
    for damage in damages {
        let place = Place::new();
        place.marked();
        damage(&place);
        place.finds_nothing(Unmarked::Changed);
    }
}

#[test]
fn one_server_at_a_time() {
    let place = Place::new();
    let (region, _) = place.open();
    let elsewhere = place.base + (256 << 20);
    let second = place.open_at(elsewhere, BYTES).unwrap_err();
    assert!(matches!(second, KeptError::InUse), "{second}");
    assert!(matches!(remove_kept(&place.path), Err(KeptError::InUse)));
    assert!(place.path.exists());
    region.forget().unwrap();
    assert!(!place.path.exists());
    // Somebody else's file of this name stays.
    let (other, _) = place.open_at(elsewhere, BYTES).unwrap();
    region.forget().unwrap();
    assert!(place.path.exists());
    drop(other);
    assert!(remove_kept(&place.path).unwrap());
    assert!(!remove_kept(&place.path).unwrap());
}

#[test]
fn what_cannot_work_is_refused_at_once() {
    let place = Place::new();
    let full = place.open_at(place.base, 1 << 45).unwrap_err();
    assert!(matches!(full, KeptError::NoRoom { .. }), "{full}");
    assert!(!place.path.exists(), "a file nobody can use stays");

    let (region, _) = place.open();
    let other = Place::new();
    let taken = other.open_at(place.base, BYTES).unwrap_err();
    assert!(matches!(taken, KeptError::Address(_)), "{taken}");
    drop(region);

    let open_to_all = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&place.path, open_to_all).unwrap();
    let foreign = place.open_at(place.base, BYTES).unwrap_err();
    assert!(matches!(foreign, KeptError::Foreign), "{foreign}");
    std::fs::remove_file(&place.path).unwrap();
    std::os::unix::fs::symlink("/dev/shm/mot-test.elsewhere", &place.path).unwrap();
    let link = place.open_at(place.base, BYTES).unwrap_err();
    assert!(matches!(link, KeptError::Io(_)), "{link}");

    let disk = Place {
        path: PathBuf::from("/proc/self/mot-test"),
        base: place.base,
    };
    assert!(disk.open_at(disk.base, BYTES).is_err());
}

/// Lays an engine out in the region.
fn format(region: &Region) -> Engine {
    // SAFETY: the region is empty, and its owner keeps it for as long as the engine.
    let memory = unsafe { Memory::format(region, &ArenaOptions::default()) }.unwrap();
    Engine::format(memory).unwrap()
}

fn take_over(region: &Region) -> Result<Engine, NotTakenOver> {
    // SAFETY: as above; what is in it was written by this program.
    unsafe { Engine::take_over(region, &ArenaOptions::default()) }.map(|(engine, _)| engine)
}

fn insert(session: &Session, me: &Me, work: &mut Transaction, table: TableRef, new: Row) {
    let (row_id, version) = work
        .insert(session, table, &body(new), Xid(me.top), CommandId(1))
        .unwrap();
    let entered = work.enter(session, me, table, row_id, version).unwrap();
    assert_eq!(entered, Entered::Done);
}

fn commit(session: &Session, me: &Me, work: &mut Transaction) {
    work.log(session, &mut Positions::new()).unwrap();
    me.end(Fate::Committed);
    work.commit(session);
}

fn fill(session: &Session, world: &World, rows: std::ops::Range<i32>) {
    let me = world.begin();
    let mut work = Transaction::new();
    let table = session
        .find_table(common::TABLE, &me)
        .unwrap_or_else(|| make(session, &me, &mut work));
    for a in rows {
        insert(
            session,
            &me,
            &mut work,
            table,
            Row {
                a,
                b: a % 7,
                c: None,
            },
        );
    }
    commit(session, &me, &mut work);
}

fn make(session: &Session, me: &Me, work: &mut Transaction) -> TableRef {
    let table = work
        .create_table(session, common::TABLE, Xid(me.top))
        .unwrap();
    for definition in [
        common::definition(101, true, &[(1, false)]),
        common::definition(102, false, &[(2, true)]),
    ] {
        let built = work
            .create_index(session, me, table, &definition, Xid(me.top))
            .unwrap();
        assert!(matches!(built, Build::Done(_)));
    }
    table
}

fn remove_below(session: &Session, world: &World, end: i32) {
    let me = world.begin();
    let mut work = Transaction::new();
    let table = session.find_table(common::TABLE, &me).unwrap();
    let snap = me.snapshot(1);
    let mut scan = RowScan::new(table);
    while let Some((row_id, seen)) = scan.next(session, &snap) {
        if row(seen.body()).a < end {
            work.delete(session, &me, table, row_id, seen, Xid(me.top), CommandId(1))
                .unwrap();
        }
    }
    commit(session, &me, &mut work);
}

fn rows(session: &Session, world: &World) -> Vec<i32> {
    let me = common::reader(world);
    let table = session.find_table(common::TABLE, &me).unwrap();
    check(session, table, &me);
    rows_seen(session, world)
}

fn rows_seen(session: &Session, world: &World) -> Vec<i32> {
    let me = common::reader(world);
    let table = session.find_table(common::TABLE, &me).unwrap();
    let snap = me.snapshot(0);
    let mut scan = RowScan::new(table);
    let mut rows = Vec::new();
    while let Some((_, version)) = scan.next(session, &snap) {
        rows.push(row(version.body()).a);
    }
    rows.sort_unstable();
    rows
}

#[test]
fn an_engine_goes_on_where_it_stood_many_times() {
    let place = Place::new();
    let world = World::new();
    let (mut region, _) = place.open();
    let mut engine = format(&region);
    let session = engine.join().unwrap();
    fill(&session, &world, 0..500);
    drop(session);
    engine.set_state(State::Ready);
    let mut used = Vec::new();
    for round in 1..20 {
        assert_eq!(engine.not_quiescent_because(), None);
        region.mark(&PROOF).unwrap();
        drop(region);
        let (again, found) = place.open();
        region = again;
        assert_eq!(found, Found::Marked(PROOF));
        engine = take_over(&region).unwrap();
        assert_eq!(engine.state(), State::Empty);
        engine.set_state(State::Ready);
        let session = engine.join().unwrap();
        let first = (round - 1) * 100;
        assert_eq!(
            rows(&session, &world),
            (first..first + 500).collect::<Vec<_>>()
        );
        assert_eq!(engine.transactions().commits.load(Ordering::Relaxed), 0);
        assert_eq!(engine.progress().rows_loaded.load(Ordering::Relaxed), 500);
        let reader = common::reader(&world);
        let table = session.find_table(common::TABLE, &reader).unwrap();
        assert_eq!(table.row_count_estimate(), 500);
        assert_eq!(table.counters().inserted.load(Ordering::Relaxed), 0);
        remove_below(&session, &world, first + 100);
        sweep(&session, &world, table);
        fill(&session, &world, first + 500..first + 600);
        drop(session);
        used.push(engine.memory().arena_bytes_used());
    }
    let (early, late) = (used[4], used[used.len() - 1]);
    assert!(late <= early + (1 << 20), "memory grows: {used:?}");
}

#[test]
fn an_unfinished_transaction_is_the_clocks_to_resolve() {
    let place = Place::new();
    let world = World::new();
    let (region, _) = place.open();
    let engine = format(&region);
    let session = engine.join().unwrap();
    fill(&session, &world, 0..10);
    let me = world.begin();
    let table = session.find_table(common::TABLE, &me).unwrap();
    let mut work = Transaction::new();
    let open = Row {
        a: 10,
        b: 0,
        c: None,
    };
    insert(&session, &me, &mut work, table, open);
    work.log(&session, &mut Positions::new()).unwrap();
    // As a prepared transaction: nobody is left who would commit or abort it in memory.
    std::mem::forget(work);
    drop(session);
    engine.set_state(State::Ready);
    assert_eq!(engine.not_quiescent_because(), None);
    region.mark(&PROOF).unwrap();
    drop(region);

    let (region, _) = place.open();
    let engine = take_over(&region).unwrap();
    engine.set_state(State::Ready);
    let session = engine.join().unwrap();
    assert_eq!(rows_seen(&session, &world).len(), 10, "still running");
    me.end(Fate::Committed);
    assert_eq!(rows_seen(&session, &world).len(), 11, "committed meanwhile");
}

#[test]
fn what_was_not_left_in_order_is_not_taken() {
    let world = World::new();
    let left_behind: [(fn(Engine), NotQuiescent); 3] = [
        (
            |engine| std::mem::forget(engine.join().unwrap()),
            NotQuiescent::Arena(ArenaNotQuiescent::Participants(1)),
        ),
        (
            |engine| engine.set_state(State::Replaying),
            NotQuiescent::State(State::Replaying),
        ),
        (
            |engine| {
                let session = engine.join().unwrap();
                std::mem::forget(session.tables());
            },
            NotQuiescent::Walked,
        ),
    ];
    for (leave, reason) in left_behind {
        let place = Place::new();
        let (region, _) = place.open();
        let engine = format(&region);
        let session = engine.join().unwrap();
        fill(&session, &world, 0..10);
        drop(session);
        engine.set_state(State::Ready);
        assert_eq!(engine.not_quiescent_because(), None);
        leave(engine);
        assert_eq!(engine.not_quiescent_because(), Some(reason));
        // A server that marks all the same must not find a believer.
        region.mark(&PROOF).unwrap();
        drop(region);
        let (region, found) = place.open();
        assert_eq!(found, Found::Marked(PROOF));
        match take_over(&region) {
            Err(NotTakenOver::NotQuiescent(found)) => assert_eq!(found, reason),
            other => panic!("{:?}", other.err()),
        }
        // SAFETY: nobody uses what was there.
        unsafe { region.reset() }.unwrap();
        format(&region);
    }
}

#[test]
fn another_machine_or_an_empty_region_is_not_taken() {
    let place = Place::new();
    let (region, _) = place.open();
    assert!(take_over(&region).is_err(), "nothing was formatted");
    format(&region).set_state(State::Ready);
    let two_nodes = ArenaOptions {
        topology: Topology::made_up(&[0, 1, 2]),
    };
    // SAFETY: nobody else uses the region.
    let refused = unsafe { Engine::take_over(&region, &two_nodes) }.err();
    let refused = refused.expect("other nodes").to_string();
    assert!(refused.contains("NUMA"), "{refused}");
    assert!(take_over(&region).is_ok());
}

/// A kernel whose file system is full when told so, and that refuses huge pages.
#[derive(Default)]
struct Stingy {
    is_full: AtomicBool,
    /// How often a huge page was asked for.
    asked: AtomicUsize,
}

impl Kernel for &'static Stingy {
    fn current_node(&self) -> u32 {
        0
    }

    unsafe fn bind(&self, _: NonNull<u8>, _: usize, _: Binding<'_>) -> io::Result<()> {
        Ok(())
    }

    unsafe fn give_back(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { LinuxKernel.give_back(at, bytes) }
    }

    unsafe fn populate(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        assert_eq!(latches_held(), 0, "a system call under a latch");
        if self.is_full.load(Ordering::Relaxed) {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        }
        // SAFETY: the caller's promise is the same.
        unsafe { LinuxKernel.populate(at, bytes) }
    }

    unsafe fn collapse(&self, _: NonNull<u8>, _: usize) -> io::Result<()> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Err(io::Error::from_raw_os_error(libc::ENOMEM))
    }
}

#[test]
fn a_full_file_system_is_a_full_arena() {
    let stingy: &Stingy = Box::leak(Box::default());
    let is_full = &stingy.is_full;
    let place = Place::new();
    let (region, _) = place.open();
    let memory = format(&region).memory();
    let local = memory.join_with(Box::new(stingy)).unwrap();
    let take = |bytes| local.allocate(bytes, Purpose::Rows, Urgency::Ordinary);
    for bytes in [CHUNK_BYTES, 3 * CHUNK_BYTES + SPAN_BYTES, 6 * CHUNK_BYTES] {
        let before = memory.report();
        is_full.store(true, Ordering::Relaxed);
        let full = take(bytes).unwrap_err();
        assert_eq!(full.requested, bytes as u64);
        let after = memory.report();
        assert_eq!(before.arena_bytes_used, after.arena_bytes_used);
        let free =
            |report: &MemoryReport| report.chunks.free_resident + report.chunks.free_untouched;
        assert_eq!(free(&before), free(&after));
        is_full.store(false, Ordering::Relaxed);
        let block = take(bytes).unwrap();
        // SAFETY: just taken, with this size.
        unsafe {
            block.write_bytes(1, bytes);
            local.free(block, bytes, Purpose::Rows);
        }
    }
    // What chunks in use have left is still given out.
    is_full.store(true, Ordering::Relaxed);
    let mut got = 0;
    while take(SPAN_BYTES).is_ok() {
        got += 1;
    }
    assert!(got > 0, "no hole was found");
}

/// What the server before was told of huge pages does not count.
#[test]
fn huge_pages_are_asked_for_as_this_start_says() {
    let stingy: &Stingy = Box::leak(Box::default());
    for (before, now) in [
        (HugePages::Try, HugePages::Off),
        (HugePages::Off, HugePages::Try),
    ] {
        let place = Place::new();
        let open = |huge_pages| {
            let (path, base) = (&place.path, place.base);
            Region::open_kept(KeptPlace { path, base }, BYTES, huge_pages).unwrap()
        };
        let (region, _) = open(before);
        format(&region).set_state(State::Ready);
        region.mark(&PROOF).unwrap();
        drop(region);
        let (region, _) = open(now);
        let memory = take_over(&region).unwrap().memory();
        let local = memory.join_with(Box::new(stingy)).unwrap();
        stingy.asked.store(0, Ordering::Relaxed);
        local
            .allocate(3 * CHUNK_BYTES, Purpose::Rows, Urgency::Ordinary)
            .unwrap();
        let asked = stingy.asked.load(Ordering::Relaxed);
        assert_eq!(asked > 0, now == HugePages::Try);
    }
}
