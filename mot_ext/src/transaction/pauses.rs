//! Pause points, settable from SQL. Only in builds with debug assertions (`checked`): nothing of
//! this is in a release.
//!
//! `mot_engine/src/pause.rs` has the list of points. This file says which process stops at them:
//!
//! - `mot.pause_at(point, times)` arms a point for the next arrivals and takes an advisory lock of
//!   its own for the session that calls it. A process that arrives waits for that lock, so
//!   isolationtester and pg_locks see a session that is blocked by another. `mot.resume(point)`
//!   gives the lock up and disarms.
//! - The session that armed a point passes it: it has the lock.
//! - A background worker has no deadlock timer, and PostgreSQL's lock manager needs one to wait: it
//!   sleeps until the point is resumed. So does a thread that replays, at its one point, unless the
//!   server stops.
//! - At a point after PostgreSQL's decision interrupts are held: there a wait cannot be cancelled,
//!   as a real one could not.
//! - `mot.fail_at(point)` raises an error there instead, at points that may raise, and lets the
//!   disk refuse the operation at those that are one of its operations.
//! - `mot.pause_points()` lists the points, and `mot.paused(point)` counts who stands at one.
//!   isolationtester sees no worker that waits: `mot.wait_until_paused(point)` returns when one
//!   stands there.
//! - `mot.row_bytes_exactly()` is beside them: what an ending at a point left in memory, to the
//!   byte.
//! - `mot.request_checkpoint()` asks for a checkpoint and does not wait for it.
//! - `mot.plant_ended_process(pid)`: this session takes a process that has ended for the one that
//!   has this pid now (`pg/owner.rs`).
//! - `mot.plant_told_snapshot()`: this session's line has what a transaction with the same local id
//!   has published 2^32 transactions ago (`transaction/horizon/publish.rs`).
//! - `mot.run_at_pre_commit(statement)` does what another extension might: it runs a statement when
//!   this session's transaction is about to commit, and `mot.run_behind_pre_commit(statement)` what
//!   one might that was preloaded before this library: when our own callback is through.
//! - `mot.is_own(id)`: whether a row whose maker has this id, as text, is one of this
//!   transaction's.
//! - A session that ends without `mot.resume` gives its lock up: a point left armed by it stops
//!   no process but workers.
use super::session;
use crate::pg::{self, interrupts};
use crate::shared_memory::{self, Armed, POINTS_MAX};
use mot_engine::Session;
use mot_engine::memory::Purpose;
use mot_engine::pause::{Point, Raise, set_hook, set_refusals, set_replay_hook};
use pgrx::prelude::*;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// How often a sleeping worker looks whether it may continue, in milliseconds.
const POLL_MS: i64 = 5;

/// How often this session has each point's lock.
static HELD: [AtomicU32; POINTS_MAX] = [const { AtomicU32::new(0) }; POINTS_MAX];

fn armed(point: Point) -> &'static Armed {
    &shared_memory::control().pauses.points[point as usize]
}

/// From now on this process stops at points.
pub fn init() {
    set_hook(Some(on_point));
    set_refusals(Some(|point| take(&armed(point).failures)));
    set_replay_hook(before_replayed_record);
}

/// In a thread that replays: calls nothing of PostgreSQL's.
fn before_replayed_record() {
    let armed = armed(Point::ReplayBeforeRecord);
    if !take(&armed.pauses) {
        return;
    }
    let resumes = armed.resumes.load(Ordering::Acquire);
    armed.waiting.fetch_add(1, Ordering::AcqRel);
    let is_ending = || shared_memory::control().closing.load(Ordering::SeqCst);
    while armed.resumes.load(Ordering::Acquire) == resumes && !is_ending() && !pg::is_orphaned() {
        std::thread::sleep(Duration::from_millis(POLL_MS as u64));
    }
    armed.waiting.fetch_sub(1, Ordering::AcqRel);
}

/// Takes one of `counter`, if there is one.
fn take(counter: &AtomicU32) -> bool {
    counter.load(Ordering::Relaxed) > 0
        && counter
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok()
}

/// The point that this process is stopped at, as its number and one; 0: none.
static STANDS_AT: AtomicU32 = AtomicU32::new(0);

/// Counted as standing at a point, also when an error ends that.
struct Standing;

impl Standing {
    fn begin(point: Point) -> Self {
        armed(point).waiting.fetch_add(1, Ordering::AcqRel);
        STANDS_AT.store(point as u32 + 1, Ordering::Relaxed);
        Standing
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        leave();
    }
}

