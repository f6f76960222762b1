//! Where a scan's rows come from: all of a table, one by its identity, or an index's ranges.

use crate::clock::{PgClock, PgSnapshot};
use crate::errors;
use crate::executor::expressions::{Value, get_tid};
use crate::executor::filter::Group;
use crate::fdw::bounds::Bounds;
use crate::fdw::private::Private;
use crate::fdw::serializable::Reading;
use crate::fdw::tuple;
use crate::pg::interrupts;
use crate::relation::Relation;
use crate::storage;
use mot_engine::key::IndexDefinition;
use mot_engine::{
    Direction, EngineError, IndexRef, IndexScan, KeyRange, RowScan, Session, SharedRowScan, Slot,
    Snapshot, TableRef, VersionRef,
};
use pgrx::pg_sys;

/// Where rows come from. One per scan, where it stays: a box would be one more allocation for each.
#[allow(clippy::large_enum_variant)]
pub(super) enum Source {
    Rows(Rows),
    /// One row, by its identity; asked for once.
    Row {
        identity: Value,
        is_read: bool,
    },
    Index(IndexSource),
}

/// All rows; beside parallel workers those parts that this process takes.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) scan: Option<RowScan>,
    /// In the query's shared memory; taken back before that goes.
    pub(super) shared: Option<&'static SharedRowScan>,
    /// No row is looked up before it is asked for.
    pub(super) is_one_by_one: bool,
}

impl Rows {
    pub(super) fn begin(&mut self, table: TableRef) {
        self.scan = match self.shared {
            Some(shared) => shared.take(table),
            None if self.is_one_by_one => Some(RowScan::new(table).one_by_one()),
            None => Some(RowScan::new(table)),
        };
    }

    #[inline]
    fn next<S: Snapshot>(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &S,
    ) -> Option<(Slot, VersionRef)> {
        loop {
            if let Some(found) = self.scan.as_mut()?.next(session, snapshot) {
                return Some(found);
            }
            self.scan = Some(self.shared?.take(table)?);
        }
    }
}

impl Rows {
    /// Adds the rows that are looked up together next; none at the end.
    #[inline]
    pub(super) fn next_group<S: Snapshot>(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &S,
        group: &mut Group,
    ) {
        while let Some(scan) = &mut self.scan {
            for (slot, version) in scan.next_group(session, snapshot) {
                group.push(slot, version);
            }
            if group.length() > 0 {
                return;
            }
            let Some(shared) = self.shared else {
                return;
            };
            self.scan = shared.take(table);
        }
    }
}

pub(super) struct IndexSource {
    index: IndexRef,
    oid: pg_sys::Oid,
    pub(super) scan: IndexScan,
    pub(super) bounds: Bounds,
    range: KeyRange,
    direction: Direction,
    is_in_range: bool,
}

impl Source {
    /// Where a plan says that its rows come from.
    pub(super) fn new(
        session: &'static Session,
        table: TableRef,
        private: &Private,
        arguments: &[Value],
    ) -> Source {
        if private.is_by_identity() {
            Source::Row {
                identity: arguments[0],
                is_read: false,
            }
        } else if private.index() == pg_sys::InvalidOid {
            Source::Rows(Rows::default())
        } else {
            Source::Index(IndexSource::new(session, table, private, arguments))
        }
    }

    /// The next row the snapshot sees.
    #[inline]
    pub(super) unsafe fn next<R: Reading>(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &R,
        context: *mut pg_sys::ExprContext,
    ) -> Option<(Slot, VersionRef)> {
        match self {
            Source::Rows(rows) => rows.next(session, table, snapshot),
            Source::Row { identity, is_read } => {
                if std::mem::replace(is_read, true) {
                    return None;
                }
                // SAFETY: compiled for the node whose context this is.
                let slot = unsafe { tuple::slot_of(get_tid(identity, context)?)? };
                let version = session.visible(table, slot, snapshot)?;
                Some((slot, version))
            }
            Source::Index(source) => match source.next(session, table, snapshot) {
                Ok(found) => found,
                Err(error) => errors::raise(error),
            },
        }
    }
}

