//! One entry: a key and a row id, above the tree. Making it, with or without a test of uniqueness,
//! and removing it.
//!
//! | file | what |
//! |---|---|
//! | `together`, `enter` | the entries of a row in all indexes; one entry, and uniqueness |
//! | `candidate` | whether another row has the key |
//! | `remove`, `remaining` | entries that no version needs any more; keys left in a long chain |
//! | `posting` | the row ids of one unique key |
//! | `suffix` | the row id behind a key that is not unique |
//! | `ranges` | where a row's entries lie, for SSI |
//!
//! The rules on which it rests are in [`super`].

mod candidate;
mod enter;
pub(super) mod posting;
mod ranges;
mod remaining;
mod remove;
mod suffix;
mod together;

pub(super) use enter::enter_at;
#[cfg(test)]
pub(crate) use enter::enter_key;
pub(crate) use enter::{EntryOutcome, NOT_TESTED, Uniqueness, probe_key, resolve_row};
pub(crate) use posting::{only_row_id, row_ids_of};
pub use ranges::EntryRange;
pub(crate) use remaining::RemainingKeys;
pub(crate) use remove::{clear_some, remove_key};
pub(crate) use suffix::append_row_id;
pub(crate) use together::{Obstacle, enter_row, enter_row_in};
