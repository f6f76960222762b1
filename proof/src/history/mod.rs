//! Histories: what a crowd of clients asked of a server, and what it answered.
//!
//! [`record`] is the form of a history and its file; [`workload`] draws transactions and [`client`]
//! runs them; [`run`] is the whole run, with [`upset`] for servers that are killed or replaced
//! under it.

pub mod client;
pub mod record;
pub mod run;
pub mod tables;
pub mod upset;
pub mod workload;
