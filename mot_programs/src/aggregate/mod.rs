//! Aggregates over groups of rows, also by the values of columns.
//!
//! Sums are exact. What a [`Fixed`] cannot hold is the embedder's to add up ([`Wide`]).
mod accumulate;
mod call;
mod fixed;
mod function;
mod grouping;
mod wide;

pub use accumulate::{Accumulator, Outcome};
pub use call::{Argument, Call, Step, Values};
pub use fixed::{Fixed, Fixeds, is_at_the_end};
pub use function::{Function, Input};
pub use grouping::{Groups, KEYS_MAX, Key, KeyValues, bytes_of_group, put_together};
pub use wide::Wide;
