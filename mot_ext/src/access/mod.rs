//! Reading rows by key: conditions on key columns, the ranges that they bound, and the scan of
//! those. README.md says what each file holds.
//!
//! May be called by all rooms above: `index_am` and `compiled` read through it. Calls `rows`,
//! `transaction`, `executor` and `keys`.
pub mod bounds;
pub mod conditions;
mod prefixes;
pub mod scan;
pub mod search;
