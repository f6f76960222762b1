//! Logical decoding of changes, for logical replication and other readers of replication slots.
//!
//! | file | what |
//! |---|---|
//! | `write` | a record for each change, where `wal_level` is logical |
//! | `identity` | the old row, as a subscriber finds it |
//! | `read` | the resource manager's `rm_decode`: from a record to core's reorder buffer |
//!
//! A transaction's own records (`transaction/wal_log.rs`) cannot be decoded. They come at
//! PRE_COMMIT and are net: of a row that changed twice they have the last state. A subscriber would
//! meet keys that are swapped, and rows that move between partitions, in an impossible order. The
//! storage that they name may have been replaced since. So each change is logged a second time when
//! it is made, as heapam logs it (`log_heap_update`, `DecodeUpdate`). Replay passes over that
//! record (`mot_engine/src/log/logical.rs`).
//!
//! Invariants:
//! - A record is written when the change can fail no more but by rolling back its subtransaction:
//!   all keys are entered, and a speculative row is confirmed. It bears the subtransaction's id.
//! - It names the file that the relation has then, by which decoding finds the relation in the
//!   catalogs of that moment.
//! - What is no change of values writes none: VACUUM FULL, CLUSTER, REFRESH, keys of an index that
//!   comes later, row locks.
//!
//! Called by `rows`, `table_am` and `recovery`; calls those below it.
mod identity;
pub mod read;
mod write;

pub use write::{deleted, inserted, updated};