/// This process is at no point any more. Called at process exit, too: a FATAL error unwinds
/// nothing.
pub fn leave() {
    if let Some(place) = STANDS_AT.swap(0, Ordering::Relaxed).checked_sub(1) {
        armed(Point::ALL[place as usize])
            .waiting
            .fetch_sub(1, Ordering::AcqRel);
    }
}

fn on_point(point: Point) {
    let armed = armed(point);
    if armed.failures.load(Ordering::Relaxed) > 0 && take(&armed.failures) {
        ereport!(
            ERROR,
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("failed at {}", point.name())
        );
    }
    if !take(&armed.pauses) {
        return;
    }
    let resumes = armed.resumes.load(Ordering::Acquire);
    let _standing = Standing::begin(point);
    if has_lock_manager() {
        let tag = tag(point);
        // SAFETY: an advisory lock of the session, given up at once; may raise where interrupts are
        // not held.
        unsafe {
            pg_sys::LockAcquire(&tag, pg_sys::ShareLock as i32, true, false);
            pg_sys::LockRelease(&tag, pg_sys::ShareLock as i32, true);
        }
        return;
    }
    while armed.resumes.load(Ordering::Acquire) == resumes && !is_ending() {
        interrupts::sleep_ms(POLL_MS);
    }
}

/// Whether this process can wait in PostgreSQL's lock manager.
fn has_lock_manager() -> bool {
    // SAFETY: plain variables of this process.
    unsafe { pg_sys::MyBackendType == pg_sys::BackendType::B_BACKEND }
}

fn is_ending() -> bool {
    // SAFETY: a plain variable that a signal handler sets.
    unsafe { (&raw const pg_sys::ShutdownRequestPending).read_volatile() != 0 }
}

/// The advisory lock of a point: of no database, so none of the users'.
fn tag(point: Point) -> pg_sys::LOCKTAG {
    /// Users' advisory locks are of the classes 1 and 2.
    const CLASS: u16 = 0x6d6f;
    pg_sys::LOCKTAG {
        locktag_field1: 0,
        locktag_field2: 0,
        locktag_field3: point as u32,
        locktag_field4: CLASS,
        locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
        locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
    }
}

fn named(name: &str) -> Point {
    if shared_memory::engine().is_none() {
        crate::errors::not_preloaded();
    }
    match Point::ALL.iter().find(|point| point.name() == name) {
        Some(point) => *point,
        None => refuse(&format!("there is no pause point \"{name}\"")),
    }
}

fn refuse(message: &str) -> ! {
    ereport!(
        ERROR,
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message.to_owned()
    );
}

/// Whether a row whose maker has the id is one of this transaction's.
#[pg_extern]
fn is_own(id: &str) -> bool {
    let id = id.parse().expect("an id");
    mot_engine::Clock::is_current(&crate::transaction::clock::PgClock, mot_engine::Xid(id))
}

/// Stops the next arrivals at a point until this session resumes it.
#[pg_extern(volatile)]
fn pause_at(point: &str, times: default!(i32, 1)) {
    let point = named(point);
    if point.raise() == Raise::AsResult {
        refuse("nobody stops at this point");
    }
    let tag = tag(point);
    // SAFETY: an advisory lock of this session, which may have it several times.
    unsafe { pg_sys::LockAcquire(&tag, pg_sys::ExclusiveLock as i32, true, false) };
    HELD[point as usize].fetch_add(1, Ordering::Relaxed);
    armed(point)
        .pauses
        .fetch_add(times.max(0) as u32, Ordering::AcqRel);
}

/// Releases the processes at a point, and disarms it.
#[pg_extern(volatile)]
fn resume(point: &str) {
    let point = named(point);
    let armed = armed(point);
    armed.pauses.store(0, Ordering::Release);
    armed.failures.store(0, Ordering::Release);
    armed.resumes.fetch_add(1, Ordering::AcqRel);
    let tag = tag(point);
    for _ in 0..HELD[point as usize].swap(0, Ordering::Relaxed) {
        // SAFETY: this session took the lock as often.
        unsafe { pg_sys::LockRelease(&tag, pg_sys::ExclusiveLock as i32, true) };
    }
}

/// Raises an error at the next arrivals at a point, or has the operation there refused.
#[pg_extern(volatile)]
fn fail_at(point: &str, times: default!(i32, 1)) {
    let point = named(point);
    if point.raise() == Raise::Forbidden {
        refuse("nothing can fail at this point");
    }
    armed(point)
        .failures
        .fetch_add(times.max(0) as u32, Ordering::AcqRel);
}

/// How many processes stand at a point.
#[pg_extern(volatile)]
fn paused(point: &str) -> i32 {
    armed(named(point)).waiting.load(Ordering::Acquire) as i32
}

