//! Recovery: the newest checkpoint into memory, then the log.
//!
//! Contract:
//! - Until `load` returned nothing else uses the tables. It runs plain threads that call
//!   nothing of PostgreSQL; the caller's process needs no more than memory.
//! - `Replayer::apply` (or `ParallelReplayer::apply`, with threads) is called by one process, with
//!   records in the order of the log. It is idempotent: a record, or the part of it, that the
//!   tables already have is skipped by LSN. Hot standby's readers may run beside it; beside the
//!   parallel one they wait first until `Engine::replay_reached` says yes to
//!   `Engine::replay_handed`, asked after they took their snapshot.
//! - After `ArenaFull` from `apply` the same record may be applied again, once there is room; after
//!   `TooManyIndexes`, once `resolve_gone_indexes` has found some.
//! - `resolve_definitions` is called by the reclaimer of a standby, beside replay.
//! - `ParallelReplayer::resolve_below` is called, drained, before the server's commit log is cut
//!   off.
//! - `Session::drop_ended_locks` is called now and then, or records of row locks gather.
//! - `finish` is called once, when replay (if any) is over (drained) and before the first writer.
//!
//! README.md beside this file has the protocol of parallel replay.

mod finish;
mod load;
mod look;
mod outcomes;
mod parallel;
mod prefetch;
mod queue;
mod replay;
mod rows;
mod workers;

#[cfg(test)]
mod crash_test;
#[cfg(test)]
mod full_test;
#[cfg(test)]
mod parallel_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads_test;

pub use finish::{
    AppliedHorizon, Finished, finish, finish_beside_prepared, resolve_definitions,
    resolve_gone_indexes,
};
pub use load::{Loaded, load, load_after_shutdown};
pub use parallel::{HandOver, ParallelReplayer};
pub use replay::Replayer;
pub use workers::Stopper;
