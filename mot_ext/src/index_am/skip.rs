//! Scans whose conditions leave the index's first column open, such as `b = 5` on (a, b). For each
//! value of that column they read the range that the other conditions have behind it, as core's
//! btree does from 18 on.
//!
//! The next value is that of the next entry. A search for it costs more than reading some entries,
//! so this is done only where the table's statistics say that the values are few. Otherwise the
//! whole index is read, and core evaluates the conditions. The planner counts both by the same
//! rule.
use crate::access::bounds::Bounds;
use crate::pg::node::Node;
use crate::pg::relation::{self, NO_LOCK, Relation};
use crate::pg::{catalog, version};
use crate::storage;
use mot_engine::key::{IndexDefinition, KeyColumn};
use mot_engine::{Direction, EngineError, KeyRange};
use pgrx::pg_sys::{self, IndexPath, PlannerInfo, ScalarArrayOpExpr};

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
    pub fn of(
        index: Relation<'_>,
        definition: &IndexDefinition,
        conditions: usize,
        rows: f64,
    ) -> Option<Box<Skip>> {
        if conditions == 0 || !can_skip(definition) {
            return None;
        }
        let values = values_of(index.table(), index.index_columns()[0], rows)?;
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
fn values_of(table: pg_sys::Oid, column: i16, rows: f64) -> Option<f64> {
    if column <= 0 {
        return None;
    }
    let found = catalog::statistics(table, column)?;
    let values = match found.distinct {
        0.0 => return None,
        distinct if distinct < 0.0 => -distinct * rows,
        distinct => distinct,
    };
    Some(values + if found.nulls > 0.0 { 1.0 } else { 0.0 })
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

/// What a path reads, if it leaves the first column open. The index and its table are locked.
pub fn reading(root: Node<'_, PlannerInfo>, path: Node<'_, IndexPath>) -> Option<Reading> {
    if path.indexclauses().get(0)?.indexcol() == 0 {
        return None;
    }
    let index = path.index();
    let conditions = path.conditions().count();
    let Some(values) = values_to_skip(root, path) else {
        return Some(Reading {
            searches: 1.0,
            entries: index.tuples().max(1.0),
            conditions,
        });
    };
    let mut share = 1.0;
    let mut searches = values;
    for clause in path.indexclauses().iter().filter(|it| it.indexcol() == 1) {
        share *= root.selectivity(path.path().relation(), clause.indexquals());
        for condition in clause.indexquals() {
            let list = condition.condition().cast::<ScalarArrayOpExpr>();
            if let Some(list) = list.and_then(|list| list.args().get(1)) {
                searches *= version::length_of_list(root, list).max(1.0);
            }
        }
    }
    Some(Reading {
        searches,
        entries: (share * index.tuples()).max(1.0),
        conditions,
    })
}

/// How many values a path passes over; `None`: it reads all of the index.
fn values_to_skip(root: Node<'_, PlannerInfo>, path: Node<'_, IndexPath>) -> Option<f64> {
    let index = path.index();
    let definition = relation::with_index(index.indexoid(), NO_LOCK, |opened| {
        storage::definition_of(opened)
    });
    if !definition.is_some_and(can_skip) {
        return None;
    }
    let table = root.entry(path.path().relation()).relid();
    let column = index.key_column(0).column as i16;
    let values = values_of(table, column, index.tuples())?;
    is_worth_it(values, index.tuples()).then_some(values)
}
