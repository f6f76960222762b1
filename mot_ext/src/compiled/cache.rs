//! The compiled statements of this process, by the serial of their plans.
//!
//! - A plan is compiled when it comes the second time: most plans come once.
//! - A plan whose table changes is never run again by PostgreSQL (the new one has a new serial), so its compiled form only has to
//!   follow the table's storage, which it does at each start. It goes when too many others were used since.
//! - A form is running from ExecutorStart to ExecutorEnd; core calls no End after an error, so aborts look for those that began in
//!   the (sub)transaction that is gone. Releasing a savepoint makes what began under it its parent's, as for portals.
use super::statement::{Statement, Uncompiled};
use crate::pg;
use crate::settings::{self, CompiledStatements};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::{Cell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::hash::{BuildHasherDefault, Hasher};

/// Compiled statements a process keeps; each takes some 10 to 40 kB.
const STATEMENTS_MAX: usize = 512;
/// Plans that came once and are remembered.
const SEEN: usize = 256;

enum Entry {
    /// For core's executor.
    General,
    Compiled(Box<Statement>),
}

/// Serials are a sequence: one multiplication spreads them over the table's high and low bits.
#[derive(Default)]
struct SerialHasher(u64);

impl Hasher for SerialHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, serial: u64) {
        self.0 = serial.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

struct Cache {
    entries: HashMap<u64, Entry, BuildHasherDefault<SerialHasher>>,
    seen: [u64; SEEN],
    running: Vec<*mut Statement>,
    clock: u64,
}

struct Local {
    cache: UnsafeCell<Option<Cache>>,
    functions_generation: Cell<u64>,
}

// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for Local {}

static LOCAL: Local = Local {
    cache: UnsafeCell::new(None),
    functions_generation: Cell::new(0),
};

/// The cache; made, with its callbacks, at first use in a process. The reference must not be kept across a call that may run
/// another statement.
fn cache() -> &'static mut Cache {
    // SAFETY: one thread; see the contract above.
    unsafe {
        if (*LOCAL.cache.get()).is_none() {
            let procedures = pg_sys::SysCacheIdentifier::PROCOID as c_int;
            pg_sys::CacheRegisterSyscacheCallback(
                procedures,
                Some(on_function_change),
                pg_sys::Datum::from(0),
            );
            pg_sys::RegisterXactCallback(Some(on_transaction), std::ptr::null_mut());
            pg_sys::RegisterSubXactCallback(Some(on_subtransaction), std::ptr::null_mut());
            *LOCAL.cache.get() = Some(Cache {
                entries: HashMap::default(),
                seen: [0; SEEN],
                running: Vec::new(),
                clock: 0,
            });
        }
        (*LOCAL.cache.get()).as_mut().expect("just made")
    }
}

fn existing() -> Option<&'static mut Cache> {
    // SAFETY: one thread; see `cache`.
    unsafe { (*LOCAL.cache.get()).as_mut() }
}

/// Begins a query in its compiled form, compiling it if it comes again; false: core's executor runs it.
#[pg_guard]
pub unsafe extern "C-unwind" fn start(query: *mut pg_sys::QueryDesc, serial: u64) -> bool {
    // SAFETY: core's query descriptor; a statement in the map stays where it is.
    unsafe {
        let functions = LOCAL.functions_generation.get();
        let statement: *mut Statement = match cache().entries.get_mut(&serial) {
            Some(Entry::General) => return false,
            Some(Entry::Compiled(statement)) if statement.running.is_some() => return false,
            Some(Entry::Compiled(statement)) if statement.functions_generation == functions => {
                &raw mut **statement
            }
            found => {
                if found.is_none() && !cache().comes_again(serial) {
                    return false;
                }
                match compile(query, serial, functions) {
                    Some(statement) => statement,
                    None => return false,
                }
            }
        };
        if !(*statement).start(query) {
            return false;
        }
        let cache = cache();
        cache.clock += 1;
        (*statement).used = cache.clock;
        cache.running.push(statement);
        true
    }
}

