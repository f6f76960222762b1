//! Rows as core has them and as the engine has them: forming, showing, writing and locking one row.
//! README.md has the protocol.
//!
//! - Rows are shown in place: a slot points into the arena. The statement's registered snapshot
//!   keeps every version that it can see, so nothing is copied and nothing is pinned between two
//!   calls.
//! - The engine never waits. The loops in `insert`, `write` and `lock_rows` wait and call it again,
//!   as heapam does.
pub mod insert;
pub mod lock_rows;
pub mod row_slot;
pub mod tid;
pub mod tuple;
pub mod write;
mod xmax;
