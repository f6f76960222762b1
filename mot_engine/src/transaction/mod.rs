//! A transaction's work: what it changed, in order, so that it can be logged, committed, or rolled
//! back, wholly or to a savepoint. README.md has the protocol.
//!
//! | file | what |
//! |---|---|
//! | `insert`, `update`, `lock`, `enter` | the calls of a statement |
//! | `keys_unchanged` | updates of columns that no index has |
//! | `rival` | another row with a key, for constraints that the server checks |
//! | `state_at` | which of a row's states a tuple id names |
//! | `examine` | what a writer finds at a row; the peer is HeapTupleSatisfiesUpdate |
//! | `definitions`, `copy`, `reform` | tables and indexes; copies of rows; keys behind rows |
//! | `own_rows`, `own_tables` | rows changed very often; rows of a table that it has made |
//! | `log`, `commit`, `abort`, `prepare` | the ends of a transaction |
//! | `kept_locks` | row locks of prepared transactions over a restart |
//! | `pending_free`, `free` | what is dropped for good, and its memory |
//! | `prefetch`, `pinned` | prefetching, and short pins, at the ends of large transactions |
//!
//! The engine never waits. A writer that meets another's unfinished work answers `Busy(xid)`; the
//! caller waits and calls again.
//!
//! Invariants:
//! - Room for the operation is reserved before anything is published: what is published is
//!   recorded.
//! - Operations of a savepoint level are a suffix of the list: earlier ones belong to outer levels.
//! - Commit, abort and savepoint abort cannot fail, ask no `Clock`, and need no new memory.
//! - Every row of a data operation is owned: no other transaction puts a data version on it before
//!   this one ends.
//! - Rows of a table that the transaction has made may have no operations (`own_tables.rs`).

mod abort;
mod commit;
mod copy;
mod definitions;
mod enter;
mod examine;
mod free;
mod insert;
mod kept_locks;
mod keys_unchanged;
mod lock;
mod log;
mod own_rows;
mod own_tables;
mod pending_free;
mod pinned;
mod prefetch;
mod prepare;
mod reform;
mod rival;
mod state_at;
mod update;

pub use copy::{CopiedRow, Form, TableCopy, Which};
pub(crate) use definitions::{NewTable, allocate_table, publish_index};
pub use enter::Entered;
pub(crate) use free::free_index;
pub use free::{free_pending, log_and_free_pending};
pub use kept_locks::LocksOf;
pub use keys_unchanged::KeysUnchanged;
pub use lock::Locked;
pub use log::Log;
pub use own_rows::{ALIAS_BITS, Alias, NAMED_BY_ORDINAL, OwnRow};
pub(crate) use reform::{Reforming, put as put_image};
pub use reform::{Reforms, Standing};
pub use rival::Rival;
pub use state_at::StateAt;
pub use update::Written;

use crate::errors::EngineError;
use crate::ids::{RelationKey, RowId, Xid};
use crate::limits::ROW_ID_BITS;
use crate::row::{Head, VersionRef};
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use std::ptr::NonNull;

/// Savepoints deeper than this are refused: the level has 22 bits, what the row id leaves of an
/// operation's second word.
const LEVELS_MAX: u32 = (1 << (64 - ROW_ID_BITS)) - 1;
const KIND_MASK: u64 = 7;

#[derive(Copy, Clone, Eq, PartialEq, Debug)]
#[repr(u8)]
enum Kind {
    Insert = 0,
    Update = 1,
    Delete = 2,
    Lock = 3,
    CreateTable = 4,
    DropTable = 5,
    CreateIndex = 6,
    DropIndex = 7,
}

impl Kind {
    fn is_data(self) -> bool {
        matches!(self, Kind::Insert | Kind::Update | Kind::Delete)
    }

    /// Whether it is of a row, and not of a definition.
    fn is_of_row(self) -> bool {
        self.is_data() || self == Kind::Lock
    }
}

/// One operation in 24 bytes: a large COPY has one per row.
#[derive(Copy, Clone)]
struct Operation {
    table: TableRef,
    row_id_and_level: u64,
    /// Address of a version or an index, kind in the low bits.
    what: u64,
}

const _: () = assert!(size_of::<Operation>() == 24);

