//! Every setting of the extension. A static's name ends with the unit of its value; functions below
//! give some in the form in which code uses them. Only `mot.test_switch` is elsewhere
//! (`test_switch.rs`).
//!
//! Settings with the postmaster context can only be defined while the server reads
//! `shared_preload_libraries`; without it they keep their defaults, and nothing reads them because
//! nothing is mapped.
//!
//! # To add a setting
//!
//! 1. Choose its context. `Sighup`, unless it is read once at the start, as sizes of memory and
//!    threads that stay are (`Postmaster`). What concerns one session is `Userset`, or `Suset` if a
//!    user could harm others by it.
//! 2. Here: a static with its default, and its definition in `define_for_...`. Only those of
//!    [`define_for_sessions`] exist without `shared_preload_libraries`.
//! 3. Read it in the extension. The engine gets a setting's value as an argument.
//! 4. `docs/settings.md`: a row, for which the tidy test asks. README.md names only what nearly
//!    every server sets.
//! 5. `expected/settings_views.out`, which lists all settings with context and unit.
//! 6. A test of what it changes, in `sql/`: by SET, or by ALTER SYSTEM and `pg_reload_conf`
//!    (`sql/reclaim_burst.sql`). One of the context `Postmaster` needs a cluster of its own, made
//!    with `MOT_CLUSTER_CONF` (`.ci/warm`).
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};
use pgrx::pg_sys;
use std::ffi::CString;

/// Whether the arena asks for huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PostgresGucEnum)]
pub enum HugePages {
    #[name = c"off"]
    Off,
    #[name = c"try"]
    Try,
    #[name = c"on"]
    On,
}

/// When a standby's startup process hands records over to replay threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PostgresGucEnum)]
pub enum ReplayHandOver {
    #[name = c"behind"]
    Behind,
    #[name = c"always"]
    Always,
}

/// Which statements run compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PostgresGucEnum)]
pub enum CompiledStatements {
    #[name = c"off"]
    Off,
    #[name = c"on"]
    On,
    #[name = c"always"]
    Always,
}

/// Smallest arena that holds the engine's own structures and a few tables, in MiB.
const MAX_MEMORY_MIB_MIN: i32 = 64;
/// Largest arena: 16 TiB, in MiB; the engine addresses rows with 42-bit row ids and 48-bit
/// pointers.
const MAX_MEMORY_MIB_MAX: i32 = 16 * 1024 * 1024;
/// A quarter of the default arena.
const TEMP_MEMORY_KIB_DEFAULT: i32 = 1024 * 1024;
/// No limit but the arena's.
const TEMP_MEMORY_UNLIMITED: i32 = -1;
/// More threads than this never helped a disk or a load.
const THREADS_MAX: i32 = 256;
/// As many replay threads as there are cores, up to a limit: each decodes the whole log (a tenth of
/// its work), and the server's own part of replay, which one process does, is soon what takes
/// longest.
const REPLAY_WORKERS_AUTO: i32 = -1;
const REPLAY_WORKERS_AUTO_MAX: usize = 4;
/// One day, in milliseconds: no waiting setting makes sense beyond it.
const DAY_MS: i32 = 24 * 3600 * 1000;

pub static MAX_MEMORY_MIB: GucSetting<i32> = GucSetting::<i32>::new(4096);
pub static TEMP_MEMORY_KIB: GucSetting<i32> = GucSetting::<i32>::new(TEMP_MEMORY_KIB_DEFAULT);
pub static HUGE_PAGES: GucSetting<HugePages> = GucSetting::<HugePages>::new(HugePages::Try);
pub static WARM_RESTART: GucSetting<bool> = GucSetting::<bool>::new(false);
pub static ADOPT_SYSTEM_IDENTIFIER: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(None);
pub static COMPILED_STATEMENTS: GucSetting<CompiledStatements> =
    GucSetting::<CompiledStatements>::new(CompiledStatements::On);
