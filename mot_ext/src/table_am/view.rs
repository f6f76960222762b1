//! What a scan or a fetch may see, by the kind of core's snapshot.
use crate::serializable::{self, Reader};
use crate::transaction::clock::{PgClock, PgSnapshot};
use crate::{errors, pg};
use mot_engine::{Now, RowId, Session, Snapshot, TableRef, VersionRef};
use pgrx::pg_sys::{self, SnapshotType::*};

/// How rows are seen.
pub enum View {
    /// By an MVCC snapshot.
    Mvcc(PgSnapshot<'static>),
    /// By the snapshot of a SERIALIZABLE transaction, with note taken.
    Serializable(Box<Reader>),
    /// As they are now, committed or the transaction's own (SnapshotSelf).
    Now,
}

/// Whether what a view shows stays as long as the statement's snapshot is registered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    Kept,
    /// It is to be copied at once.
    Passing,
}

impl View {
    /// The view of a registered snapshot on an open relation. Raises 0A000 for a snapshot that
    /// reads dead work; a scan under SnapshotDirty asks for no view.
    #[allow(non_upper_case_globals)]
    pub fn new(
        relation: pg_sys::Oid,
        table: TableRef,
        snapshot: pg::snapshot::Snapshot<'static>,
    ) -> View {
        match snapshot.kind() {
            SNAPSHOT_MVCC if serializable::is_on_for(table) => {
                refuse_older_than_copy(table, &PgSnapshot::new(snapshot));
                View::Serializable(Reader::new(relation, snapshot))
            }
            SNAPSHOT_MVCC => {
                let snapshot = PgSnapshot::new(snapshot);
                refuse_older_than_copy(table, &snapshot);
                View::Mvcc(snapshot)
            }
            SNAPSHOT_SELF => View::Now,
            _ => errors::unsupported(
                "scans of memory-optimized tables that read dead rows",
                "The views and functions of the schema mot tell of dead rows, and check tables.",
            ),
        }
    }

    /// Whether what it shows stays.
    pub fn keeping(&self) -> Keeping {
        match self {
            View::Now => Keeping::Passing,
            View::Mvcc(_) | View::Serializable(_) => Keeping::Kept,
        }
    }

    /// The version of a row that it shows.
    pub fn visible(&self, session: &Session, table: TableRef, row: RowId) -> Option<VersionRef> {
        match self {
            View::Mvcc(snapshot) => session.visible(table, row, snapshot),
            View::Now => session.visible(table, row, &Now(&PgClock)),
            View::Serializable(reader) => {
                let found = session.visible(table, row, &**reader);
                if let Some(version) = found {
                    reader.found(table, row, version);
                }
                reader.report();
                found
            }
        }
    }

    /// Reports to a serializable reader that all rows are about to be read.
    pub fn begin_all(&self) {
        if let View::Serializable(reader) = self {
            reader.begin_all();
        }
    }
}

/// Raises 40001 where a snapshot would miss all rows: those of a copy that replay made are of the
/// transaction that copied them (README, "Rewrites").
pub fn refuse_older_than_copy(table: TableRef, snapshot: &PgSnapshot<'_>) {
    if let Some(copied_by) = table.copied_by()
        && copied_by >= snapshot.xmin()
        && snapshot.running(copied_by)
    {
        errors::older_than_rewrite();
    }
}
