//! Rows: anchors and the chains of versions they head. README.md has the layout and the protocol.
//!
//! | file | what |
//! |---|---|
//! | `anchor` | the head word and the LSN of a row |
//! | `version` | one state of a row, and its flags |
//! | `chain` | which version is visible, or newest; resolving; unlinking |
//! | `ordinal` | the change count in a state; what a tombstone says |
//! | `strength` | strengths of row locks |
//! | `prefetch` | prefetching |
//!
//! It calls `clock`, and knows nothing of tables, indexes or the log.

mod anchor;
mod chain;
mod ordinal;
mod prefetch;
mod strength;
mod version;

pub(crate) use anchor::LatchedAnchor;
pub use anchor::{Anchor, Head};
pub use chain::{Newest, is_visible, newest, visible};
pub(crate) use chain::{
    TxnStatus, counted_as_top, counted_early, newest_committed_or_own, oldest_needed,
    resolve_maker, states_from, unlink,
};
pub(crate) use ordinal::MOVED_AWAY_BODY;
pub use ordinal::TombstoneNote;
pub(crate) use prefetch::{
    prefetch_anchor, prefetch_at, prefetch_below, prefetch_header, prefetch_state, prefetch_version,
};
pub use strength::LockStrength;
pub(crate) use version::EMPTY_BODY;
pub use version::{
    BODY_BYTES_MIN, IMAGE_BYTES_MIN, STAMP_BYTES, Version, VersionRef, block_bytes, flags,
};
