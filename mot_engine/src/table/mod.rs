//! Tables and indexes as they lie in the arena, the directory from slots to anchors, and the
//! catalog from relations to storages.

mod by_oid;
mod catalog;
mod directory;
mod index;
mod makers;
mod persistence;
mod slots;
mod storage;

pub use catalog::Walk;
pub(crate) use catalog::{Catalog, exists};
pub(crate) use directory::{DIRTY_WORD_SLOTS, Directory, GROUP_SLOTS, RANGE_SLOTS};
pub(crate) use index::EntryForm;
pub use index::IndexRef;
pub(crate) use makers::{Outcome, Settling, outcome};
pub use persistence::Persistence;
pub(crate) use slots::{SlotBatches, free_slot};
pub(crate) use storage::TableStorage;
pub use storage::{TableCounters, TableRef};