impl Operation {
    fn row_id(&self) -> RowId {
        RowId(self.row_id_and_level & ((1 << ROW_ID_BITS) - 1))
    }

    fn level(&self) -> u32 {
        (self.row_id_and_level >> ROW_ID_BITS) as u32
    }

    fn set_level(&mut self, level: u32) {
        self.row_id_and_level = self.row_id().0 | u64::from(level) << ROW_ID_BITS;
    }

    fn kind(&self) -> Kind {
        match self.what & KIND_MASK {
            0 => Kind::Insert,
            1 => Kind::Update,
            2 => Kind::Delete,
            3 => Kind::Lock,
            4 => Kind::CreateTable,
            5 => Kind::DropTable,
            6 => Kind::CreateIndex,
            _ => Kind::DropIndex,
        }
    }

    /// Where its version was when it was installed; see [`Own`].
    fn address(&self) -> u64 {
        debug_assert!(self.kind().is_data() || self.kind() == Kind::Lock);
        self.what & !KIND_MASK
    }

    fn index(&self) -> IndexRef {
        debug_assert!(matches!(self.kind(), Kind::CreateIndex | Kind::DropIndex));
        IndexRef(NonNull::new((self.what & !KIND_MASK) as *mut _).expect("an operation has it"))
    }
}

/// The (sub)transaction ids a transaction wrote with.
///
/// Once PostgreSQL has decided, others may resolve our versions. One may be superseded and pruned,
/// and its memory reused, before our own commit or abort reaches it. So an address is believed only
/// if it is found in the row's chain with an xid of ours.
#[derive(Default)]
struct Own {
    /// Ascending.
    xids: Vec<OwnXid>,
}

#[derive(Copy, Clone)]
struct OwnXid {
    xid: Xid,
    /// Position of the first operation with it, or one before: all others come later.
    since: usize,
}

impl Own {
    fn place(&self, xid: Xid) -> Result<usize, usize> {
        match self.xids.last() {
            Some(last) if last.xid == xid => Ok(self.xids.len() - 1),
            _ => self.xids.binary_search_by_key(&xid, |own| own.xid),
        }
    }

    fn has(&self, xid: Xid) -> bool {
        self.place(xid).is_ok()
    }

    /// Whether it is one of ours and was used by no operation before this position.
    fn is_since(&self, xid: Xid, position: usize) -> bool {
        self.place(xid)
            .is_ok_and(|place| self.xids[place].since >= position)
    }

    /// The next operation, at this position, is to have the xid.
    fn add(&mut self, xid: Xid, position: usize) -> Result<(), EngineError> {
        match self.place(xid) {
            Ok(_) => self.lower(xid, position),
            Err(place) => {
                self.xids
                    .try_reserve(1)
                    .map_err(|_| EngineError::OutOfProcessMemory)?;
                let own = OwnXid {
                    xid,
                    since: position,
                };
                self.xids.insert(place, own);
            }
        }
        Ok(())
    }

    /// Operations from this position on have had the id.
    fn lower(&mut self, xid: Xid, position: usize) {
        if let Ok(place) = self.place(xid) {
            let since = &mut self.xids[place].since;
            *since = position.min(*since);
        }
    }

    /// The operations from this position on were rolled back. Versions of them that are still there
    /// are flagged ABORTED.
    fn forget_since(&mut self, position: usize) {
        // A subtransaction's xid is above those that came before it.
        while self.xids.pop_if(|own| own.since >= position).is_some() {}
    }

    /// The version an operation installed, if it still is in the row's chain. The caller is pinned.
    fn find(&self, head: Head, operation: &Operation) -> Option<VersionRef> {
        let wanted = operation.address();
        let mut at = head.version();
        while let Some(version) = at {
            if version.address() == wanted {
                return self.has(version.xid()).then_some(version);
            }
            at = version.next();
        }
        None
    }
}

/// A version that is not published yet: freed unless it is, also when a clock unwinds. The session
/// notes it, for the end of a process that does not unwind. One at a time.
struct Fresh<'a> {
    session: &'a Session,
}

