//! An ordered concurrent map of byte keys to 48-bit values: a trie of B+trees.
//!
//! The structure is the one of Mao, Kohler and Morris, *Cache Craftiness for Fast Multicore
//! Key-Value Storage* (EuroSys 2012), written from the paper. `README.md` beside this crate
//! describes the node layout, the protocol and where it differs from the paper.
//!
//! Contract of the crate:
//!
//! - Nodes hold nothing that belongs to one process: no vtables, function pointers, thread ids or
//!   heap objects. A tree may live in memory that forked processes share, provided it is mapped at
//!   the same address everywhere. All memory of a tree comes from and returns to a [`Memory`].
//! - The tree never pins an epoch itself. The caller that makes a [`Tree`] handle promises (see
//!   [`Tree::new`]) that the calling thread is pinned in the memory's epoch during every call. So
//!   nothing retired during the call is freed before it returns.
//! - Readers write nothing to shared memory and never wait for a latch. They wait only for the few
//!   stores of a node that is being rearranged at that moment. Writers latch the leaf that they
//!   change and, when nodes split or vanish, those nodes' ancestors.
#![warn(missing_docs)]

mod bag;
mod batch;
mod bulk;
mod clear;
mod cursor;
mod cut;
mod descend;
mod direction;
mod entries;
mod frame;
mod held;
mod insert_position;
mod join;
mod layer;
mod many;
mod measure;
mod memory;
mod node;
mod permutation;
mod redistribute;
mod scan;
mod simd;
mod slice;
mod split;
mod suffixes;
mod sync;
mod tree;
mod unlink;
mod update;
mod verify;
mod version;
mod widen;

#[cfg(feature = "crossbeam")]
mod map;

pub use batch::{Batch, Bound};
pub use bulk::{BulkError, TreePart, may_part};
pub use cursor::Cursor;
pub use direction::Direction;
pub use insert_position::InsertPosition;
pub use measure::Measure;
pub use memory::{Memory, OutOfMemory};
pub use node::{MAX_VALUE, NARROW_LEAF_BYTES, NODE_BYTES};
pub use slice::MAX_KEY_BYTES;
pub use tree::{Tree, TreeRoot};
pub use update::Change;
pub use verify::{Corruption, TreeStats};

#[cfg(feature = "crossbeam")]
pub use map::{CrossbeamMemory, Map};
#[cfg(feature = "model")]
pub use redistribute::noted::{Redistributions, redistributions};
#[cfg(feature = "model")]
pub use widen::noted::widened;
