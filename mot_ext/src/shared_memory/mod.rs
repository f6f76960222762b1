//! What all processes of the server share: the engine's arena, and a block of our own, the *control
//! block*.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | the mappings, and the control block ([`Control`]) |
//! | `settings`, `test_switch` | settings; the setting that plants bugs for tests |
//! | `server_phase` | whether the server recovers, or stops |
//! | `snapshots`, `outcome_bound`, `sleeper`, `pause_points` | parts of it, for rooms above |
//!
//! May be called by every room but `pg`.
//!
//! - Both are mapped once, in the postmaster: the control block while it preloads libraries, the
//!   arena in the first `shmem_startup_hook`. Every child inherits them at the same address.
//! - Both are formatted in `shmem_startup_hook`, which runs at server start and again after a crash
//!   of a backend, when no child is alive. Nothing from before survives: tables are loaded again. A
//!   warm restart (`recovery/warm`) is the one exception: it takes over the arena of the server
//!   before as it is.
//! - If the library is not preloaded, nothing is mapped, `engine()` answers `None`, and using a
//!   table raises 55000.
mod outcome_bound;
#[cfg(debug_assertions)]
mod pause_points;
pub mod server_phase;
pub mod settings;
mod sleeper;
mod snapshots;
pub mod test_switch;

pub use outcome_bound::OutcomeBound;
#[cfg(debug_assertions)]
pub use pause_points::{Armed, POINTS_MAX, Pauses};
pub use sleeper::Sleeper;
pub use snapshots::PublishedSnapshot;

use mot_engine::checkpoint::CheckpointProgress;
use mot_engine::memory::{ArenaOptions, EPOCH_PARTICIPANTS_MAX, HugePages, Memory, Region};
use mot_engine::{Engine, EngineError, TakenOver};
use pgrx::prelude::*;
use settings::{HUGE_PAGES, MAX_MEMORY_MIB};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// Longest text kept of a failure; longer ones are cut.
const FAILURE_BYTES_MAX: usize = 1024;
/// Processes that can publish their snapshots.
const PUBLISHED_SNAPSHOTS: usize = EPOCH_PARTICIPANTS_MAX;

/// The control block: what the workers, recovery and the backends share. Plain atomics, zero at
/// start.
#[repr(C)]
pub struct Control {
    /// Backends that have joined the engine, WAL senders only while their transaction has written;
    /// the last checkpoint waits until it is 0.
    pub participants: AtomicU32,
    /// Set at shutdown: no backend may join any more, and no WAL sender that has may write.
    pub closing: AtomicBool,
    /// The checkpoint worker holds PostgreSQL's checkpoint gates.
    pub gate_is_held: AtomicBool,
    /// The checkpoint worker has held its slot, or tried in vain, since there was a checkpoint to
    /// hold it for.
    pub slot_is_settled: AtomicBool,
    /// rm_startup ran: this start replays WAL.
    pub redo_began: AtomicBool,
    /// The process that it runs in; 0 before.
    pub replays_in: AtomicU32,
    /// A process loads the tables, or has: the startup process or the checkpoint worker, the one
    /// that claimed it first (`recovery::load`).
    pub load_is_claimed: AtomicBool,
    /// Replay is over, and what has not committed is being taken out of the tables, or was.
    pub redo_ends: AtomicBool,
    /// rm_cleanup ran: everything is replayed, though recovery may not be over for PostgreSQL.
    pub redo_ended: AtomicBool,
    /// The checkpoint on disk is not marked final: the process that loads it reads the WAL between
    /// it and PostgreSQL's redo position, or fails.
    pub gap_is_read: AtomicBool,
    /// Sessions that may be copying checkpoint files (`checkpoint::base_backups`).
    pub copiers: AtomicU32,
    /// Sessions that are in the transaction in which they begin a backup
    /// (`checkpoint::base_backups`).
    pub beginners: AtomicU32,
    /// On a standby: our checkpoint is not behind PostgreSQL's, and stays so
    /// (`checkpoint::backup_start`).
    pub base_backups_are_whole: AtomicBool,
    /// The tables could not be loaded because their checkpoint is that of a cluster with another
    /// system identifier.
    pub is_of_another_cluster: AtomicBool,
    /// Redo position of the newest complete checkpoint.
    pub covered: AtomicU64,
    /// Generation of the last checkpoint, once that is written; 0 before.
    pub final_generation: AtomicU64,
    /// The reclaimer, while it sleeps for long.
    pub reclaimer_sleeps: Sleeper,
    /// The server was shut down before this start, and no recovery is asked for: unlogged tables
    /// have their rows.
    pub follows_shutdown: AtomicBool,
    /// The tables are those of the server before this one: there is nothing to load.
    pub taken_over: AtomicBool,
    pub checkpoint: CheckpointStats,
    pub recovery: RecoveryStats,
    /// Backends' only snapshots, by the backend's place among PostgreSQL's processes.
    pub published_snapshots: [PublishedSnapshot; PUBLISHED_SNAPSHOTS],
    /// What the commit log must be kept for.
    pub outcome_bound: OutcomeBound,
    /// Where tests stop processes.
    #[cfg(debug_assertions)]
    pub pauses: Pauses,
    failure_bytes: AtomicU32,
    failure: [AtomicU8; FAILURE_BYTES_MAX],
}

