//! The executor's hooks: which code runs a statement.
//!
//! - Each hook is a plain frame with nothing to drop: an error of a statement that is not ours
//!   jumps over it, as it would without this library. What is ours runs guarded
//!   ([`crate::pg::guard`]).
//! - Kept plan states ([`super::tree`]) are core's own: core runs and finishes them, only Start and
//!   End are ours.
//! - A compiled statement has no tree of plan states. So no hook that might read one may be
//!   between ours and core: with a hook of another library below ours, or an unknown one above,
//!   every statement takes the general path. Only outermost hooks can be seen, so
//!   pg_stat_statements, which hides what it was loaded after, has to come right behind us.
#![allow(ffi_unwind_calls)]
use super::cache::{self, Candidate};
use super::{mark, parent_check};
use crate::errors;
use crate::pg::hook::Previous;
use crate::pg::local::ProcessLocal;
use crate::pg::node::Node;
use crate::pg::version::{self, Extent, run_hook};
use crate::pg::{self, guard, portal, text};
use crate::shared_memory::settings::{self, CompiledStatements};
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};

/// The hooks of libraries that were loaded before.
static STARTS: Previous<pg_sys::ExecutorStart_hook_type> = Previous::new(None);
static RUNS: Previous<pg_sys::ExecutorRun_hook_type> = Previous::new(None);
static FINISHES: Previous<pg_sys::ExecutorFinish_hook_type> = Previous::new(None);
static ENDS: Previous<pg_sys::ExecutorEnd_hook_type> = Previous::new(None);

/// The outermost hooks that were examined (Start, Run, Finish, End), and whether they permit
/// compiled statements.
static OUTERMOST: ProcessLocal<Cell<([usize; 4], bool)>> = ProcessLocal(Cell::new(([0; 4], false)));

unsafe extern "C-unwind" {
    // PostgreSQL's own functions without pgrx's guard: see the module header.
    #[link_name = "standard_ExecutorStart"]
    fn standard_start(query: *mut pg_sys::QueryDesc, flags: c_int);
    #[link_name = "standard_ExecutorFinish"]
    fn standard_finish(query: *mut pg_sys::QueryDesc);
    #[link_name = "standard_ExecutorEnd"]
    fn standard_end(query: *mut pg_sys::QueryDesc);
}

pub fn init() {
    // SAFETY: single-threaded at load time.
    unsafe {
        STARTS.install(&raw mut pg_sys::ExecutorStart_hook, Some(start));
        RUNS.install(&raw mut pg_sys::ExecutorRun_hook, Some(run));
        FINISHES.install(&raw mut pg_sys::ExecutorFinish_hook, Some(finish));
        ENDS.install(&raw mut pg_sys::ExecutorEnd_hook, Some(end));
    }
    let behind = preloaded_after_us();
    if behind.iter().skip(1).any(|name| name == STATEMENTS) {
        errors::report_statements_hidden();
    }
}

/// The flags of ExecutorStart for a cursor that may go back.
const SCROLLS: u32 = pg_sys::EXEC_FLAG_REWIND | pg_sys::EXEC_FLAG_BACKWARD;

/// A query of core's executor.
type Query<'p> = Node<'p, pg_sys::QueryDesc>;

/// A plan that may have a form and may be run by it now.
#[inline]
fn candidate(query: Query<'_>, flags: c_int) -> Option<Candidate> {
    let plan = query.plan();
    let serial = mark::serial(plan)?;
    let allowed = pg_sys::EXEC_FLAG_SKIP_TRIGGERS | SCROLLS;
    let is_plain = flags & !(allowed as c_int) == 0
        && query.instrument_options() == 0
        && !query.crosscheck_snapshot()
        && !may_outlive_its_savepoint(query);
    if !is_plain || !may_run_forms() {
        return None;
    }
    let writes = plan.commandType() != pg_sys::CmdType::CMD_SELECT || !plan.rowMarks().is_empty();
    if writes && !may_write() {
        return None;
    }
    let scrolls = flags & SCROLLS as c_int != 0;
    Some(Candidate {
        serial,
        needs_states: scrolls || is_named_cursor(query),
    })
}

