//! A TPC-C driver for memory-optimized and heap tables, comparable with BenchmarkSQL 5, with a
//! ledger of acknowledged transactions that is compared with the database after a crash.
//!
//! From the outside in: [`cli`] names the commands; [`load`] and [`run`] and [`check`] and
//! [`ledger_check`] each do one; [`terminal`] is the inner loop, [`interactive`] and [`procedures`]
//! the transactions, [`session`] the wire; [`meter`] reads
//! what a run costs the server; [`cluster`] is a private PostgreSQL and [`demo`] the whole
//! comparison of the two engines.

pub mod check;
pub mod cli;
pub mod cluster;
pub mod demo;
pub mod effect;
pub mod engine;
pub mod failure;
pub mod inputs;
pub mod interactive;
pub mod ledger;
pub mod ledger_check;
pub mod load;
mod login;
pub mod meter;
pub mod procedures;
pub mod processes;
mod progress;
pub mod random;
pub mod report;
mod row;
pub mod rows;
pub mod rto;
pub mod run;
pub mod scale;
pub mod schema;
pub mod session;
mod socket;
pub mod statements;
pub mod stats;
pub mod target;
pub mod terminal;
pub mod timestamp;
