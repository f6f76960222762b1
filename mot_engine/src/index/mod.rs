//! Index entries: sets of (key, slot) above the tree, uniqueness, building.
//!
//! The three rules everything leans on:
//! 1. A writer installs its version first and makes sure of the entry then; so an entry leads to a row that has, had or is about to have the key.
//! 2. An entry is removed only under the latch of its leaf, after the row's whole chain (unfinished versions included) was walked there and
//!    no version has the key. With rule 1 no live version can lose its entry.
//! 3. Uniqueness is decided under the same latch. What needs the `Clock` is judged before; under the latch only the heads' addresses are
//!    compared with those judged. The caller stays pinned from judging to deciding, so an address cannot be another version's by then.

mod build;
mod collect;
mod crew;
mod cuts;
mod enter;
mod gather;
mod judge;
mod keys;
mod order;
mod pages;
mod plan;
mod posting;
mod ranges;
mod remove;
mod size;
#[cfg(test)]
mod tests;
mod together;

pub use build::Build;
pub(crate) use build::{build, build_gathered, build_unjudged, gathering_allowance, is_small};
#[cfg(test)]
pub(crate) use enter::enter_key;
pub(crate) use enter::{EntryOutcome, probe_key};
pub(crate) use gather::{Allowance, Gatherer, Harvest};
pub(crate) use keys::Sorter;
pub(crate) use posting::{only_slot, slots_len, slots_of};
pub use ranges::EntryRange;
pub(crate) use remove::{clear_tree, remove_key};
pub(crate) use together::{KEYS_TOGETHER, Obstacle, enter_row};

use crate::errors::EngineError;
use crate::ids::Slot;
use crate::key::KeyBuffer;
use crate::limits::KEY_BYTES_MAX;

/// Bytes of the slot appended to the key of a suffixed entry.
pub(crate) const SUFFIX_BYTES: usize = 8;

const _: () = assert!(KEY_BYTES_MAX + SUFFIX_BYTES <= mot_index::MAX_KEY_BYTES);

/// Makes a suffixed entry's key.
pub(crate) fn append_slot(key: &mut KeyBuffer, slot: Slot) -> Result<(), EngineError> {
    key.push(&slot.0.to_be_bytes())
}
