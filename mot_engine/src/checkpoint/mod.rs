//! Checkpoints: everything logged up to a redo position, in files of our own.
//!
//! Contract:
//! - A generation is complete once its manifest is in place; then it holds, for every row, every
//!   version logged up to its `redo` position that a snapshot may still need, and nothing that was
//!   not logged, but for the rows of unlogged tables in a final one. Replay from `redo` is
//!   idempotent by LSN, so rows may be written at any later state.
//! - WAL before data: the manifest is put in place only after the caller's `flush` made durable all
//!   WAL inserted before the call.
//! - Unchanged rows stay in the files of older generations.
//! - Writing stops no session and pins nothing for longer than a batch of rows.
//! - Damage is an error that names the file; nothing is skipped.

mod block;
mod empty;
mod files;
mod manifest;
mod pace;
mod progress;
mod ranges;
mod read;
mod reuse;
mod rows_file;
mod source;
mod source_note;
mod upgraded;
mod write;

#[cfg(test)]
mod tests;

pub use block::{BLOCK_BYTES, BlockBuilder, BlockHeader, BlockReader, VersionEntry};
pub use empty::seal_empty;
pub use files::{
    generations, manifest_name, newest, newest_for_replay, next_generation, parse_manifest,
    read_manifest, remove_old, remove_passed, remove_unnamed, rows_name,
};
pub use manifest::{FileEntry, IndexEntry, Manifest, RangeEntry, TableEntry, WholeFile};
pub use pace::{Pace, Timer, time_to_spread};
pub use progress::{CheckpointProgress, Phase};
pub use read::{BlockPlace, OpenRows, blocks_of, read_block, units_of};
pub use reuse::Counts;
pub use source::write;
#[cfg(test)]
pub(crate) use source::{EngineSource, begin_round, read_base};
pub use source_note::SourceNote;
pub use upgraded::{Mismatch, WithRows, with_rows_of};
pub use write::{CheckpointContext, Definitions, Outcomes, RowSource, Written, seal, write_from};

/// Name of the directory of checkpoints, under the data directory.
pub const DIRECTORY: &str = "mot";

/// What is wrong with a file's content.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Damage(pub &'static str);
