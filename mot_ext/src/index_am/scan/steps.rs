//! From one row of a scan to the next: through its ranges, in both directions.
use super::{Position, ScannedRow, Seen, State};
use crate::errors::or_raise;
use crate::index_am::keys::Sought;
use crate::pg;
use crate::rows::tid;
use crate::serializable::Reading;
use crate::table_am::fetch::HandedCopy;
use crate::table_am::slot::Shown;
use crate::table_am::view::View;
use crate::transaction::clock::{PgClock, PgSnapshot};
use mot_engine::{Direction, Now, RowId, VersionRef};
use pgrx::pg_sys;

impl State {
    /// Begins with the first range in a direction.
    pub(super) fn begin(&mut self, direction: Direction) {
        self.direction = direction;
        self.is_in_range = false;
        self.has_ranges = false;
    }

    /// Evaluates the arguments. What is unpacked of them is needed no longer than this, and a scan
    /// may begin very often.
    fn unpack<T>(&mut self, action: impl FnOnce(&mut Self) -> T) -> T {
        // SAFETY: the scan's own context, without children and callbacks.
        unsafe {
            pg::empty_bare_context(self.unpacked);
            let old = pg_sys::MemoryContextSwitchTo(self.unpacked);
            let result = action(self);
            pg_sys::MemoryContextSwitchTo(old);
            result
        }
    }

    /// Makes the arguments into ranges, if that was not done since the scan began.
    pub(super) fn make_ranges(&mut self) {
        if !std::mem::replace(&mut self.has_ranges, true) {
            // SAFETY: the arguments are constants, which need no context to be evaluated in.
            self.unpack(|state| unsafe { state.sought.bounds.begin(std::ptr::null_mut()) });
            let Sought { bounds, skip, .. } = &mut self.sought;
            if let Some(skip) = skip {
                skip.begin(bounds);
            }
        }
    }

    /// The row that has the one key which is asked for. (A snapshot that is older than the index
    /// may see several, all in the key's entry.)
    fn step_to_key(&mut self, snapshot: &PgSnapshot<'static>) -> Option<(RowId, VersionRef)> {
        if std::mem::replace(&mut self.is_in_range, true) {
            return match self.has_key && !self.scan.is_exhausted() {
                true => or_raise(self.scan.next(self.session, snapshot)),
                false => None,
            };
        }
        self.searches += 1;
        self.unpack(|state| {
            // SAFETY: as for ranges.
            let key = or_raise(unsafe { state.sought.bounds.point(std::ptr::null_mut()) });
            state.has_key = key.is_some();
            let key = key?;
            let (session, table, index) = (state.session, state.table, state.index);
            or_raise(state.scan.find(session, table, index, key, snapshot))
        })
    }

    /// The next row in a direction.
    pub(super) fn next(&mut self, direction: Direction) -> Option<ScannedRow> {
        if self.sought.is_empty {
            return None;
        }
        if direction != self.direction {
            self.turn(direction)?;
        } else if self.position == Position::Behind {
            return None;
        }
        let found = self.step();
        self.position = match &found {
            Some(ScannedRow::Kept(row, _)) => Position::At(*row),
            Some(ScannedRow::Copied(copy)) => tid::name(self.table, copy.tid())
                .map_or(Position::Behind, |name| Position::At(name.row)),
            None => Position::Behind,
        };
        found
    }

    /// Begins in a direction, behind the row of the scan's position. `None`: there is nothing
    /// behind it.
    fn turn(&mut self, direction: Direction) -> Option<()> {
        let from = self.position;
        let turns = direction != self.direction;
        self.begin(direction);
        match from {
            // Nothing was given yet, or the scan has run off the end that is now its beginning.
            Position::Before => {}
            Position::Behind if turns => {}
            Position::Behind => return None,
            Position::At(row) => loop {
                match self.step() {
                    Some(ScannedRow::Kept(at, _)) if at == row => break,
                    Some(_) => {}
                    None => return None,
                }
            },
        }
        Some(())
    }

    /// The next row of the ranges.
    fn step(&mut self) -> Option<ScannedRow> {
        let mut view = self.view.take()?;
        let found = match &mut view {
            Seen::Unfinished => self.step_unfinished().map(ScannedRow::Copied),
            Seen::By(View::Mvcc(snapshot)) => {
                let snapshot = match pg::is_in_portal_older_than_savepoint() {
                    true => snapshot.one_by_one(),
                    false => *snapshot,
                };
                // Both ways of an entry of several rows are known to ranges alone.
                let is_one_key = self.sought.bounds.is_one_point()
                    && matches!(self.direction, Direction::Forward);
                let found = match is_one_key {
                    true => self.step_to_key(&snapshot),
                    false => self.step_by(&snapshot),
                };
                found.map(|(row, version)| ScannedRow::Kept(row, version))
            }
            Seen::By(View::Now) => self
                .step_now()
                .map(|(row, version)| ScannedRow::Kept(row, version)),
            Seen::By(View::Serializable(reader)) => {
                let found = self.step_by(&**reader);
                if let Some((row, version)) = found {
                    reader.found(self.table, row, version);
                }
                reader.report();
                found.map(|(row, version)| ScannedRow::Kept(row, version))
            }
        };
        self.view = Some(view);
        found
    }