/// Returns when a process is stopped at the point: for those that isolationtester does not see, the
/// workers.
#[pg_extern(volatile)]
fn wait_until_paused(point: &str) {
    let armed = armed(named(point));
    while armed.waiting.load(Ordering::Acquire) == 0 {
        interrupts::sleep_ms(POLL_MS);
        interrupts::check_for_interrupts();
    }
}

/// All points.
#[pg_extern(volatile)]
fn pause_points() -> TableIterator<
    'static,
    (
        name!(point, &'static str),
        name!(may_fail, bool),
        name!(waiting, i32),
    ),
> {
    TableIterator::new(Point::ALL.iter().map(|point| {
        (
            point.name(),
            point.raise() != Raise::Forbidden,
            paused(point.name()),
        )
    }))
}

/// Plants a stale place for a process in what this session knows of others.
#[pg_extern(volatile)]
fn plant_ended_process(pid: i32) {
    pg::owner::plant_ended(pid);
}

/// Leaves what an older transaction would have published of its snapshot.
#[pg_extern(volatile)]
fn plant_told_snapshot() {
    crate::transaction::horizon::plant_stale();
}

/// Called by the reclaimer after each round.
pub fn flush_if_asked(session: &Session) {
    let flushes = &shared_memory::control().pauses.flushes;
    let asked = flushes.asked.load(Ordering::Acquire);
    if asked != flushes.done.load(Ordering::Relaxed) {
        session.memory().flush();
        flushes.done.store(asked, Ordering::Release);
    }
}

/// Bytes of all row versions, exact on an idle server: processes count in batches, so this one and
/// the reclaimer, which has had a round since, hand in what they counted. Those that have ended
/// did.
#[pg_extern(volatile)]
fn row_bytes_exactly() -> i64 {
    let memory = session::session().memory();
    let flushes = &shared_memory::control().pauses.flushes;
    let mine = flushes.asked.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
    while (flushes.done.load(Ordering::Acquire).wrapping_sub(mine) as i32) < 0 {
        interrupts::sleep_ms(POLL_MS);
        interrupts::check_for_interrupts();
    }
    memory.flush();
    memory.memory().purpose_bytes(Purpose::Rows)
}

/// Asks for a checkpoint and does not wait for it, as CHECKPOINT would.
#[pg_extern(volatile)]
fn request_checkpoint() {
    pg::request_checkpoint();
}

/// A statement that runs when this session's transaction is about to end well.
struct AtEnd(Mutex<Option<String>>);

/// Ahead of our own callback, as that of a library which registers it after us.
static AHEAD: AtEnd = AtEnd(Mutex::new(None));
/// Behind our own, as that of a library which was preloaded before us.
static BEHIND: AtEnd = AtEnd(Mutex::new(None));
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

impl AtEnd {
    fn statement(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(|lock| lock.into_inner())
    }

    fn run(&self, event: pg_sys::XactEvent::Type) {
        let is_end = event == pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT
            || event == pg_sys::XactEvent::XACT_EVENT_PRE_PREPARE;
        let Some(statement) = is_end.then(|| self.statement().take()).flatten() else {
            return;
        };
        // SAFETY: inside a transaction, which has no statement any more that would have a snapshot;
        // an abort takes it back.
        unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot()) };
        if let Err(error) = Spi::run(&statement) {
            refuse(&error.to_string());
        }
        // SAFETY: pushed above.
        unsafe { pg_sys::PopActiveSnapshot() };
    }
}

/// Runs a statement when this session's next transaction, or this one, is about to commit or to be
/// prepared.
#[pg_extern(volatile)]
fn run_at_pre_commit(statement: String) {
    if !IS_REGISTERED.swap(true, Ordering::Relaxed) {
        // SAFETY: registered once per process; the library is never unloaded.
        unsafe { pg_sys::RegisterXactCallback(Some(ahead), std::ptr::null_mut()) };
    }
    *AHEAD.statement() = Some(statement);
}

/// As `run_at_pre_commit`, when our own callback is through.
#[pg_extern(volatile)]
fn run_behind_pre_commit(statement: String) {
    *BEHIND.statement() = Some(statement);
}

/// Called right before our own callback is registered: callbacks run last in, first out.
pub fn register_behind() {
    // SAFETY: in the postmaster, once; the library is never unloaded.
    unsafe { pg_sys::RegisterXactCallback(Some(behind), std::ptr::null_mut()) };
}

#[pg_guard]
unsafe extern "C-unwind" fn ahead(event: pg_sys::XactEvent::Type, _arg: *mut c_void) {
    AHEAD.run(event);
}

#[pg_guard]
unsafe extern "C-unwind" fn behind(event: pg_sys::XactEvent::Type, _arg: *mut c_void) {
    BEHIND.run(event);
}
