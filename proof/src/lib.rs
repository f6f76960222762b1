//! Proof that isolation levels keep their word: histories of random transactions, checked for
//! anomalies, and heap and MOT tables in lock step, and random queries on both. The README says
//! how, and after whom.

pub mod check;
pub mod classes;
pub mod cli;
pub mod differential;
pub mod failure;
pub mod history;
pub mod pairs;
pub mod plans;
pub mod queries;
pub mod wire;
