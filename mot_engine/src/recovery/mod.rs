//! Recovery: the newest checkpoint into memory, then the log.
//!
//! Contract:
//! - Until `load` returned nobody else uses the tables. It runs plain threads that call nothing of
//!   PostgreSQL; the caller's process needs no more than memory.
//! - `Replayer::apply` is called by one process, with records in the order of the log. It is
//!   idempotent: a record, or the part of it, that the tables already have is skipped by LSN. Hot
//!   standby's readers may run beside it.
//! - After `ArenaFull` from `apply` the same record may be applied again, once there is room.
//! - `settle` is called by the reclaimer of a standby, beside replay.
//! - `finish` is called once, when replay (if any) is over and before the first writer.

mod finish;
mod load;
mod replay;
mod rows;

#[cfg(test)]
mod crash_test;
#[cfg(test)]
mod full_test;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads_test;

pub use finish::{Finished, finish, finish_beside_prepared, settle};
pub use load::{Loaded, load};
pub use replay::Replayer;
