//! Index entries: sets of (key, row id) above the tree, uniqueness, index builds.
//!
//! | room | what |
//! |---|---|
//! | `entry` | one entry: making and removing it; uniqueness |
//! | `build` | filling an index |
//! | `size` | memory of an index |
//!
//! May be called by `transaction`, `reclaim`, `recovery`, `scan` and `check`. Calls `session`,
//! `table`, `row`, `key`, `memory` and `mot_index`.
//!
//! Three rules, on which all of it rests:
//!
//! 1. A writer publishes its version first, then makes the entry. So an entry leads to a row that
//!    has, had or is about to have the key.
//! 2. An entry is removed only under the latch of its leaf, after the row's whole chain (unfinished
//!    versions included) was walked there and no version has the key. With rule 1 no live version
//!    can lose its entry.
//! 3. Uniqueness is decided under the same latch. What needs the `Clock` is resolved before. Under
//!    the latch only the addresses in the heads are compared with those of the resolved versions.
//!    The caller stays pinned from the one to the other, so an address cannot be another version's
//!    by then.

mod build;
mod entry;
mod size;

pub use build::Build;
pub(crate) use build::{
    Allowance, Gatherer, Harvest, Sorter, build, build_by_hints, build_gathered,
    gathering_allowance, is_small,
};
pub use entry::EntryRange;
#[cfg(test)]
pub(crate) use entry::enter_key;
pub(crate) use entry::{
    EntryOutcome, NOT_TESTED, Obstacle, RemainingKeys, Uniqueness, append_row_id, clear_some,
    enter_row, enter_row_in, only_row_id, probe_key, remove_key, resolve_row, row_ids_of,
};
