//! Where a scan's rows come from: all of a table, or an index's ranges.
use crate::access::bounds::Bounds;
use crate::access::search::Search;
use crate::executor::expressions::Value;
use crate::pg::interrupts;
use crate::transaction::clock::PgSnapshot;
use crate::transaction::relation::LockedRelation;
use crate::{errors, storage};
use mot_engine::key::IndexDefinition;
use mot_engine::{
    Direction, EngineError, GroupedScan, IndexRef, IndexScan, KeyRange, RowId, RowScan, Session,
    TableRef, VersionRef,
};
use pgrx::pg_sys;

/// Where rows come from. One per scan, where it stays: a box would be one more allocation for each.
#[allow(clippy::large_enum_variant)]
pub(super) enum Source {
    /// All rows; `None` before the scan begins.
    Rows(Option<RowScan>),
    Index(IndexSource),
}

pub(super) struct IndexSource {
    index: IndexRef,
    oid: pg_sys::Oid,
    pub(super) scan: IndexScan,
    /// Instead of it, where a range's rows are ordered only roughly.
    grouped: Option<Box<GroupedScan>>,
    pub(super) bounds: Bounds,
    range: KeyRange,
    direction: Direction,
    is_in_range: bool,
}

impl Source {
    /// Where a statement's rows come from.
    pub(super) fn new(
        session: &'static Session,
        table: TableRef,
        search: &Search,
        arguments: &[Value],
    ) -> Source {
        match search.index {
            pg_sys::InvalidOid => Source::Rows(None),
            _ => Source::Index(IndexSource::new(session, table, search, arguments)),
        }
    }

    /// The next row the snapshot sees.
    #[inline]
    pub(super) fn next(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &PgSnapshot<'static>,
    ) -> Option<(RowId, VersionRef)> {
        match self {
            Source::Rows(rows) => rows.as_mut()?.next(session, snapshot),
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
        search: &Search,
        arguments: &[Value],
    ) -> IndexSource {
        let index = find_index(table, search.index);
        IndexSource {
            index,
            oid: search.index,
            scan: IndexScan::new(),
            grouped: None,
            bounds: Bounds::new(definition(session, index), &search.keys, arguments),
            range: KeyRange::new(),
            direction: if search.is_backward {
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

    /// Ends an execution: the memory of a very long list of keys, or of a large group of rows, is
    /// not kept for the next.
    #[inline]
    pub(super) fn end(&mut self) {
        self.bounds.end();
        self.scan.end();
        if let Some(grouped) = &mut self.grouped {
            grouped.end();
        }
    }

    /// The index, of the relation's storage looked up anew.
    pub(super) fn move_to(&mut self, session: &'static Session, table: TableRef) {
        self.index = find_index(table, self.oid);
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

    /// The first row with the one key that is asked for; `None` if no row can have it. A snapshot
    /// that is older than the index may see others.
    #[inline]
    pub(super) unsafe fn find(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &PgSnapshot<'static>,
        context: *mut pg_sys::ExprContext,
    ) -> Result<Option<Option<(RowId, VersionRef)>>, EngineError> {
        // SAFETY: as for the caller.
        match unsafe { self.bounds.point(context)? } {
            Some(key) => {
                let found = self.scan.find(session, table, self.index, key, snapshot)?;
                Ok(Some(found))
            }
            None => Ok(None),
        }
    }

    fn next(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &PgSnapshot<'static>,
    ) -> Result<Option<(RowId, VersionRef)>, EngineError> {
        loop {
            if self.is_in_range {
                let found = match &mut self.grouped {
                    Some(grouped) => grouped.next(session, snapshot)?,
                    None => self.scan.next(session, snapshot)?,
                };
                if found.is_some() {
                    self.bounds.found();
                    return Ok(found);
                }
                self.is_in_range = false;
            }
            self.bounds
                .pass_over_missing(session, &mut self.scan, self.index, self.direction)?;
            // Rows of several keys: their misses overlap.
            if self.index.is_unique()
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
            self.start_range(session, table)?;
            self.is_in_range = true;
        }
    }

    /// Begins to read a range in the order of the index.
    fn start_range(&mut self, session: &Session, table: TableRef) -> Result<(), EngineError> {
        let (index, range, direction) = (self.index, &self.range, self.direction);
        if !self.bounds.has_rough_rest() {
            self.scan.start(table, index, range, direction);
            return Ok(());
        }
        let (fixed, _) = self.bounds.prefix();
        let grouped = self.grouped.get_or_insert_default();
        grouped.start(session, (table, index), (range, fixed), direction)
    }
}

fn find_index(table: TableRef, oid: pg_sys::Oid) -> IndexRef {
    LockedRelation::closed(oid).with(|index| storage::index(table, index))
}

fn definition(session: &'static Session, index: IndexRef) -> &'static IndexDefinition {
    session
        .definition(index)
        .unwrap_or_else(|error| errors::raise(error))
}
