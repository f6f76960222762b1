//! Reading rows by key: conditions on key columns, the ranges that they bound, and the scan of
//! those. Index scans and compiled statements read through this room. README.md has the details.
pub mod bounds;
pub mod conditions;
mod prefixes;
pub mod scan;
pub mod search;