/// Figures of the checkpoint worker; it alone writes them.
#[repr(C)]
pub struct CheckpointStats {
    pub generation: AtomicU64,
    pub written: AtomicU64,
    pub failed: AtomicU64,
    pub rows: AtomicU64,
    /// Written by the newest complete one, and taken over by it from older ones.
    pub files: AtomicU64,
    pub bytes: AtomicU64,
    pub files_reused: AtomicU64,
    pub bytes_reused: AtomicU64,
    pub write_ms: AtomicU64,
    /// PostgreSQL's timestamp (microseconds since 2000) of the newest complete one; 0 = none since
    /// server start.
    pub finished_at: AtomicU64,
    pub worker_pid: AtomicU32,
    /// When the one that is being written began, as PostgreSQL's timestamp, and how far it is.
    pub started_at: AtomicU64,
    pub progress: CheckpointProgress,
}

/// Figures of the load and of replay.
#[repr(C)]
pub struct RecoveryStats {
    pub load_ms: AtomicU64,
    /// Records of ours read from the gap before PostgreSQL's redo position.
    pub gap_records: AtomicU64,
    pub records_replayed: AtomicU64,
    pub bytes_replayed: AtomicU64,
    pub replayed_lsn: AtomicU64,
    /// Microseconds in which replay was at work.
    pub replay_us: AtomicU64,
    /// Milliseconds (summed) that replay waited because the arena was full.
    pub stalled_ms: AtomicU64,
    /// Replay waits now.
    pub waits_for_memory: AtomicBool,
}

impl Control {
    /// Why the load failed.
    pub fn failure(&self) -> String {
        let bytes = (self.failure_bytes.load(Ordering::Acquire) as usize).min(FAILURE_BYTES_MAX);
        let text: Vec<u8> = self.failure[..bytes]
            .iter()
            .map(|b| b.load(Ordering::Relaxed))
            .collect();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Says why the load failed; before the engine's state says that it did.
    pub fn set_failure(&self, text: &str) {
        let bytes = text.len().min(FAILURE_BYTES_MAX);
        for (to, from) in self.failure.iter().zip(&text.as_bytes()[..bytes]) {
            to.store(*from, Ordering::Relaxed);
        }
        self.failure_bytes.store(bytes as u32, Ordering::Release);
    }
}

/// What the first start-up of the server's memory gets from the one before.
pub struct Opened {
    pub region: Region,
    /// The engine in it, if there is one from before.
    pub engine: Option<(Engine, TakenOver)>,
}

/// Opens the memory of the server before, if there may be any; `None`: do without.
pub type Open = fn(bytes: usize, huge_pages: HugePages) -> Option<Opened>;

/// What the memory needs to know of the server before this one.
#[derive(Clone, Copy)]
pub struct Before {
    pub open: Open,
    /// See [`Control::follows_shutdown`].
    pub follows_shutdown: fn() -> bool,
}

struct Shared {
    before: Before,
    region: Option<Region>,
    control: *mut Control,
    engine: Option<Engine>,
}

struct SharedCell(UnsafeCell<Option<Shared>>);

// SAFETY: written only in the postmaster (or the single process), on one thread, before any child
// that reads it is forked.
unsafe impl Sync for SharedCell {}

static SHARED: SharedCell = SharedCell(UnsafeCell::new(None));

fn shared() -> Option<&'static Shared> {
    // SAFETY: see `SharedCell`.
    unsafe { (*SHARED.0.get()).as_ref() }
}

/// The engine, if the library is preloaded.
pub fn engine() -> Option<Engine> {
    shared()?.engine
}

/// The control block. Only code that runs when the library is preloaded may ask for it.
pub fn control() -> &'static Control {
    let shared = shared().expect("the library is preloaded");
    // SAFETY: mapped for the life of the server; all fields are atomics, valid for any bytes that
    // `format` leaves.
    unsafe { &*shared.control }
}

