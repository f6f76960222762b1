//! Scans whose conditions leave the index's first column open, such as `b = 5` on (a, b). For each
//! value of that column they read the range that the other conditions have behind it, as core's
//! btree does from 18 on.
//!
//! The next value is that of the next entry. A search for it costs more than reading some entries,
//! so this is done only where the table's statistics say that the values are few. Otherwise the
//! whole index is read, and core evaluates the conditions. The planner counts both by the same
//! rule.
use crate::access::bounds::Bounds;
use crate::pg::list::cells;
use crate::pg::version;
use crate::storage;
use mot_engine::key::{IndexDefinition, KeyColumn};
use mot_engine::{Direction, EngineError, KeyRange};
use pgrx::pg_sys;

/// A value is looked for where there are so many rows to each.
const ROWS_TO_VALUE: f64 = 16.0;

/// What is passed over, and how far.
pub struct Skip {
    column: KeyColumn,
    /// Where the next value is looked for.
    rest: KeyRange,
    /// What keys with the present value begin with; empty: there is none.
    front: Vec<u8>,
    /// No row can pass.
    is_over: bool,
}

impl Skip {
    /// `None`: all of the index is to be read.
    ///
    /// # Safety
    /// An open index.
    pub unsafe fn of(
        index: pg_sys::Relation,
        definition: &IndexDefinition,
        conditions: usize,
        rows: f64,
    ) -> Option<Box<Skip>> {
        if conditions == 0 || !can_skip(definition) {
            return None;
        }
        // SAFETY: the caller's index, whose first key column is a column of its table.
        let values = unsafe {
            let form = &*(*index).rd_index;
            let column = form.indkey.values.as_slice(1)[0];
            values_of(form.indrelid, column, rows)?
        };
        is_worth_it(values, rows).then(|| {
            Box::new(Skip {
                column: definition.columns[0],
                rest: KeyRange::new(),
                front: Vec::new(),
                is_over: false,
            })
        })
    }

    /// Begins with the first value in a direction; the bounds have their arguments.
    pub fn begin(&mut self, bounds: &mut Bounds) {
        self.rest.clear();
        self.front.clear();
        self.is_over = !bounds.again();
    }

    /// The next range, behind this value or the next that there is. `look` finds the first key of a
    /// range in the direction, and hands it on.
    pub fn next_range(
        &mut self,
        bounds: &mut Bounds,
        direction: Direction,
        range: &mut KeyRange,
        mut look: impl FnMut(
            &KeyRange,
            &mut dyn FnMut(Option<&[u8]>) -> Result<bool, EngineError>,
        ) -> Result<bool, EngineError>,
    ) -> Result<bool, EngineError> {
        if self.is_over {
            return Ok(false);
        }
        loop {
            if !self.front.is_empty() {
                if bounds.next_range_behind(&self.front, direction, range)? {
                    return Ok(true);
                }
                match direction {
                    Direction::Forward => self.rest.set_low(&self.front, false)?,
                    Direction::Backward => self.rest.set_high(&self.front, false)?,
                }
            }
            let (column, front) = (&self.column, &mut self.front);
            let has_value = look(&self.rest, &mut |key| {
                front.clear();
                let Some(key) = key else {
                    return Ok(false);
                };
                let Some(length) = column.encoded_length(key) else {
                    return Err(EngineError::Corrupt {
                        what: "a key ends in its first column",
                    });
                };
                front
                    .try_reserve(length)
                    .map_err(|_| EngineError::OutOfProcessMemory)?;
                front.extend_from_slice(&key[..length]);
                Ok(true)
            })?;
            if !has_value {
                self.is_over = true;
                return Ok(false);
            }
            bounds.again();
        }
    }
}

/// Whether values of an index's first column can be passed over.
fn can_skip(definition: &IndexDefinition) -> bool {
    definition.columns.len() > 1
        && definition.computed.is_none()
        && definition.columns[0].has_plain_length()
        && definition.rough_column(0).is_none()
}

