//! What the cache knows of a plan.
use super::statement::Statement;
use super::tree::Tree;
use crate::pg::node::Node;
use pgrx::pg_sys;
use std::cell::{Cell, UnsafeCell};
use std::hash::Hasher;

/// A plan whose trees were dropped so often, each before it had served for a while, is left to
/// core.
const DROPS_MAX: u32 = 4;

/// A compiled statement in the map, with what others may read while it runs: what core asks of
/// foreign keys may run SQL.
pub struct Compiled {
    statement: UnsafeCell<Statement>,
    /// The executor state that its queries get.
    estate: *mut pg_sys::EState,
    /// `cache::functions_generation` of its functions' rights.
    functions_generation: u64,
    running: Cell<Option<Running>>,
    used: Cell<u64>,
}

/// An execution under way: its query, and the (sub)transaction it began in.
pub type Running = (*mut pg_sys::QueryDesc, i32);

impl Compiled {
    /// A statement just made.
    pub fn new(statement: Statement, functions_generation: u64) -> Compiled {
        Compiled {
            estate: statement.estate().as_ptr(),
            statement: UnsafeCell::new(statement),
            functions_generation,
            running: Cell::new(None),
            used: Cell::new(0),
        }
    }

    /// The statement.
    ///
    /// # Safety
    /// Only its execution uses it, and no other one begins meanwhile.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn statement(&self) -> &mut Statement {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.statement.get() }
    }

    /// The executor state that its queries get.
    pub fn estate(&self) -> *mut pg_sys::EState {
        self.estate
    }
}

pub enum Entry {
    /// For core's executor.
    General,
    /// Its tree of states had to be dropped, so often by now; the next execution makes another one.
    Again {
        drops: u32,
    },
    Compiled(Box<Compiled>),
    /// For core's executor, with states made before.
    Kept(Box<Tree>),
}

/// A form in the map, where it stays as long as it runs.
#[derive(Clone, Copy)]
pub enum Form {
    Compiled(*const Compiled),
    Kept(*mut Tree),
}

impl Form {
    /// Its execution under way.
    pub fn running(self) -> Option<Running> {
        // SAFETY: a form in the map.
        unsafe {
            match self {
                Form::Compiled(compiled) => (*compiled).running.get(),
                Form::Kept(tree) => (*tree).running,
            }
        }
    }

    /// Whether it is plan states made for a cursor.
    pub fn is_for_cursor(self) -> bool {
        match self {
            Form::Compiled(_) => false,
            // SAFETY: a form in the map.
            Form::Kept(tree) => unsafe { (*tree).is_for_cursor },
        }
    }

    /// Its execution begins, ends, or is another (sub)transaction's.
    pub fn set_running(self, running: Option<Running>) {
        // SAFETY: a form in the map.
        unsafe {
            match self {
                Form::Compiled(compiled) => (*compiled).running.set(running),
                Form::Kept(tree) => (*tree).running = running,
            }
        }
    }

    /// Notes its last use.
    pub fn use_at(self, clock: u64) {
        // SAFETY: a form in the map.
        unsafe {
            match self {
                Form::Compiled(compiled) => (*compiled).used.set(clock),
                Form::Kept(tree) => (*tree).used = clock,
            }
        }
    }

    /// Whether it runs this query. The address alone does not say so: core frees the descriptor of
    /// an execution that failed without an End, and the next one may get its place. A descriptor
    /// that has our executor state is one we gave it to.
    pub fn runs(self, query: Node<'_, pg_sys::QueryDesc>) -> bool {
        if (self.running()).is_none_or(|(running, _)| running != query.as_ptr()) {
            return false;
        }
        let state = query.estate().map(Node::as_ptr);
        // SAFETY: a form in the map.
        unsafe {
            match self {
                Form::Compiled(compiled) => state == Some((*compiled).estate),
                Form::Kept(tree) => (*tree).is_in(query),
            }
        }
    }

    /// Its execution is gone without an end.
    pub fn fail(self) {
        self.set_running(None);
        // SAFETY: a form in the map, which no execution uses any more.
        unsafe {
            match self {
                Form::Compiled(compiled) => (*compiled).statement().fail(),
                Form::Kept(tree) => (*tree).is_broken = true,
            }
        }
    }
}

impl Entry {
    pub fn form(&mut self) -> Option<Form> {
        match self {
            Entry::General | Entry::Again { .. } => None,
            Entry::Compiled(compiled) => Some(Form::Compiled(&raw const **compiled)),
            Entry::Kept(tree) => Some(Form::Kept(&raw mut **tree)),
        }
    }

    /// Whether it is as good as made now.
    pub fn is_valid(&self, functions: u64) -> bool {
        match self {
            Entry::General | Entry::Again { .. } => true,
            Entry::Compiled(compiled) => compiled.functions_generation == functions,
            Entry::Kept(tree) => {
                tree.functions_generation == functions && !tree.is_broken && tree.has_its_memory()
            }
        }
    }

    /// Whether it is a tree that an execution left in the middle of something.
    pub fn is_wreck(&self) -> bool {
        matches!(self, Entry::Kept(tree) if tree.is_broken && tree.running.is_none())
    }

    pub fn last_use(&self) -> Option<u64> {
        match self {
            Entry::General | Entry::Again { .. } => None,
            Entry::Compiled(compiled) => Some(compiled.used.get()),
            Entry::Kept(tree) => Some(tree.used),
        }
    }

    /// How often trees of its plan were dropped early.
    pub fn drops(&self) -> u32 {
        match self {
            Entry::Again { drops } => *drops,
            Entry::Kept(tree) => tree.drops,
            Entry::General | Entry::Compiled(_) => 0,
        }
    }

    /// What is left of a plan whose tree is dropped.
    pub fn after(tree: &Tree) -> Entry {
        let drops = if tree.has_served() { 1 } else { tree.drops + 1 };
        if tree.is_for_cursor {
            // The plan may have a compiled form, which cursors do not use.
            Entry::Again {
                drops: drops.min(DROPS_MAX - 1),
            }
        } else if drops < DROPS_MAX {
            Entry::Again { drops }
        } else {
            Entry::General
        }
    }
}

/// Serials are a sequence: one multiplication spreads them over the table's high and low bits.
#[derive(Default)]
pub struct SerialHasher(u64);

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
