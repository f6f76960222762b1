//! Filling an index: from the rows that are there, from keys gathered while rows are loaded, or
//! beside writers.
//!
//! | file | what |
//! |---|---|
//! | `steps`, `plan`, `threads` | index builds from rows: steps, parts, threads |
//! | `collect`, `gather` | keys from rows that are there; keys while rows are loaded |
//! | `keys`, `order`, `split_keys`, `prefault` | keys in process memory: sorted, split |
//! | `beside` | an index filled beside writers |
//!
//! Calls [`entry`](super::entry), which does not call it.

mod beside;
mod collect;
mod gather;
mod keys;
mod order;
mod plan;
mod prefault;
mod split_keys;
mod steps;
#[cfg(test)]
mod tests;
mod threads;

pub(crate) use gather::{Allowance, Gatherer, Harvest};
pub(crate) use keys::Sorter;
pub use steps::Build;
pub(crate) use steps::{build, build_by_hints, build_gathered, gathering_allowance, is_small};
