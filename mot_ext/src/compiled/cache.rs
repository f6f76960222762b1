//! The compiled statements of this process, by the serial of their plans.
//!
//! - A plan is compiled when it comes the second time: most plans come once.
//! - A plan whose table changes is never run again by PostgreSQL (the new one has a new serial), so
//!   its compiled form only has to follow the table's storage, which it does at each start. It goes
//!   when too many others were used since.
//! - A form is running from ExecutorStart to ExecutorEnd; core calls no End after an error, so
//!   aborts look for those that began in the (sub)transaction that is gone. Releasing a savepoint
//!   makes what began under it its parent's, as for portals.
use super::entry::{Compiled, Entry, Form, SerialHasher};
use super::statement::{Statement, Uncompiled};
use super::tree::Tree;
use super::{foreign_keys, index_lock, watch};
use crate::pg::local::ProcessLocal;
use crate::pg::node::Node;
use crate::shared_memory::settings::{self, CompiledStatements};
use crate::{errors, pg};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::hash::BuildHasherDefault;

/// Compiled statements a process keeps; each takes some 10 to 40 kB.
const STATEMENTS_MAX: usize = 512;
/// Plans that came once and are remembered.
const SEEN: usize = 256;
/// Bytes that all trees of a process hold between their executions: some 40 of a join that is
/// grouped, sorted and limited (200 kB each). The count alone would let each of hundreds of
/// sessions hold 100 MB for plans that come now and then.
const TREE_BYTES_MAX: usize = 8 << 20;

/// A plan that may have a form.
#[derive(Clone, Copy)]
pub struct Candidate {
    pub serial: u64,
    /// A cursor's caller may ask its plan states for its current row, or for the rows before.
    pub needs_states: bool,
}

struct Cache {
    entries: HashMap<u64, Entry, BuildHasherDefault<SerialHasher>>,
    seen: [u64; SEEN],
    running: Vec<Form>,
    clock: u64,
}

struct CacheState {
    cache: UnsafeCell<Option<Cache>>,
    functions_generation: Cell<u64>,
}

static STATE: ProcessLocal<CacheState> = ProcessLocal(CacheState {
    cache: UnsafeCell::new(None),
    functions_generation: Cell::new(0),
});

/// The cache; made, with its callbacks, at first use in a process. The reference must not be kept
/// across a call that may run another statement.
#[inline]
fn cache() -> &'static mut Cache {
    existing().unwrap_or_else(make)
}

#[cold]
fn make() -> &'static mut Cache {
    watch::begin();
    let procedures = pg_sys::SysCacheIdentifier::PROCOID as c_int;
    let (nothing, none) = (pg_sys::Datum::from(0), std::ptr::null_mut());
    // SAFETY: registered once per process, the cell is empty; the callbacks live as long as the
    // library.
    unsafe {
        pg_sys::CacheRegisterSyscacheCallback(procedures, Some(on_function_change), nothing);
        pg_sys::RegisterXactCallback(Some(on_transaction), none);
        pg_sys::RegisterSubXactCallback(Some(on_subtransaction), none);
    }
    let made = Cache {
        entries: HashMap::default(),
        seen: [0; SEEN],
        running: Vec::new(),
        clock: 0,
    };
    // SAFETY: one thread; there was no cache, so no reference to one.
    unsafe { (*STATE.cache.get()).insert(made) }
}

#[inline]
fn existing() -> Option<&'static mut Cache> {
    // SAFETY: one thread; see `cache`.
    unsafe { (*STATE.cache.get()).as_mut() }
}

/// A query of core's executor.
type Query<'p> = Node<'p, pg_sys::QueryDesc>;

/// Begins a query in its compiled form, or with the states kept of its plan, making either if it
/// comes again; false: core's executor runs it with states of its own.
///
/// # Safety
/// The query's tables are locked. [`end`] follows, or an abort, before it is gone.
pub unsafe fn start(query: Query<'_>, plan: Candidate, flags: c_int) -> bool {
    let Some(form) = form_of(query, plan, flags) else {
        return false;
    };
    // SAFETY: a form in the map, which stays there; no execution of it is under way. The caller's
    // query.
    let is_started = unsafe {
        match form {
            Form::Compiled(compiled) => (*compiled).statement().start(query, flags),
            Form::Kept(tree) => (*tree).start(query, flags),
        }
    };
    if !is_started {
        return false;
    }
    form.set_running(Some((query.as_ptr(), pg::nest_level())));
    let cache = cache();
    cache.clock += 1;
    form.use_at(cache.clock);
    cache.running.push(form);
    true
}