impl Fresh<'_> {
    fn none(session: &Session) -> Fresh<'_> {
        debug_assert!(session.unpublished.get().is_none());
        Fresh { session }
    }

    fn version(&self) -> Option<VersionRef> {
        self.session.unpublished.get()
    }

    fn insert(&mut self, version: VersionRef) -> VersionRef {
        self.session.unpublished.set(Some(version));
        version
    }

    /// It is published now.
    fn keep(&mut self) {
        self.session.unpublished.set(None);
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        self.session.free_unpublished();
    }
}

/// A transaction's work. One per process; empty between transactions, its memory kept.
#[derive(Default)]
pub struct Transaction {
    operations: Vec<Operation>,
    own: Own,
    known: examine::Known,
    own_rows: own_rows::OwnRows,
    own_tables: own_tables::OwnTables,
    level: u32,
    /// Some of its rows were logged.
    is_logged: bool,
    /// Nothing more of it will be logged.
    is_sealed: bool,
    writers: log::Writers,
}

/// Operations kept allocated between transactions.
const OPERATIONS_KEPT: usize = 4096;

impl Transaction {
    /// An empty transaction.
    pub fn new() -> Transaction {
        Transaction::default()
    }

    /// The savepoint level of the operations to come (PostgreSQL's nest level).
    pub fn set_level(&mut self, level: i32) -> Result<(), EngineError> {
        let level = level.max(0) as u32;
        if level > LEVELS_MAX {
            return Err(EngineError::TooManyLevels { max: LEVELS_MAX });
        }
        self.level = level;
        Ok(())
    }

    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Whether anything was done that must be logged. Row locks and temporary tables are not.
    pub fn has_changes(&self) -> bool {
        self.operations.iter().any(|operation| {
            operation.kind() != Kind::Lock && !operation.table.key().is_temporary()
        })
    }

    /// Whether it has created or dropped a table or an index.
    pub fn has_definitions(&self) -> bool {
        self.operations
            .iter()
            .any(|operation| !operation.kind().is_of_row())
    }

    /// The largest id that rows of it bear: its own, or a subtransaction's.
    pub fn newest_xid(&self) -> Option<Xid> {
        self.own.xids.last().map(|own| own.xid)
    }

    /// Operations so far.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// The transaction is about to end well, and what it did, if anything, is logged: nothing more
    /// can be done in it but with temporary tables.
    pub fn seal(&mut self) {
        self.is_sealed = true;
    }

    /// It has ended: the next one begins.
    pub fn unseal(&mut self) {
        self.is_sealed = false;
    }

    /// Before each operation of this transaction id, on a relation: refuses one that is too late or
    /// whose id is too high, notes the id, and makes room to record the operation. That of the last
    /// insert is let go, if it is not needed (`own_tables.rs`). Work on a temporary table may
    /// continue when all else is logged (ON COMMIT), because it is not logged.
    fn begin_operation(&mut self, relation: RelationKey, xid: Xid) -> Result<(), EngineError> {
        if (self.is_logged || self.is_sealed) && !relation.is_temporary() {
            return Err(EngineError::Corrupt {
                what: "a row is changed after its transaction's changes were logged",
            });
        }
        if xid > Xid::MAX {
            return Err(EngineError::XidTooHigh { max: Xid::MAX.0 });
        }
        self.let_go();
        self.own.add(xid, self.operations.len())?;
        self.operations
            .try_reserve(1)
            .map_err(|_| EngineError::OutOfProcessMemory)
    }

    /// Records an operation; room was reserved.
    fn push(&mut self, kind: Kind, table: TableRef, row_id: RowId, address: u64) {
        debug_assert_eq!(address & KIND_MASK, 0);
        debug_assert!(self.operations.len() < self.operations.capacity());
        self.operations.push(Operation {
            table,
            row_id_and_level: row_id.0 | u64::from(self.level) << ROW_ID_BITS,
            what: address | kind as u64,
        });
    }

    fn clear(&mut self) {
        self.operations.clear();
        self.operations.shrink_to(OPERATIONS_KEPT);
        self.known.forget();
        self.own_rows.clear();
        self.own_tables.clear();
        self.own.xids.clear();
        self.own.xids.shrink_to(OPERATIONS_KEPT);
        self.level = 0;
        self.is_logged = false;
    }
}