impl IndexSource {
    fn new(
        session: &'static Session,
        table: TableRef,
        private: &Private,
        arguments: &[Value],
    ) -> IndexSource {
        let index = find_index(session, table, private.index());
        IndexSource {
            index,
            oid: private.index(),
            scan: IndexScan::new(),
            bounds: Bounds::new(definition(session, index), &private.keys(), arguments),
            range: KeyRange::new(),
            direction: if private.is_backward() {
                Direction::Backward
            } else {
                Direction::Forward
            },
            is_in_range: false,
        }
    }

    /// Begins anew, with the parameters' values of now.
    pub(super) unsafe fn begin(&mut self, context: *mut pg_sys::ExprContext) {
        self.is_in_range = false;
        // SAFETY: the arguments were compiled for the node whose context this is.
        unsafe { self.bounds.begin(context) };
    }

    /// The index, of the relation's storage looked up anew.
    pub(super) fn move_to(&mut self, session: &'static Session, table: TableRef) {
        self.index = find_index(session, table, self.oid);
        self.bounds.set_definition(definition(session, self.index));
    }

    /// Looks the one key up that is asked for; `false`: no row can have it.
    pub(super) unsafe fn look_up(
        &mut self,
        session: &Session,
        table: TableRef,
        context: *mut pg_sys::ExprContext,
    ) -> Result<bool, EngineError> {
        // SAFETY: the arguments were compiled for the node whose context this is.
        let Some(key) = (unsafe { self.bounds.point(context)? }) else {
            return Ok(false);
        };
        self.scan.look_up(session, table, self.index, key)?;
        Ok(true)
    }

    /// The first row with the one key that is asked for; `None` if no row can have it. A snapshot that is older than the index may see others.
    #[inline]
    pub(super) unsafe fn find(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &PgSnapshot<'static>,
        context: *mut pg_sys::ExprContext,
    ) -> Result<Option<Option<(Slot, VersionRef)>>, EngineError> {
        // SAFETY: as for the caller.
        match unsafe { self.bounds.point(context)? } {
            Some(key) => {
                let found = self.scan.find(session, table, self.index, key, snapshot)?;
                Ok(Some(found))
            }
            None => Ok(None),
        }
    }

    fn next<R: Reading>(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &R,
    ) -> Result<Option<(Slot, VersionRef)>, EngineError> {
        loop {
            if self.is_in_range {
                if let Some(found) = self.scan.next(session, snapshot)? {
                    return Ok(Some(found));
                }
                self.is_in_range = false;
            }
            // Rows of several keys: their misses overlap.
            if snapshot.may_read_ahead()
                && self.index.is_unique()
                && let Some(keys) = self.bounds.take_points(self.direction)?
            {
                self.scan.start_points(table, self.index, keys)?;
                self.is_in_range = true;
                continue;
            }
            // There may be very many ranges without a row.
            if interrupts::is_pending() {
                interrupts::check_for_interrupts();
            }
            if !self.bounds.next_range(self.direction, &mut self.range)? {
                return Ok(None);
            }
            let (columns, prefix) = self.bounds.prefix();
            snapshot.begin_range(self.oid, columns, prefix);
            self.scan
                .start(table, self.index, &self.range, self.direction);
            self.is_in_range = true;
        }
    }
}

fn find_index(session: &Session, table: TableRef, oid: pg_sys::Oid) -> IndexRef {
    if !table.key().is_foreign_table() {
        return Relation::closed(oid).with(|index| storage::index(table, index));
    }
    match session.find_index(table, oid.to_u32(), &PgClock) {
        Some(index) => index,
        // SAFETY: a look into the catalog; a name is not kept.
        None if unsafe { pg_sys::get_rel_name(oid) }.is_null() => errors::index_dropped(),
        None => errors::raise(mot_engine::EngineError::Corrupt {
            what: "an index of the catalog is not in memory",
        }),
    }
}

fn definition(session: &'static Session, index: IndexRef) -> &'static IndexDefinition {
    session
        .definition(index)
        .unwrap_or_else(|error| errors::raise(error))
}