pub static SHOW_INDEXES_AS_BTREE: GucSetting<bool> = GucSetting::<bool>::new(true);
pub static CHECKPOINT_WORKERS: GucSetting<i32> = GucSetting::<i32>::new(2);
pub static CHECKPOINT_BANDWIDTH_KB: GucSetting<i32> = GucSetting::<i32>::new(0);
pub static CHECKPOINT_RETAIN: GucSetting<i32> = GucSetting::<i32>::new(2);
pub static LOAD_WORKERS: GucSetting<i32> = GucSetting::<i32>::new(0);
pub static REPLAY_WORKERS: GucSetting<i32> = GucSetting::<i32>::new(REPLAY_WORKERS_AUTO);
pub static REPLAY_HAND_OVER: GucSetting<ReplayHandOver> =
    GucSetting::<ReplayHandOver>::new(ReplayHandOver::Behind);
pub static LOAD_TIMEOUT_MS: GucSetting<i32> = GucSetting::<i32>::new(0);
pub static RECLAIM_NAPTIME_MS: GucSetting<i32> = GucSetting::<i32>::new(20);

/// Most bytes that temporary tables of this session may take.
pub fn temp_memory_bytes() -> u64 {
    match TEMP_MEMORY_KIB.get() {
        TEMP_MEMORY_UNLIMITED => u64::MAX,
        kib => kib as u64 * 1024,
    }
}

/// Defines the settings; the first line of `_PG_init`.
pub fn init() {
    define_for_sessions();
    super::test_switch::init();
    // SAFETY: a plain flag that the postmaster sets before it calls any _PG_init.
    if !unsafe { pg_sys::process_shared_preload_libraries_in_progress } {
        return;
    }
    define_for_memory();
    define_for_checkpoints();
    define_for_recovery();
    // SAFETY: called once, after all settings of the prefix are defined, in the postmaster.
    unsafe { pg_sys::MarkGUCPrefixReserved(c"mot".as_ptr()) };
}

/// Settings of sessions. A server without this library in `shared_preload_libraries` has them, too.
fn define_for_sessions() {
    GucRegistry::define_enum_guc(
        c"mot.compiled_statements",
        c"Runs simple statements on memory-optimized tables without the general executor.",
        c"\"on\" compiles a plan when it is used again, \"always\" at first use; \"off\" sends every statement \
            through the general executor, every condition and every aggregate. The result is the same.",
        &COMPILED_STATEMENTS,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"mot.show_indexes_as_btree",
        c"Queries over the catalogs find indexes of memory-optimized tables as btrees.",
        c"Programs look an index's access method up, and know what to do with a btree.",
        &SHOW_INDEXES_AS_BTREE,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"mot.load_timeout",
        c"How long a statement waits for tables that are still being loaded after a start.",
        c"0 waits without limit.",
        &LOAD_TIMEOUT_MS,
        0,
        DAY_MS,
        GucContext::Userset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"mot.temp_memory",
        c"Most memory that temporary memory-optimized tables of a session may take.",
        c"-1 is no limit but mot.max_memory, which counts them, too.",
        &TEMP_MEMORY_KIB,
        TEMP_MEMORY_UNLIMITED,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_KB,
    );
}

/// Settings of the arena, and of the worker that removes dead versions from it.
fn define_for_memory() {
    GucRegistry::define_int_guc(
        c"mot.max_memory",
        c"Most memory that rows and indexes of memory-optimized tables may take.",
        c"Address space is reserved at server start; memory is taken from the system only as tables grow.",
        &MAX_MEMORY_MIB,
        MAX_MEMORY_MIB_MIN,
        MAX_MEMORY_MIB_MAX,
        GucContext::Postmaster,
        GucFlags::UNIT_MB,
    );
    GucRegistry::define_enum_guc(
        c"mot.huge_pages",
        c"Use of huge pages for memory-optimized tables.",
        c"\"try\" falls back to ordinary pages, \"on\" refuses to start without huge pages.",
        &HUGE_PAGES,
        GucContext::Postmaster,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"mot.warm_restart",
        c"Keeps memory-optimized tables in memory while the server restarts.",
        c"After a clean shutdown their memory stays in a file of /dev/shm, and the next start takes it over \
            instead of loading.",
        &WARM_RESTART,
        GucContext::Postmaster,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"mot.reclaim_naptime",
        c"Pause between two rounds of the worker that removes dead row versions.",
        c"It is 25 times as long after a round with nothing to do; a session that leaves 64 rows to the worker \
            ends it. Until the next round writers prune row versions below an older horizon.",
        &RECLAIM_NAPTIME_MS,
        1,
        60_000,
        GucContext::Sighup,
        GucFlags::UNIT_MS,
    );
}

