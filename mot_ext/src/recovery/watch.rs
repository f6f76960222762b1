//! The process that waits for a load: shows how far it is, and ends it when the server shuts down.
//!
//! The load runs in threads of this process that call nothing of PostgreSQL. Meanwhile the main
//! thread handles interrupts. The startup process may be ended from within them (`proc_exit`), so a
//! callback stops the threads first: nothing of the process goes away under them.
use crate::pg::{self, interrupts, title};
use crate::shared_memory::server_phase::server_is_stopping;
use mot_engine::checkpoint::Manifest;
use mot_engine::disk::{DirectoryDisk, Disk};
use mot_engine::engine::Progress;
use mot_engine::recovery::Loaded;
use mot_engine::threads::SignalsBlocked;
use mot_engine::{Engine, EngineError};
use pgrx::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest pause between two checks of the load, in milliseconds; the first ones are shorter, for
/// small databases.
const LOOK_MS_MAX: i64 = 100;
/// How often the server log shows the progress.
const REPORT: Duration = Duration::from_secs(10);

type Loading = JoinHandle<Result<Loaded, EngineError>>;

/// The load that runs in this process.
static LOADING: Mutex<Option<Loading>> = Mutex::new(None);
/// The callback is registered.
static STOPS_AT_EXIT: AtomicBool = AtomicBool::new(false);

fn loading() -> MutexGuard<'static, Option<Loading>> {
    LOADING.lock().unwrap_or_else(|lock| lock.into_inner())
}

/// One of the engine's functions that load a checkpoint.
pub type Load = fn(Engine, &dyn Disk, &Manifest, usize) -> Result<Loaded, EngineError>;

/// Loads a checkpoint while this thread watches. May raise or not return, as interrupts will.
pub fn load(
    load: Load,
    engine: Engine,
    disk: DirectoryDisk,
    manifest: Manifest,
    threads: usize,
) -> Result<Loaded, EngineError> {
    let progress = engine.progress();
    progress.load_is_unwanted.store(0, Ordering::Relaxed);
    if !STOPS_AT_EXIT.swap(true, Ordering::Relaxed) {
        // SAFETY: registered once per process; the callback takes no argument.
        unsafe { pg_sys::before_shmem_exit(Some(stop), pg_sys::Datum::from(0)) };
    }
    let blocked = SignalsBlocked::new();
    let spawned = std::thread::Builder::new()
        .name("mot load".into())
        .spawn(move || load(engine, &disk, &manifest, threads));
    drop(blocked);
    *loading() = Some(spawned.map_err(|_| EngineError::OutOfProcessMemory)?);

    let title_before = title::current();
    let start = Instant::now();
    let mut reported = start;
    let mut look_ms = 1;
    while loading().as_ref().is_some_and(|load| !load.is_finished()) {
        interrupts::sleep_ms(look_ms);
        look_ms = (look_ms * 2).min(LOOK_MS_MAX);
        interrupts::handle_startup_interrupts();
        // A worker that alone was asked to end loads first: the next one would find the tables half
        // loaded.
        if pg::is_under_postmaster() && crate::pg::worker::shutdown_asked() && server_is_stopping()
        {
            progress.load_is_unwanted.store(1, Ordering::Relaxed);
        }
        if look_ms == LOOK_MS_MAX {
            title::show(&describe(progress));
        }
        if reported.elapsed() >= REPORT {
            reported = Instant::now();
            ereport!(
                PgLogLevel::LOG,
                PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
                format!(
                    "mot load in progress: {}; elapsed={:.0} s",
                    describe(progress),
                    start.elapsed().as_secs_f64()
                )
            );
        }
    }
    title::show(&title_before);
    let load = loading().take().expect("nobody else takes it");
    match load.join() {
        Ok(loaded) => loaded,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn describe(progress: &Progress) -> String {
    let percent = |done: &AtomicU64, total: &AtomicU64| {
        let total = total.load(Ordering::Relaxed);
        let done = done.load(Ordering::Relaxed).min(total);
        // Of nothing, all is done.
        (done * 100).checked_div(total).unwrap_or(100)
    };
    format!(
        "loading rows {} %, indexes {} %",
        percent(&progress.bytes_loaded, &progress.bytes_total),
        percent(&progress.index_entries_built, &progress.index_entries_total)
    )
}

/// At process exit: the threads end before the process does.
#[pg_guard]
unsafe extern "C-unwind" fn stop(_code: std::ffi::c_int, _arg: pg_sys::Datum) {
    let Some(load) = loading().take() else {
        return;
    };
    if let Some(engine) = crate::shared_memory::engine() {
        engine
            .progress()
            .load_is_unwanted
            .store(1, Ordering::Relaxed);
    }
    // Its result is not used.
    drop(load.join());
}
