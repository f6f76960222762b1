//! Warm restart: the memory of one run of the server becomes that of the next one.
//!
//! With `mot.warm_restart` the arena is in a file of /dev/shm (`mot_engine::memory::kept`: its
//! lock, its fixed address, its mark). Everything here runs in the postmaster, on one thread.
//!
//! - **At the end** (`on_end`, an on_proc_exit callback: once, after the last child, the shutdown
//!   checkpoint and every on_shmem_exit callback, before the lock file of the data directory goes).
//!   The memory is marked if all of this holds: exit code 0; the checkpoint worker wrote its last
//!   checkpoint, and no process wrote after it; the engine is quiescent
//!   (`Engine::not_quiescent_because`); pg_control says "shut down". The mark is a proof
//!   ([`proof`]): what library, which pg_control (contents, inode and change time), which manifest.
//!   Otherwise the file is removed, and the log says why. A start that took the memory over and
//!   failed before it had a child that could use it (a port in use) marks it again as it found it.
//! - **At the start** (`open`, from the first shmem_startup, before there are children). Opening
//!   takes the mark off. The memory is taken over only if the proof made now equals the one in the
//!   mark, no recovery is asked for, and the engine is quiescent. Otherwise it is emptied, the
//!   tables are loaded as ever, and the log says why.
//! - **In between** nothing differs, but that memory is asked for in advance: a full file system is
//!   a full arena. A crash of a backend empties the memory as it does without this. An immediate
//!   shutdown, kill -9 or a crash of the machine leave no mark.
//!
//! Why this is enough: a server that is at rest holds exactly what it holds between two statements.
//! All that it knows of transactions is ids and hints that are true for ever; the rest is asked of
//! PostgreSQL, which has the same ids and commit log after a clean restart. (Prepared transactions
//! too: they are running for PostgreSQL again before any process may ask.) The inode and change
//! time of pg_control tie the memory to this very data directory in the state of that shutdown:
//! PostgreSQL changes the file at each start, with or without mot, and a copy, a restored backup,
//! pg_rewind, pg_resetwal or pg_checksums leave another time.
//!
//! The postmaster must not fail for this: whatever goes wrong here, the memory is anonymous as
//! without the setting.
mod proof;

pub use proof::follows_shutdown;

use crate::errors;
use crate::pg::local::ProcessLocal;
use crate::shared_memory::settings::{self, HUGE_PAGES};
use crate::shared_memory::{self, Opened};
use mot_engine::memory::{ArenaOptions, Found, HugePages, KeptPlace, Mark, Region, remove_kept};
use mot_engine::{Engine, State, TakenOver};
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

const DIRECTORY: &str = "/dev/shm";
/// Where the region is mapped: in the middle of what x86-64 and 48-bit ARM give a process, far from
/// where kernels put programs, libraries, heaps and stacks. The largest arena (16 TiB) ends at
/// 0x3000_0000_0000.
const BASE: usize = 0x2000_0000_0000;

struct WarmState {
    /// The library as it was loaded.
    library: Cell<Option<proof::Library>>,
    /// The postmaster, which alone may mark the memory.
    owner: Cell<u32>,
}

static STATE: ProcessLocal<WarmState> = ProcessLocal(WarmState {
    library: Cell::new(None),
    owner: Cell::new(0),
});

/// Opens the region in its file, and takes over what is in it if that may be done; `None`: do
/// without.
pub fn open(bytes: usize, huge_pages: HugePages) -> Option<Opened> {
    if !is_postmaster() {
        return None;
    }
    let path = match path() {
        Ok(path) => path,
        Err(error) => {
            log_without(&error.to_string());
            return None;
        }
    };
    if !settings::WARM_RESTART.get() {
        remove_leftover(&path);
        return None;
    }
    if HUGE_PAGES.get() == settings::HugePages::On {
        log_without("mot.huge_pages = on, and files of memory have no reserved huge pages");
        remove_leftover(&path);
        return None;
    }
    let library = match proof::Library::find() {
        Ok(library) => library,
        Err(error) => {
            log_without(&format!("the file of the library cannot be read: {error}"));
            remove_leftover(&path);
            return None;
        }
    };
    let place = KeptPlace {
        path: &path,
        base: BASE,
    };
    let (region, found) = match Region::open_kept(place, bytes, huge_pages) {
        Ok(opened) => opened,
        Err(error) => {
            log_without(&error.to_string());
            return None;
        }
    };
    STATE.library.set(Some(library));
    STATE.owner.set(std::process::id());
    // SAFETY: registered once, in the postmaster, which has few such callbacks; the callback takes
    // no argument.
    unsafe { pg_sys::on_proc_exit(Some(on_end), pg_sys::Datum::from(0)) };
    let taken = match found {
        Found::Nothing(why) => Err(why.to_string()),
        Found::Marked(mark) => take_over(&region, &library, &mark),
    };
    let engine = match taken {
        Ok(engine) => Some(engine),
        Err(why) => {
            ereport!(
                PgLogLevel::LOG,
                PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
                format!("mot cannot restart warm and loads its tables: {why}")
            );
            None
        }
    };
    Some(Opened { region, engine })
}

