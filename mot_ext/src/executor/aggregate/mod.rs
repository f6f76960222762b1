//! Aggregates computed inside the scan, over the rows as they lie in the arena.
//!
//! Core's Agg node pulls every row through a slot and calls a transition function for it. Where a
//! query asks one table of ours for counts, sums, averages, smallest and largest values of plain
//! types, for all rows or GROUP BY one or two plain values (`mot_programs`), a node above the scan
//! takes the rows from it, many at a time, and adds them up itself.
//!
//! # The plan
//!
//! A node of no relation, whose rows are the aggregates, over the node that scans the table: that
//! one is begun, begun anew, locked for SERIALIZABLE, shared among parallel workers and explained
//! as any scan. Core never asks it for a row; this node takes its rows from the running scan
//! ([`RowSource`]). HAVING and expressions over aggregates are this node's conditions and targets,
//! which core evaluates.
//!
//! # What is the same
//!
//! - Conditions: the scan's filter, over a group of rows (`mot_programs::filter::Group`); core's
//!   own expression for rows that it is not sure of, and wherever core evaluates conditions anyway.
//!   Rows of such a group go one by one, so that errors come in core's order.
//! - Arguments are columns, or what the filter can compute; an argument that it is not sure of
//!   (overflow, a numeric that does not fit) is core's to evaluate.
//! - Sums are exact, and their results made by core's functions as core's final functions make them
//!   ([`numeric`]).
//! - Functions are known by their oids. EXECUTE is asked for as core's Agg node asks ([`rights`]).
//! - Groups come in no order, as core's hashed ones; which of two rows' errors is raised is the
//!   same.
//! - DISTINCT, ORDER BY, user-defined aggregates, parameters in arguments and all the rest: not
//!   offered, core's Agg node does it.
//!
//! `mot.compiled_statements = off` plans none, and leaves conditions and arguments of those that
//! were planned before to core.
mod call;
mod functions;
mod grouped;
mod node;
mod numeric;
mod rights;
mod running;
mod take;

pub use call::{call, key};
pub use grouped::{TIMES_FITTING, bytes_of_group, memory_limit};
pub use mot_programs::aggregate::KEYS_MAX;
pub use node::{Aggregation, RowSource, check_rights};
