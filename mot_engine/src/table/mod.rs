//! Tables and indexes as they lie in the arena.
//!
//! | file | what |
//! |---|---|
//! | `storage`, `index` | a table's storage, an index's storage |
//! | `catalog` | from a relation to its storages |
//! | `directory`, `row_ids` | from a row id to its anchor; free row ids |
//! | `makers` | the creator and the dropper of a definition, and how that is resolved |
//! | `persistence` | what of a table is logged and checkpointed |
//!
//! Below it are `memory`, `row` and `key`.

mod by_oid;
mod catalog;
mod directory;
mod index;
mod makers;
mod persistence;
mod row_ids;
mod storage;

pub use catalog::Walk;
pub(crate) use catalog::{Catalog, exists};
pub(crate) use directory::{DIRTY_WORD_ROW_IDS, Directory, GROUP_ROW_IDS, RANGE_ROW_IDS};
pub(crate) use index::EntryForm;
pub use index::IndexRef;
pub(crate) use makers::{DefinitionStatus, Outcome, outcome};
pub use persistence::Persistence;
pub(crate) use row_ids::{RowIdBatches, free_row_id};
pub(crate) use storage::TableStorage;
pub use storage::{TableCounters, TableRef};