fn take_over(
    region: &Region,
    library: &proof::Library,
    mark: &Mark,
) -> Result<(Engine, TakenOver), String> {
    proof::no_recovery_is_asked_for()?;
    let now = proof::make(library)?;
    proof::compare(mark, &now)?;
    // SAFETY: the region lives as long as the process; the proof says that this library wrote it.
    unsafe { Engine::take_over(region, &ArenaOptions::default()) }
        .map_err(|error| error.to_string())
}

/// The end of the postmaster: marks the memory, or removes its file.
#[pg_guard]
unsafe extern "C-unwind" fn on_end(code: c_int, _arg: pg_sys::Datum) {
    if STATE.owner.get() != std::process::id() {
        return;
    }
    let Some(region) = shared_memory::region() else {
        return;
    };
    let marked = if code == 0 || nothing_began() {
        prove().and_then(|mark| region.mark(&mark).map_err(|error| error.to_string()))
    } else {
        Err("it ends with an error".into())
    };
    let Err(why) = marked else {
        return;
    };
    let removed = region.forget();
    let removed = removed.map_or_else(
        |error| format!(" (its file stays: {error})"),
        |()| "".into(),
    );
    ereport!(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("mot keeps no memory for a warm restart: {why}{removed}")
    );
}

/// Whether the memory may be taken over, and the proof for it. Atomics and files only.
fn prove() -> Result<Mark, String> {
    let engine = shared_memory::engine().ok_or("there is none")?;
    let control = shared_memory::control();
    let last = control.final_generation.load(Ordering::SeqCst);
    let closed = last != 0 && control.closing.load(Ordering::SeqCst);
    if nothing_began() && control.taken_over.load(Ordering::SeqCst) {
        // Exactly as it was found, but for the state.
        engine.set_state(State::Ready);
    } else if !closed {
        return Err("no last checkpoint was written".into());
    }
    if control.participants.load(Ordering::SeqCst) != 0 {
        return Err("sessions did not leave it".into());
    }
    if let Some(reason) = engine.not_quiescent_because() {
        return Err(reason.to_string());
    }
    let library = STATE.library.get().ok_or("its library is not known")?;
    proof::no_recovery_is_asked_for()?;
    let mark = proof::make(&library)?;
    if closed && proof::generation(&mark) != last {
        return Err("the last checkpoint is not the newest".into());
    }
    Ok(mark)
}

/// The start failed before the postmaster had a child that could use the memory (a port in use,
/// say).
fn nothing_began() -> bool {
    // SAFETY: a plain variable, set just before the startup process is forked.
    unsafe { pg_sys::PgStartTime == 0 }
}

fn is_postmaster() -> bool {
    // SAFETY: plain flags set once per process.
    unsafe { pg_sys::IsPostmasterEnvironment && !pg_sys::IsUnderPostmaster }
}

/// The file of this data directory and user. The name is the same in every version, so that
/// leftovers are found.
fn path() -> std::io::Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let directory = std::fs::canonicalize(".")?;
    // SAFETY: no preconditions.
    let user = unsafe { libc::geteuid() };
    let name = proof::fnv1a(directory.as_os_str().as_bytes());
    Ok(PathBuf::from(DIRECTORY).join(format!("mot.{user}.{name:016x}")))
}

fn remove_leftover(path: &std::path::Path) {
    match remove_kept(path) {
        Ok(false) => {}
        Ok(true) => ereport!(
            PgLogLevel::LOG,
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!(
                "mot removed \"{}\", the memory of an earlier run",
                path.display()
            )
        ),
        Err(error) => errors::log_message(
            PgLogLevel::LOG,
            PgSqlErrorCode::ERRCODE_IO_ERROR,
            format!("mot leaves \"{}\" alone: {error}", path.display()),
            "If it is the memory of an earlier run of this server, remove it: it takes memory.",
        ),
    }
}

fn log_without(why: &str) {
    errors::log_message(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("mot.warm_restart has no effect: {why}"),
        "The server goes on without; the next start loads the tables from disk.",
    );
}
