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
use crate::pg::local::ProcessLocal;
use crate::pg::version::{self, Extent, run_hook};
use crate::pg::{self, guard, text};
use crate::shared_memory::settings::{self, CompiledStatements};
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};

#[derive(Clone, Copy)]
struct PreviousHooks {
    start: pg_sys::ExecutorStart_hook_type,
    run: pg_sys::ExecutorRun_hook_type,
    finish: pg_sys::ExecutorFinish_hook_type,
    end: pg_sys::ExecutorEnd_hook_type,
}

struct Hooks {
    previous: Cell<PreviousHooks>,
    /// The outermost hooks that were examined (Start, Run, Finish, End), and whether they permit
    /// compiled statements.
    outermost: Cell<([usize; 4], bool)>,
}

static HOOKS: ProcessLocal<Hooks> = ProcessLocal(Hooks {
    previous: Cell::new(PreviousHooks {
        start: None,
        run: None,
        finish: None,
        end: None,
    }),
    outermost: Cell::new(([0; 4], false)),
});

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
        HOOKS.previous.set(PreviousHooks {
            start: pg_sys::ExecutorStart_hook,
            run: pg_sys::ExecutorRun_hook,
            finish: pg_sys::ExecutorFinish_hook,
            end: pg_sys::ExecutorEnd_hook,
        });
        pg_sys::ExecutorStart_hook = Some(start);
        pg_sys::ExecutorRun_hook = Some(run);
        pg_sys::ExecutorFinish_hook = Some(finish);
        pg_sys::ExecutorEnd_hook = Some(end);
    }
    let behind = preloaded_after_us();
    if behind.iter().skip(1).any(|name| name == STATEMENTS) {
        errors::report_statements_hidden();
    }
}

/// The flags of ExecutorStart for a cursor that may go back.
const SCROLLS: u32 = pg_sys::EXEC_FLAG_REWIND | pg_sys::EXEC_FLAG_BACKWARD;

/// A plan that may have a form and may be run by it now.
#[inline]
unsafe fn candidate(query: *mut pg_sys::QueryDesc, flags: c_int) -> Option<Candidate> {
    // SAFETY: core's query descriptor with its plan; plain variables of this process.
    unsafe {
        let plan = (*query).plannedstmt;
        let serial = mark::serial(plan)?;
        let allowed = pg_sys::EXEC_FLAG_SKIP_TRIGGERS | SCROLLS;
        let is_plain = flags & !(allowed as c_int) == 0
            && (*query).instrument_options == 0
            && (*query).crosscheck_snapshot.is_null()
            && !may_outlive_its_savepoint(query);
        if !is_plain || !may_run_forms() {
            return None;
        }
        let writes =
            (*plan).commandType != pg_sys::CmdType::CMD_SELECT || !(*plan).rowMarks.is_null();
        if writes && !may_write() {
            return None;
        }
        let scrolls = flags & SCROLLS as c_int != 0;
        Some(Candidate {
            serial,
            needs_states: scrolls || is_named_cursor(query),
        })
    }
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
unsafe fn may_outlive_its_savepoint(query: *mut pg_sys::QueryDesc) -> bool {
    // SAFETY: core's query descriptor.
    let is_function = unsafe { (*(*query).dest).mydest == pg_sys::CommandDest::DestSQLFunction };
    is_function && pg::is_in_portal_older_than_savepoint()
}

/// Whether others may name the query's portal in WHERE CURRENT OF, which asks its plan states for
/// the row.
#[inline]
unsafe fn is_named_cursor(query: *mut pg_sys::QueryDesc) -> bool {
    // SAFETY: core's query descriptor; a portal starts its query while it is the active one, with
    // no receiver yet.
    unsafe {
        let portal = pg_sys::ActivePortal;
        (*(*query).dest).mydest == pg_sys::CommandDest::DestNone
            && !portal.is_null()
            && *(*portal).name != 0
            // EXECUTE's own portal has a name, but is not visible.
            && (*portal).visible
    }
}

/// Whether no other library's hook would miss the plan states.
#[inline]
fn others_bear_with_it() -> bool {
    let previous = HOOKS.previous.get();
    if previous.start.is_some()
        || previous.run.is_some()
        || previous.finish.is_some()
        || previous.end.is_some()
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
    let (seen, permits) = HOOKS.outermost.get();
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
    HOOKS.outermost.set((outermost, permits));
    permits
}

/// pg_stat_statements counts rows and time, and reads no plan state. auto_explain does; another
/// library may, so none may stand hidden between pg_stat_statements and us.
fn permits_compiled(hook: usize) -> bool {
    // SAFETY: dladdr fills the structure for an address in a loaded library; the setting's value is
    // not kept.
    unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(hook as *const c_void, &mut found) == 0 || found.dli_fname.is_null() {
            return false;
        }
        let name = CStr::from_ptr(found.dli_fname).to_bytes();
        name.ends_with(b"/pg_stat_statements.so")
            && pg::setting(c"auto_explain.log_min_duration").is_none()
            && preloaded_after_us().first().map(String::as_str) == Some(STATEMENTS)
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
    // SAFETY: as core calls it.
    unsafe {
        crate::transaction::horizon::publish();
        if let Some(plan) = candidate(query, flags)
            && guard::run(|| cache::start(query, plan, flags))
        {
            return;
        }
        let outer = crate::table_am::bitmap::reading_ahead::starts();
        match HOOKS.previous.get().start {
            Some(next) => next(query, flags),
            None => standard_start(query, flags),
        }
        parent_check::take_over_of(query);
        crate::plan_nodes::on_conflict::started(query, flags);
        crate::plan_nodes::row_memory::started(query, flags);
        crate::table_am::bitmap::reading_ahead::started(query, outer);
    }
}

/// Whether a compiled statement runs the query: core's own always have a plan state.
#[inline]
unsafe fn is_compiled(query: *mut pg_sys::QueryDesc) -> bool {
    // SAFETY: a started query.
    unsafe { (*query).planstate.is_null() && cache::is_running(query) }
}

run_hook!(run, run_query);

#[inline]
unsafe fn run_query(query: *mut pg_sys::QueryDesc, extent: Extent) {
    // SAFETY: as core calls the hook.
    unsafe {
        if is_compiled(query) {
            return guard::run(|| cache::run(query, extent.direction, extent.count));
        }
        guard::execution(|| version::run_query(HOOKS.previous.get().run, query, extent));
    }
}

unsafe extern "C-unwind" fn finish(query: *mut pg_sys::QueryDesc) {
    // SAFETY: as core calls it.
    unsafe {
        if is_compiled(query) {
            guard::run(|| cache::finish(query));
            if !(*query).totaltime.is_null() && !others_bear_with_it() {
                // A library came meanwhile, with a function that it has. auto_explain looks for
                // plan states at the End of what was timed.
                (*query).totaltime = std::ptr::null_mut();
            }
            return;
        }
        match HOOKS.previous.get().finish {
            Some(next) => next(query),
            None => standard_finish(query),
        }
    }
}

unsafe extern "C-unwind" fn end(query: *mut pg_sys::QueryDesc) {
    // SAFETY: as core calls it. Plan states that are kept must not be taken down.
    unsafe {
        if cache::is_running(query) {
            return guard::run(|| cache::end(query));
        }
        crate::plan_nodes::row_memory::ends(query);
        match HOOKS.previous.get().end {
            Some(next) => next(query),
            None => standard_end(query),
        }
    }
}