/// Whether forms run in this transaction, and in this process, at all.
#[inline]
fn may_run_forms() -> bool {
    // SAFETY: plain variables of this process.
    let is_plain = unsafe {
        pg_sys::XactIsoLevel < pg_sys::XACT_SERIALIZABLE as c_int
            && pg_sys::ParallelWorkerNumber < 0
    };
    is_plain
        && settings::COMPILED_STATEMENTS.get() != CompiledStatements::Off
        && others_bear_with_it()
}

/// Whether the transaction may write, and lock rows. Where not, the general path raises that.
#[inline]
pub(super) fn may_write() -> bool {
    // SAFETY: a plain variable of this process.
    !unsafe { pg_sys::XactReadOnly } && !pg::is_in_parallel_mode()
}

/// Whether the execution may end after the subtransaction it begins in was rolled back: a SQL
/// function's that gives its rows one by one.
#[inline]
fn may_outlive_its_savepoint(query: Query<'_>) -> bool {
    let is_function = query.receiver().mydest() == pg_sys::CommandDest::DestSQLFunction;
    is_function && pg::is_in_portal_older_than_savepoint()
}

/// Whether others may name the query's portal in WHERE CURRENT OF, which asks its plan states for
/// the row. A portal starts its query while it is the active one, with no receiver yet.
#[inline]
fn is_named_cursor(query: Query<'_>) -> bool {
    query.receiver().mydest() == pg_sys::CommandDest::DestNone && portal::is_active_named()
}

/// Whether no other library's hook would miss the plan states.
#[inline]
fn others_bear_with_it() -> bool {
    if STARTS.get().is_some()
        || RUNS.get().is_some()
        || FINISHES.get().is_some()
        || ENDS.get().is_some()
    {
        return false;
    }
    // SAFETY: plain variables of this process.
    let outermost = unsafe {
        [
            pg_sys::ExecutorStart_hook.map_or(0, |hook| hook as usize),
            pg_sys::ExecutorRun_hook.map_or(0, |hook| hook as usize),
            pg_sys::ExecutorFinish_hook.map_or(0, |hook| hook as usize),
            pg_sys::ExecutorEnd_hook.map_or(0, |hook| hook as usize),
        ]
    };
    let (seen, permits) = OUTERMOST.get();
    if seen == outermost {
        return permits;
    }
    let ours = [
        start as *const () as usize,
        run as *const () as usize,
        finish as *const () as usize,
        end as *const () as usize,
    ];
    let permits = outermost
        .iter()
        .zip(ours)
        .all(|(hook, ours)| *hook == ours || permits_compiled(*hook));
    OUTERMOST.set((outermost, permits));
    permits
}

/// pg_stat_statements counts rows and time, and reads no plan state. auto_explain does; another
/// library may, so none may stand hidden between pg_stat_statements and us.
fn permits_compiled(hook: usize) -> bool {
    library_of(hook).is_some_and(|name| name.to_bytes().ends_with(b"/pg_stat_statements.so"))
        && pg::setting(c"auto_explain.log_min_duration").is_none()
        && preloaded_after_us().first().map(String::as_str) == Some(STATEMENTS)
}

/// The file of the library that a function is in. PostgreSQL unloads no library.
fn library_of(function: usize) -> Option<&'static CStr> {
    // SAFETY: dladdr fills the structure for an address in a loaded library, or says that it is in
    // none. A name is a string, as live as the library.
    unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        let is_found = libc::dladdr(function as *const c_void, &mut found) != 0;
        (is_found && !found.dli_fname.is_null()).then(|| CStr::from_ptr(found.dli_fname))
    }
}

/// Whether forms run, and no other library would miss a query that core runs for a foreign key.
/// pg_stat_statements counts it if it is to track all.
pub(super) fn others_miss_no_query() -> bool {
    // SAFETY: a plain variable of this process.
    let outermost = unsafe { pg_sys::ExecutorRun_hook };
    let is_ours = outermost.is_some_and(|hook| hook as usize == run as *const () as usize);
    let tracks_all = || {
        let tracked = pg::setting(c"pg_stat_statements.track");
        tracked.is_some_and(|tracked| tracked.to_bytes() == b"all")
    };
    may_run_forms() && (is_ours || !tracks_all())
}

const STATEMENTS: &str = "pg_stat_statements";