/// The region, once it is mapped.
pub fn region() -> Option<&'static Region> {
    shared()?.region.as_ref()
}

/// Maps the control block while the server preloads libraries; does nothing otherwise. `before`
/// is asked first for the arena.
pub fn init(before: Before) {
    // SAFETY: a plain flag that the postmaster sets before it calls any _PG_init.
    if !unsafe { pg_sys::process_shared_preload_libraries_in_progress } {
        return;
    }
    // SAFETY: an anonymous shared mapping of our own; checked below.
    let control = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<Control>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if control == libc::MAP_FAILED {
        no_region(&std::io::Error::last_os_error().to_string());
    }
    // SAFETY: one thread, before any fork; hooks are plain variables of this process, and the
    // previous one is kept.
    unsafe {
        *SHARED.0.get() = Some(Shared {
            before,
            region: None,
            control: control.cast(),
            engine: None,
        });
        PREVIOUS_HOOK = pg_sys::shmem_startup_hook;
        pg_sys::shmem_startup_hook = Some(on_shmem_startup);
    }
}

static mut PREVIOUS_HOOK: pg_sys::shmem_startup_hook_type = None;

#[pg_guard]
unsafe extern "C-unwind" fn on_shmem_startup() {
    // SAFETY: set once in `init`, on this thread; the hook is PostgreSQL's or another library's,
    // called as PostgreSQL would.
    #[allow(ffi_unwind_calls)]
    unsafe {
        if let Some(previous) = PREVIOUS_HOOK {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
    }
    format();
}

/// Maps the region: the first time, before there are children. With the engine of the server
/// before, if it is taken over.
fn open_region(open: Open) -> (Region, Option<(Engine, TakenOver)>) {
    let bytes = (MAX_MEMORY_MIB.get() as usize) << 20;
    let huge_pages = match HUGE_PAGES.get() {
        settings::HugePages::Off => HugePages::Off,
        settings::HugePages::Try => HugePages::Try,
        settings::HugePages::On => HugePages::On,
    };
    if let Some(opened) = open(bytes, huge_pages) {
        return (opened.region, opened.engine);
    }
    match Region::create(bytes, huge_pages) {
        Ok(region) => (region, None),
        Err(error) => no_region(&error.to_string()),
    }
}

/// Empties the control block and the arena, unless the arena is taken over. No other process of
/// this server is alive.
fn format() {
    // SAFETY: see `SharedCell`; no child is alive, so no process uses what is reset.
    let Some(shared) = (unsafe { (*SHARED.0.get()).as_mut() }) else {
        return;
    };
    shared.engine = None;
    // SAFETY: the control block is shared memory of its size, which no process uses; zeros are a
    // value of it.
    let control = unsafe {
        std::ptr::write_bytes(shared.control, 0, 1);
        &*shared.control
    };
    let follows_shutdown = (shared.before.follows_shutdown)();
    control
        .follows_shutdown
        .store(follows_shutdown, Ordering::SeqCst);
    let is_first = shared.region.is_none();
    if is_first {
        let start = Instant::now();
        let (region, taken) = open_region(shared.before.open);
        shared.region = Some(region);
        if let Some((engine, _)) = taken {
            control.taken_over.store(true, Ordering::SeqCst);
            let elapsed = start.elapsed().as_millis() as u64;
            control.recovery.load_ms.store(elapsed, Ordering::Relaxed);
            shared.engine = Some(engine);
            return;
        }
    }
    let Some(region) = &shared.region else {
        return;
    };
    // A fresh region reads as zero. To write that over reserved huge pages would take long, and put
    // them all on this process's node.
    if (!is_first || region.is_kept())
        // SAFETY: no child is alive, so no process uses the region.
        && let Err(error) = unsafe { region.reset() }
    {
        no_region(&error.to_string());
    }
    // SAFETY: no child is alive, so no process uses the region.
    match unsafe { Memory::format(region, &ArenaOptions::default()) }
        .map_err(EngineError::from)
        .and_then(Engine::format)
    {
        Ok(engine) => shared.engine = Some(engine),
        Err(error) => no_region(&error.to_string()),
    }
}

/// Stops the start of the server: no memory for the arena.
fn no_region(why: &str) -> ! {
    let message = format!("memory for memory-optimized tables could not be had: {why}");
    let code = PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY;
    pg_sys::panic::ErrorReport::new(code, message, pgrx::function_name!())
        .set_hint("Lower mot.max_memory, set mot.huge_pages = off, or take mot out of shared_preload_libraries \
            if it has no tables.")
        .report(PgLogLevel::FATAL);
    unreachable!("a report of level FATAL returned")
}