/// Settings of checkpoints.
fn define_for_checkpoints() {
    GucRegistry::define_int_guc(
        c"mot.checkpoint_workers",
        c"Threads that write a checkpoint of memory-optimized tables.",
        c"",
        &CHECKPOINT_WORKERS,
        1,
        THREADS_MAX,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"mot.checkpoint_bandwidth",
        c"Most that a checkpoint of memory-optimized tables writes in a second.",
        c"0 is no limit. A shutdown, or the end of a recovery that has to wait for it, knows no limit. Takes \
            effect with the next checkpoint.",
        &CHECKPOINT_BANDWIDTH_KB,
        0,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::UNIT_KB,
    );
    GucRegistry::define_int_guc(
        c"mot.checkpoint_retain",
        c"Complete checkpoints of memory-optimized tables that stay on disk.",
        c"An older one serves a base backup that began before the newest was complete.",
        &CHECKPOINT_RETAIN,
        1,
        100,
        GucContext::Sighup,
        GucFlags::default(),
    );
}

/// Settings of starts and standbys.
fn define_for_recovery() {
    GucRegistry::define_int_guc(
        c"mot.load_workers",
        c"Threads that load memory-optimized tables at server start.",
        c"0 uses every core.",
        &LOAD_WORKERS,
        0,
        THREADS_MAX,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"mot.replay_workers",
        c"Threads that replay changes of memory-optimized tables, in crash recovery and on a standby.",
        c"-1 uses every core, up to 4; 0 replays in the startup process itself.",
        &REPLAY_WORKERS,
        REPLAY_WORKERS_AUTO,
        mot_engine::engine::REPLAY_WORKERS_MAX as i32,
        GucContext::Postmaster,
        GucFlags::default(),
    );
    GucRegistry::define_enum_guc(
        c"mot.replay_hand_over",
        c"When a standby hands changes over to replay threads.",
        c"\"behind\" does so while more WAL than a little is received and not replayed, \"always\" at once. A \
            reader waits for what is handed over before its snapshot.",
        &REPLAY_HAND_OVER,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"mot.adopt_system_identifier",
        c"System identifier that this server had when it was shut down last.",
        c"For a server that got a new one (pg_createsubscriber): the start takes over its checkpoint of \
            memory-optimized tables, which has the old one.",
        &ADOPT_SYSTEM_IDENTIFIER,
        GucContext::Postmaster,
        GucFlags::default(),
    );
}

/// The identifier that this server had before, if the administrator says so.
pub fn adopted_system_identifier() -> Option<u64> {
    let text = ADOPT_SYSTEM_IDENTIFIER.get()?;
    text.to_str().ok()?.trim().parse().ok()
}

/// What a checkpoint may write in a second, in bytes; 0 is no limit.
pub fn checkpoint_bandwidth() -> u64 {
    CHECKPOINT_BANDWIDTH_KB.get() as u64 * 1024
}

/// Threads a load may use.
pub fn load_threads() -> usize {
    match LOAD_WORKERS.get() {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n as usize,
    }
}

/// Threads that replay; 0 is none beside the startup process. One would only take turns with it on
/// a machine with one core.
pub fn replay_threads() -> usize {
    // SAFETY: a plain flag of this process.
    if !unsafe { pg_sys::IsUnderPostmaster } {
        return 0;
    }
    match REPLAY_WORKERS.get() {
        REPLAY_WORKERS_AUTO => match std::thread::available_parallelism() {
            Ok(cores) if cores.get() > 1 => cores.get().min(REPLAY_WORKERS_AUTO_MAX),
            _ => 0,
        },
        n => n as usize,
    }
}
