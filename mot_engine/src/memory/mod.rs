//! The engine's shared memory: one arena, its allocator, and the epochs that say when a freed block
//! may be reused.
//!
//! Contract:
//! - Everything shared lives in one [`Region`], mapped before the first fork, so a plain pointer
//!   into it means the same in every process. Nothing in it may point to process-local memory (no
//!   vtables, no `Vec`).
//! - [`Memory`] is the shared handle (a base pointer). [`LocalMemory`] is one process's (or
//!   thread's) way in: it owns a cache of blocks, a list of retired blocks and one line of the
//!   epoch table. It is never shared or forked.
//! - A block is freed with the size it was asked for; blocks carry no header.
//! - A block that other processes may be reading is *retired*, not freed, and is reused only when
//!   every process pinned at that time has unpinned.
//! - Latches are short, are never held across a call that can raise an error or wait, and never
//!   nest.
//! - A process killed in here leaves the region undefined: its owner resets the whole region (crash
//!   restart).

mod account;
mod arena;
mod bitmap;
mod cache;
mod chunk;
mod epoch;
mod garbage;
mod huge;
mod kept;
mod latch;
mod local;
mod orphan;
mod placement;
mod quiescent;
mod region;
mod size_class;
mod slab;
mod topology;
mod word;

pub use account::{ChunkReport, ClassReport, EpochReport, MemoryReport, Purpose};
pub use arena::{
    ARENA_BYTES_MIN, ArenaError, ArenaFull, ArenaOptions, LimitOf, Memory, RESERVE_BYTES_MIN,
    RESERVE_FRACTION, ROOTS, Urgency,
};
pub use chunk::{CHUNK_BYTES, SPAN_BYTES};
pub use epoch::{EPOCH_PARTICIPANTS_MAX, TooManyParticipants};
pub use kept::{Found, KeptError, KeptPlace, MARK_WORDS, Mark, Unmarked, remove_kept};
pub use latch::{Latch, LatchGuard, latches_held};
pub use local::{GarbageAt, LocalMemory, Pin};
pub(crate) use local::{Outer, UNLIMITED};
pub use placement::{Binding, Kernel, LinuxKernel, NODES_MAX, Placement};
pub use quiescent::ArenaNotQuiescent;
pub use region::{HugePages, Region, RegionError};
pub use size_class::{BLOCK_ALIGN, SMALL_BYTES_MAX, block_bytes};
pub use topology::Topology;