unsafe fn compile(
    query: *mut pg_sys::QueryDesc,
    serial: u64,
    functions_generation: u64,
) -> Option<*mut Statement> {
    // SAFETY: core's query descriptor.
    let compiled = unsafe { Statement::compile(query, functions_generation) };
    let cache = cache();
    cache.make_room();
    let entry = match compiled {
        Ok(statement) => Entry::Compiled(Box::new(statement)),
        Err(Uncompiled::Never) => Entry::General,
        Err(Uncompiled::Now) => return None,
    };
    cache.entries.insert(serial, entry);
    match cache.entries.get_mut(&serial) {
        Some(Entry::Compiled(statement)) => Some(&raw mut **statement),
        _ => None,
    }
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
        let mut uses: Vec<u64> = self
            .entries
            .values()
            .filter_map(|entry| match entry {
                Entry::General => None,
                Entry::Compiled(statement) => Some(statement.used),
            })
            .collect();
        uses.sort_unstable();
        let bound = uses.get(uses.len() / 2).copied().unwrap_or_default();
        self.entries.retain(|_, entry| match entry {
            Entry::General => false,
            Entry::Compiled(statement) => statement.running.is_some() || statement.used > bound,
        });
    }

    fn find(&self, query: *mut pg_sys::QueryDesc) -> Option<usize> {
        self.running.iter().rposition(|statement| {
            // SAFETY: a running statement stays in the map.
            unsafe { (**statement).running }.is_some_and(|(running, _)| running == query)
        })
    }

    /// What began in a subtransaction that is released belongs to the one above it.
    fn hand_over_from(&mut self, level: i32) {
        for statement in &self.running {
            // SAFETY: a running statement stays in the map.
            if let Some((_, began)) = unsafe { &mut (**statement).running }
                && *began >= level
            {
                *began = level - 1;
            }
        }
    }

    /// Forgets what began in a (sub)transaction that is gone.
    fn forget_from(&mut self, level: i32) {
        self.running.retain(|statement| {
            // SAFETY: a running statement stays in the map.
            let running = unsafe { &mut (**statement).running };
            let is_gone = running.is_none_or(|(_, began)| began >= level);
            if is_gone {
                *running = None;
            }
            !is_gone
        });
    }
}

/// Whether a compiled form runs the query.
#[inline]
pub fn is_running(query: *mut pg_sys::QueryDesc) -> bool {
    existing().is_some_and(|cache| cache.find(query).is_some())
}

/// The table that a query reads in its compiled form, and the row it sent last; `None` if it has no such form.
pub fn current_row(
    query: *mut pg_sys::QueryDesc,
) -> Option<(pg_sys::Oid, Option<pg_sys::ItemPointerData>)> {
    let cache = existing()?;
    let statement = cache.running[cache.find(query)?];
    // SAFETY: a running statement stays in the map.
    unsafe { (*statement).current_row() }
}

/// Runs a query for which `is_running` holds.
#[pg_guard]
pub unsafe extern "C-unwind" fn run(
    query: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    rows_max: u64,
) {
    let cache = cache();
    if let Some(at) = cache.find(query) {
        let statement = cache.running[at];
        // SAFETY: a running statement stays in the map; only this execution uses it.
        unsafe { (*statement).run(query, direction, rows_max) }
    }
}

/// Ends a query for which `is_running` holds.
#[pg_guard]
pub unsafe extern "C-unwind" fn end(query: *mut pg_sys::QueryDesc) {
    let cache = cache();
    if let Some(at) = cache.find(query) {
        let statement = cache.running.remove(at);
        // SAFETY: as for `run`.
        unsafe { (*statement).end(query) }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_function_change(_arg: pg_sys::Datum, _cache: c_int, _hash: u32) {
    LOCAL
        .functions_generation
        .set(LOCAL.functions_generation.get() + 1);
}

#[pg_guard]
unsafe extern "C-unwind" fn on_transaction(event: pg_sys::XactEvent::Type, _arg: *mut c_void) {
    // At COMMIT what is left failed in a subtransaction that began after it: core neither ran nor ended it since.
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
        pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB => cache.forget_from(pg::nest_level()),
        pg_sys::SubXactEvent::SUBXACT_EVENT_COMMIT_SUB => cache.hand_over_from(pg::nest_level()),
        _ => {}
    }
}