    fn step_by<R: Reading>(&mut self, snapshot: &R) -> Option<(RowId, VersionRef)> {
        loop {
            if self.is_in_range {
                let found = self.next_in_range(snapshot);
                if found.is_some() {
                    self.sought.bounds.found();
                    return found;
                }
                self.is_in_range = false;
            }
            self.make_ranges();
            if !self.begin_next(snapshot) {
                return None;
            }
        }
    }

    /// Begins with the next range, or with the next keys; false: there are none.
    pub(super) fn begin_next<R: Reading>(&mut self, snapshot: &R) -> bool {
        if self.sought.skip.is_some() {
            // All of the index is looked through.
            snapshot.begin_range(self.oid, 0, &[]);
            if !self.next_range() {
                return false;
            }
            self.start();
            return true;
        }
        if snapshot.may_read_ahead() {
            let (bounds, scan) = (&mut self.sought.bounds, &mut self.scan);
            or_raise(bounds.pass_over_missing(self.session, scan, self.index, self.direction));
        }
        if snapshot.may_read_ahead()
            && self.index.is_unique()
            && let Some(points) = or_raise(self.sought.bounds.take_points(self.direction))
        {
            let searches = &mut self.searches;
            let points = points.inspect(|_| *searches += 1);
            or_raise(self.scan.start_points(self.table, self.index, points));
            self.is_in_range = true;
            self.is_grouped = false;
            return true;
        }
        if self.sought.bounds.has_enum_ranges() {
            // Rows of values that come later are in none of the ranges.
            snapshot.begin_range(self.oid, 0, &[]);
        }
        if !self.next_range() {
            return false;
        }
        let (columns, prefix) = self.sought.bounds.prefix();
        snapshot.begin_range(self.oid, columns, prefix);
        self.start_in_order(columns);
        true
    }

    /// The next row of the range.
    fn next_in_range<R: Reading>(&mut self, snapshot: &R) -> Option<(RowId, VersionRef)> {
        or_raise(match &mut self.grouped {
            Some(grouped) if self.is_grouped => grouped.next(self.session, snapshot),
            _ => self.scan.next(self.session, snapshot),
        })
    }

    /// Begins to read a range in the order of the index's collations. So many leading columns are
    /// fixed in it.
    fn start_in_order(&mut self, fixed: usize) {
        self.is_grouped = self.sought.bounds.has_rough_rest() && !self.is_for_bitmap;
        if !self.is_grouped {
            return self.start();
        }
        let grouped = self.grouped.get_or_insert_default();
        let place = (self.table, self.index);
        let range = (&self.range, fixed);
        or_raise(grouped.start(self.session, place, range, self.direction));
        self.searches += 1;
        self.is_in_range = true;
    }

    fn step_now(&mut self) -> Option<(RowId, VersionRef)> {
        loop {
            if self.is_in_range {
                let found = or_raise(self.scan.next(self.session, &Now(&PgClock)));
                if found.is_some() {
                    return found;
                }
                self.is_in_range = false;
            }
            if !self.next_range() {
                return None;
            }
            self.start();
        }
    }

    fn step_unfinished(&mut self) -> Option<HandedCopy> {
        loop {
            if self.is_in_range {
                let oid = self.table_oid;
                // SAFETY: the scan's own memory, where copies stay until its end.
                let memory = unsafe { pg_sys::MemoryContextSwitchTo(self.memory) };
                let table = self.table;
                let copy = |row, version, by| {
                    let shown = Shown {
                        relation: oid,
                        table,
                        row,
                        version,
                    };
                    // SAFETY: the engine keeps the version while it calls this.
                    unsafe { HandedCopy::new(shown, by) }
                };
                let found = self
                    .scan
                    .next_unfinished_or_current(self.session, &PgClock, copy);
                // SAFETY: the context that was current.
                unsafe { pg_sys::MemoryContextSwitchTo(memory) };
                if let Some(found) = or_raise(found) {
                    return Some(found);
                }
                self.is_in_range = false;
            }
            if !self.next_range() {
                return None;
            }
            self.start();
        }
    }

    /// The next range in the direction; there may be very many.
    fn next_range(&mut self) -> bool {
        self.make_ranges();
        if pg::interrupts::is_pending() {
            pg::interrupts::check_for_interrupts();
        }
        let bounds = &mut self.sought.bounds;
        let (direction, range) = (self.direction, &mut self.range);
        let Some(skip) = &mut self.sought.skip else {
            return or_raise(bounds.next_range(direction, range));
        };
        let (scan, session, index) = (&mut self.scan, self.session, self.index);
        let searches = &mut self.searches;
        let found = skip.next_range(bounds, direction, range, |rest, found| {
            *searches += 1;
            found(scan.first_key(session, index, rest, direction))
        });
        or_raise(found)
    }

    fn start(&mut self) {
        self.scan
            .start(self.table, self.index, &self.range, self.direction);
        self.searches += 1;
        self.is_in_range = true;
    }
}