/// The form of a query that no execution uses, made if the plan comes again; `None`: there is none,
/// and core's executor runs the query.
fn form_of(query: Query<'_>, plan: Candidate, flags: c_int) -> Option<Form> {
    let functions = STATE.functions_generation.get();
    let form = match cache().entries.get_mut(&plan.serial) {
        Some(Entry::General) => return None,
        Some(Entry::Compiled(_)) if plan.needs_states => return None,
        Some(entry) => {
            let is_valid = entry.is_valid(functions);
            let form = entry.form();
            if form.is_some_and(|form| form.running().is_some()) {
                return None;
            }
            // One made for a cursor gives way to a compiled form.
            let is_best = plan.needs_states || !form.is_some_and(Form::is_for_cursor);
            form.filter(|_| is_valid && is_best)
        }
        None if !cache().comes_again(plan.serial) => return None,
        None => None,
    };
    form.or_else(|| compile(query, plan, flags))
}

fn compile(query: Query<'_>, plan: Candidate, flags: c_int) -> Option<Form> {
    let serial = plan.serial;
    let drops = cache().entries.get(&serial).map_or(0, Entry::drops);
    let functions = STATE.functions_generation.get();
    let compiled = match plan.needs_states {
        true => Err(Uncompiled::Never),
        false => Statement::compile(query),
    };
    let made = match compiled {
        Ok(statement) => {
            let compiled = Compiled::new(statement, functions);
            Ok(Entry::Compiled(Box::new(compiled)))
        }
        Err(Uncompiled::Never) => {
            let tree = Tree::build(query, functions, drops, flags);
            tree.map(|mut tree| {
                tree.is_for_cursor = plan.needs_states;
                Entry::Kept(Box::new(tree))
            })
        }
        Err(Uncompiled::Now) => Err(Uncompiled::Now),
    };
    let cache = cache();
    cache.make_room();
    let entry = match made {
        Ok(entry) => entry,
        // What a cursor lacks says nothing of the plan's compiled form.
        Err(Uncompiled::Never) if plan.needs_states => return None,
        Err(Uncompiled::Never) => Entry::General,
        Err(Uncompiled::Now) => return None,
    };
    cache.entries.insert(serial, entry);
    cache.entries.get_mut(&serial)?.form()
}

impl Cache {
    /// Whether the plan came before; remembers it if not.
    fn comes_again(&mut self, serial: u64) -> bool {
        if settings::COMPILED_STATEMENTS.get() == CompiledStatements::Always {
            return true;
        }
        let place = &mut self.seen[serial as usize % SEEN];
        *place == serial || {
            *place = serial;
            false
        }
    }

    /// Drops the older half when there are too many.
    fn make_room(&mut self) {
        if self.entries.len() < STATEMENTS_MAX {
            return;
        }
        let mut uses: Vec<u64> = self.entries.values().filter_map(Entry::last_use).collect();
        uses.sort_unstable();
        let bound = uses.get(uses.len() / 2).copied().unwrap_or_default();
        self.entries.retain(|_, entry| {
            let is_running = entry.form().is_some_and(|form| form.running().is_some());
            is_running || entry.last_use().is_some_and(|used| used > bound)
        });
    }

    fn find(&self, query: Query<'_>) -> Option<usize> {
        self.running.iter().rposition(|form| form.runs(query))
    }

    /// Gives a tree up that should not be kept.
    fn take_back(&mut self, tree: *const Tree) {
        let is_it = |entry: &&mut Entry| matches!(entry, Entry::Kept(kept) if std::ptr::eq(&raw const **kept, tree));
        if let Some(entry) = self.entries.values_mut().find(is_it)
            && let Entry::Kept(kept) = entry
        {
            *entry = Entry::after(kept);
        }
    }

    /// Drops those trees that were used longest ago if all of them hold too much.
    fn keep_within_budget(&mut self) {
        let mut bytes = 0;
        let mut idle = Vec::new();
        for (serial, entry) in &self.entries {
            if let Entry::Kept(tree) = entry {
                bytes += tree.bytes;
                if tree.running.is_none() {
                    idle.push((tree.used, *serial, tree.bytes));
                }
            }
        }
        if bytes <= TREE_BYTES_MAX {
            return;
        }
        idle.sort_unstable();
        for (_, serial, freed) in idle {
            self.entries.remove(&serial);
            bytes -= freed;
            if bytes <= TREE_BYTES_MAX {
                break;
            }
        }
    }

    /// What began in a subtransaction that is released belongs to the one above it.
    fn hand_over_from(&mut self, level: i32) {
        for form in &self.running {
            if let Some((query, began)) = form.running()
                && began >= level
            {
                form.set_running(Some((query, level - 1)));
            }
        }
    }