/// The names of the libraries that the server preloads behind this one, in their order.
fn preloaded_after_us() -> Vec<String> {
    let list = pg::setting(c"shared_preload_libraries")
        .map(|list| text::decode(list.to_bytes()))
        .unwrap_or_default();
    list.split(',')
        .map(|entry| {
            let file = entry.trim().trim_matches('"');
            let name = file.rsplit('/').next().unwrap_or(file);
            name.trim_end_matches(".so").to_owned()
        })
        .skip_while(|name| name != "mot")
        .skip(1)
        .collect()
}

unsafe extern "C-unwind" fn start(query: *mut pg_sys::QueryDesc, flags: c_int) {
    crate::transaction::horizon::publish();
    // SAFETY: the query that core starts.
    let entered = unsafe { Node::enter(query) };
    let candidate = candidate(entered, flags);
    // SAFETY: core has locked the query's tables, and calls End, or aborts, before it frees it.
    // This frame, and those between it and core, have nothing to drop.
    let is_started =
        candidate.is_some_and(|plan| unsafe { guard::run(|| cache::start(entered, plan, flags)) });
    if !is_started {
        // SAFETY: as core calls it.
        unsafe { start_in_core(query, flags) };
    }
}

/// Starts a query that has no form.
///
/// # Safety
/// As core calls the hook. An error of core's jumps over the frame.
#[inline]
unsafe fn start_in_core(query: *mut pg_sys::QueryDesc, flags: c_int) {
    let outer = crate::table_am::bitmap::reading_ahead::starts();
    // SAFETY: the caller's.
    unsafe {
        match STARTS.get() {
            Some(next) => next(query, flags),
            None => standard_start(query, flags),
        }
    }
    // SAFETY: a query that was just started, of which nothing has run.
    unsafe {
        parent_check::take_over_of(Node::enter(query));
        crate::plan_nodes::on_conflict::started(query, flags);
        crate::plan_nodes::row_memory::started(query, flags);
        crate::table_am::bitmap::reading_ahead::started(query, outer);
    }
}

/// Whether a compiled statement runs the query: core's own always have a plan state.
#[inline]
fn is_compiled(query: Query<'_>) -> bool {
    query.planstate().is_none() && cache::is_running(query)
}

run_hook!(run, run_query);

#[inline]
unsafe fn run_query(query: *mut pg_sys::QueryDesc, extent: Extent) {
    // SAFETY: as core calls the hook, with a query that was started.
    let entered = unsafe { Node::enter(query) };
    if is_compiled(entered) {
        // SAFETY: this frame, and those between it and core, have nothing to drop.
        return unsafe { guard::run(|| cache::run(entered, extent.direction, extent.count)) };
    }
    // SAFETY: as above.
    unsafe { guard::execution(|| version::run_query(RUNS.get(), query, extent)) };
}

unsafe extern "C-unwind" fn finish(query: *mut pg_sys::QueryDesc) {
    // SAFETY: as core calls the hook, with a query that was started.
    let entered = unsafe { Node::enter(query) };
    if is_compiled(entered) {
        // SAFETY: this frame, and those between it and core, have nothing to drop.
        unsafe { guard::run(|| cache::finish(entered)) };
        if entered.totaltime() && !others_bear_with_it() {
            // A library came meanwhile, with a function that it has. auto_explain looks for plan
            // states at the End of what was timed.
            entered.forget_timing();
        }
        return;
    }
    // SAFETY: as core calls the hook.
    unsafe {
        match FINISHES.get() {
            Some(next) => next(query),
            None => standard_finish(query),
        }
    }
}

unsafe extern "C-unwind" fn end(query: *mut pg_sys::QueryDesc) {
    // SAFETY: as core calls the hook, with a query that was started.
    let entered = unsafe { Node::enter(query) };
    if cache::is_running(entered) {
        // Plan states that are kept must not be taken down.
        // SAFETY: this frame, and those between it and core, have nothing to drop.
        return unsafe { guard::run(|| cache::end(entered)) };
    }
    // SAFETY: as core calls the hook.
    unsafe {
        crate::plan_nodes::row_memory::ends(query);
        match ENDS.get() {
            Some(next) => next(query),
            None => standard_end(query),
        }
    }
}
