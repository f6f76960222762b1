//! What the cache knows of a plan.
use super::statement::Statement;
use super::tree::Tree;
use pgrx::pg_sys;
use std::hash::Hasher;

/// A plan whose trees were dropped so often, each before it had served for a while, is left to core.
const DROPS_MAX: u32 = 4;

pub enum Entry {
    /// For core's executor.
    General,
    /// Its tree of states had to be dropped, so often by now; the next execution makes another one.
    Again {
        drops: u32,
    },
    Compiled(Box<Statement>),
    /// For core's executor, with states made before.
    Kept(Box<Tree>),
}

/// A form in the map, where it stays as long as it runs.
#[derive(Clone, Copy)]
pub enum Form {
    Compiled(*mut Statement),
    Kept(*mut Tree),
}

impl Form {
    /// Its execution under way: the query, and the (sub)transaction it began in.
    pub fn running(&mut self) -> &mut Option<(*mut pg_sys::QueryDesc, i32)> {
        // SAFETY: a form in the map; the reference is used at once.
        unsafe {
            match self {
                Form::Compiled(statement) => &mut (**statement).running,
                Form::Kept(tree) => &mut (**tree).running,
            }
        }
    }

    /// Whether it runs this query. The address alone does not say so: core frees the descriptor of an execution that failed
    /// without an End, and the next one may get its place. A descriptor that has our executor state is one we gave it to.
    pub fn runs(mut self, query: *mut pg_sys::QueryDesc) -> bool {
        if self.running().is_none_or(|(running, _)| running != query) {
            return false;
        }
        // SAFETY: a form in the map; core's query descriptor.
        unsafe {
            match self {
                Form::Compiled(statement) => (*query).estate == (*statement).estate(),
                Form::Kept(tree) => (*tree).is_in(query),
            }
        }
    }

    /// Its execution is gone without an end.
    pub fn fail(&mut self) {
        *self.running() = None;
        // SAFETY: a form in the map.
        unsafe {
            match self {
                Form::Compiled(statement) => (**statement).fail(),
                Form::Kept(tree) => (**tree).is_broken = true,
            }
        }
    }
}

impl Entry {
    pub fn form(&mut self) -> Option<Form> {
        match self {
            Entry::General | Entry::Again { .. } => None,
            Entry::Compiled(statement) => Some(Form::Compiled(&raw mut **statement)),
            Entry::Kept(tree) => Some(Form::Kept(&raw mut **tree)),
        }
    }

    /// Whether it is as good as made now.
    pub fn is_valid(&self, functions: u64) -> bool {
        match self {
            Entry::General | Entry::Again { .. } => true,
            Entry::Compiled(statement) => statement.functions_generation == functions,
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
            Entry::Compiled(statement) => Some(statement.used),
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
        if drops < DROPS_MAX {
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
