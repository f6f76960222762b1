//! The engine of memory-optimized tables: rows, transactions, indexes, log records, checkpoints and
//! recovery, in memory that processes share.
//!
//! It knows nothing of PostgreSQL but the bytes of a heap tuple. What became of a transaction
//! ([`clock`]), where records go ([`transaction::Log`]) and what a disk is ([`disk`]) are traits.
//! So all of it runs in tests without a server.
//!
//! ARCHITECTURE.md lists the rooms. Beside them are [`engine`] (the shared root and its state),
//! [`session`] (one process's or thread's access), [`ids`], [`limits`], [`errors`], and for tests
//! [`pause`]. [`quiescent`] says whether memory may be taken over by a warm restart.
//!
//! Words of the code, and what the documents call the same:
//!
//! | in the code | in the documents |
//! |---|---|
//! | image; stamp | tuple; its first 18 bytes, which are the version's own |

// The tests beside the code share `tests/common`, which speaks of the crate by its name.
#[cfg(test)]
extern crate self as mot_engine;

#[cfg(test)]
mod all_committed;
pub mod check;
pub mod checkpoint;
pub mod clock;
pub mod collation;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
mod decoded;
pub mod disk;
pub mod engine;
pub mod errors;
pub mod ids;
pub mod index;
#[cfg(all(test, feature = "model"))]
mod interleavings;
pub mod key;
pub mod limits;
pub mod log;
pub mod memory;
pub mod pause;
pub mod quiescent;
pub mod reclaim;
pub mod recovery;
pub mod row;
pub mod scan;
pub mod session;
pub mod steps;
mod sync;
pub mod table;
pub mod threads;
pub mod transaction;

pub use check::{CheckReport, Problem};
pub use clock::{Clock, Now, Snapshot};
pub use engine::{Engine, State};
pub use errors::EngineError;
pub use ids::{
    CommandId, FileKey, IndexId, Lsn, ORDINALS, Ordinal, ROWS_PER_BLOCK, RelationKey, RowId,
    TableId, Xid,
};
pub use index::{Build, EntryRange};
pub use quiescent::{NotQuiescent, NotTakenOver, TakenOver};
pub use reclaim::Sweep;
pub use row::{LockStrength, Newest, VersionRef};
pub use scan::{
    Direction, GROUP_ROWS_MAX, GroupedScan, IndexScan, KeyRange, RowScan, SharedRowScan,
};
pub use session::{OldSnapshot, OldSnapshots, Session, Upon};
pub use table::{IndexRef, Persistence, TableRef, Walk};
pub use transaction::{
    ALIAS_BITS, Alias, Entered, KeysUnchanged, Locked, Log, NAMED_BY_ORDINAL, OwnRow, Reforms,
    Rival, Standing, StateAt, Transaction, Written,
};
