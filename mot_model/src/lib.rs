//! Runs the real code of the index and of the engine under a scheduler of its own, through many
//! interleavings.
//!
//! The crates' `sync` modules put these atomics in the place of the standard library's when their
//! feature `model` is on. The atomics have the size and the bytes of the standard ones, so they may
//! lie in shared memory, be made of zeroed pages and be overwritten when a block is freed: what
//! runs is the code that ships, not a copy of it.
//!
//! - **Interleavings** ([`explore`]): before each access to an atomic the scheduler (`shuttle`:
//!   half of the runs at random, half by priorities with few changes) may go on with another
//!   thread. Threads are coroutines of one thread, so a run is determined by its seed.
//! - **Memory orderings** (`memory`): a load may return any value that C++'s memory model allows it
//!   by what the thread has synchronized with, not only the newest. So a store that should be a
//!   release, or a fence that is missing, shows.
//! - **Freed memory** ([`freed`]): an access to a block that was given back fails the run.
//! - **Mutations** ([`is_broken`]): places in the code that leave a step out if a test asks for it.
//!   A model that cannot see the step missing does not prove anything, so each has tests with
//!   [`finds`].
//!
//! Outside [`explore`] the atomics are the standard ones.
//!
//! What it does not see: reorderings of accesses that are not atomic, and stores that become
//! visible before a load in front of them in the program ("load buffering"), which no processor we
//! know of does to these protocols.
#![warn(missing_docs)]

mod atomic;
mod memory;
mod run;

pub use atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, fence};
pub use core::sync::atomic::Ordering;
pub use memory::{allocated, freed};
pub use run::{explore, finds, is_broken, threads, yield_now};