    /// Forgets what began in a (sub)transaction that is gone. Core has marked its portals so
    /// before: they have let go of their queries and of the memory of their executions, and so do
    /// we.
    fn forget_from(&mut self, level: i32) {
        let before = self.running.len();
        self.running.retain(|form| {
            let is_gone = form.running().is_none_or(|(_, began)| began >= level);
            if is_gone {
                form.fail();
            }
            !is_gone
        });
        if self.running.len() < before {
            self.entries.retain(|_, entry| !entry.is_wreck());
        }
    }
}

/// Whether a compiled form, or kept states, run the query.
#[inline]
pub fn is_running(query: Query<'_>) -> bool {
    existing().is_some_and(|cache| cache.find(query).is_some())
}

/// Raises 55006 while a compiled form runs: a library that is about to be loaded may look for its
/// plan states, which are not there.
pub fn refuse_other_hooks() {
    let runs = existing().is_some_and(|cache| {
        cache
            .running
            .iter()
            .any(|form| matches!(form, Form::Compiled(_)))
    });
    if runs {
        errors::statement_open();
    }
}

/// Runs a query for which `is_running` holds.
///
/// # Safety
/// As core calls `ExecutorRun`: no other run of the query is under way.
pub unsafe fn run(query: Query<'_>, direction: pg_sys::ScanDirection::Type, rows_max: u64) {
    let cache = cache();
    if let Some(at) = cache.find(query)
        && let Form::Compiled(compiled) = cache.running[at]
    {
        // SAFETY: a running statement stays in the map; only this execution uses it.
        unsafe { (*compiled).statement().run(query, direction, rows_max) }
    }
}

/// Fires what the foreign keys of a query's table have queued, if it is one for which `is_running`
/// holds and has queued anything.
///
/// # Safety
/// As core calls `ExecutorFinish`: no run of the query is under way.
pub unsafe fn finish(query: Query<'_>) {
    let form = {
        let cache = cache();
        cache.find(query).map(|at| cache.running[at])
    };
    if let Some(Form::Compiled(compiled)) = form {
        // SAFETY: a running statement stays in the map; only this execution uses it.
        let has_queued = unsafe { (*compiled).statement().take_level() };
        if has_queued {
            // SAFETY: as above; no reference to it, or to the map, lives while SQL runs. The state
            // is of an execution that opened a level.
            unsafe { foreign_keys::fire(Node::enter((*compiled).estate())) };
        }
    }
}

/// Ends a query for which `is_running` holds.
///
/// # Safety
/// As core calls `ExecutorEnd`: no run of the query is under way, and no code reads its plan states
/// any more.
pub unsafe fn end(query: Query<'_>) {
    let cache = cache();
    let Some(at) = cache.find(query) else {
        return;
    };
    // It leaves the list when it has ended: should that fail, the abort finds it there.
    match cache.running[at] {
        Form::Compiled(compiled) => {
            cache.running[at].set_running(None);
            // SAFETY: as for `run`.
            unsafe { (*compiled).statement().end(query) };
            cache.running.remove(at);
        }
        Form::Kept(tree) => {
            // SAFETY: as for `run`; the tree stays in the map until the last line.
            let (has_grown, is_kept) = unsafe {
                let bytes = (*tree).bytes;
                (*tree).end(query);
                ((*tree).bytes > bytes, !(*tree).is_broken)
            };
            cache.running.remove(at);
            if !is_kept {
                cache.take_back(tree);
            } else if has_grown {
                cache.keep_within_budget();
            }
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_function_change(_arg: pg_sys::Datum, _cache: c_int, _hash: u32) {
    STATE
        .functions_generation
        .set(STATE.functions_generation.get() + 1);
}

#[pg_guard]
unsafe extern "C-unwind" fn on_transaction(event: pg_sys::XactEvent::Type, _arg: *mut c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        index_lock::note_abort();
    }
    // At COMMIT what is left failed in a subtransaction that began after it: core neither ran nor
    // ended it since.
    if matches!(
        event,
        pg_sys::XactEvent::XACT_EVENT_ABORT
            | pg_sys::XactEvent::XACT_EVENT_PARALLEL_ABORT
            | pg_sys::XactEvent::XACT_EVENT_COMMIT
            | pg_sys::XactEvent::XACT_EVENT_PREPARE
    ) && let Some(cache) = existing()
    {
        cache.forget_from(0);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_subtransaction(
    event: pg_sys::SubXactEvent::Type,
    _id: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _arg: *mut c_void,
) {
    let Some(cache) = existing() else {
        return;
    };
    match event {
        pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB => {
            index_lock::note_abort();
            cache.forget_from(pg::nest_level());
        }
        pg_sys::SubXactEvent::SUBXACT_EVENT_COMMIT_SUB => cache.hand_over_from(pg::nest_level()),
        _ => {}
    }
}