fn is_worth_it(values: f64, rows: f64) -> bool {
    values * ROWS_TO_VALUE <= rows
}

/// How many values a column has, as ANALYZE has found.
unsafe fn values_of(table: pg_sys::Oid, column: i16, rows: f64) -> Option<f64> {
    if column <= 0 {
        return None;
    }
    // SAFETY: a catalog's row, released when its fields were read.
    unsafe {
        let row = pg_sys::SearchSysCache3(
            pg_sys::SysCacheIdentifier::STATRELATTINH as i32,
            pg_sys::Datum::from(table),
            pg_sys::Datum::from(column),
            pg_sys::Datum::from(false),
        );
        if row.is_null() {
            return None;
        }
        let found = &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_statistic>(row);
        let (distinct, nulls) = (f64::from(found.stadistinct), found.stanullfrac);
        pg_sys::ReleaseSysCache(row);
        let values = match distinct {
            0.0 => return None,
            _ if distinct < 0.0 => -distinct * rows,
            _ => distinct,
        };
        Some(values + if nulls > 0.0 { 1.0 } else { 0.0 })
    }
}

/// What a scan reads whose conditions leave the first column open.
pub struct Reading {
    /// Ranges and values that are looked for.
    pub searches: f64,
    /// Entries whose rows are looked up.
    pub entries: f64,
    /// Conditions that are evaluated for each.
    pub conditions: usize,
}

/// What a path reads, if it leaves the first column open.
///
/// # Safety
/// The planner's own structures, a path over an index of ours with its conditions.
pub unsafe fn reading(
    root: *mut pg_sys::PlannerInfo,
    path: *const pg_sys::IndexPath,
) -> Option<Reading> {
    // SAFETY: the caller's: the index and its table are locked; an index clause has conditions.
    unsafe {
        let index = &*(*path).indexinfo;
        let clauses = cells::<pg_sys::IndexClause>((*path).indexclauses);
        if (**clauses.first()?).indexcol == 0 {
            return None;
        }
        let conditions = clauses
            .iter()
            .map(|clause| cells::<pg_sys::RestrictInfo>((**clause).indexquals).len())
            .sum();
        let whole = Reading {
            searches: 1.0,
            entries: index.tuples.max(1.0),
            conditions,
        };
        let entry = *(*root).simple_rte_array.add((*index.rel).relid as usize);
        let opened = pg_sys::index_open(index.indexoid, pg_sys::NoLock as pg_sys::LOCKMODE);
        let definition = storage::definition_of(opened);
        pg_sys::index_close(opened, pg_sys::NoLock as pg_sys::LOCKMODE);
        if !definition.is_some_and(can_skip) {
            return Some(whole);
        }
        let column = *index.indexkeys as i16;
        let Some(values) = values_of((*entry).relid, column, index.tuples) else {
            return Some(whole);
        };
        if !is_worth_it(values, index.tuples) {
            return Some(whole);
        }
        let mut share = 1.0;
        let mut searches = values;
        for clause in clauses.iter().filter(|clause| (***clause).indexcol == 1) {
            share *= pg_sys::clauselist_selectivity(
                root,
                (**clause).indexquals,
                (*index.rel).relid as i32,
                pg_sys::JoinType::JOIN_INNER,
                std::ptr::null_mut(),
            );
            for condition in cells::<pg_sys::RestrictInfo>((**clause).indexquals) {
                let expression = (**condition).clause.cast::<pg_sys::Node>();
                if (*expression).type_ == pg_sys::NodeTag::T_ScalarArrayOpExpr {
                    let list = cells::<pg_sys::Node>(
                        (*expression.cast::<pg_sys::ScalarArrayOpExpr>()).args,
                    )[1];
                    searches *= version::length_of_list(root, list).max(1.0);
                }
            }
        }
        Some(Reading {
            searches,
            entries: (share * index.tuples).max(1.0),
            conditions,
        })
    }
}
