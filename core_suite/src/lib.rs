//! Compares what PostgreSQL's own test suites print on heap tables and on another kind of table,
//! statement by statement; see the README.

mod alignment;
mod compare;
pub mod failure;
mod groups;
pub mod isolation;
pub mod known;
mod message;
pub mod regression;
pub mod report;
mod script;
pub mod suite;
mod unit;

pub use compare::{Comparison, Verdict};
pub use unit::Unit;
