//! From conditions and this moment's arguments to ranges of keys.
//!
//! The tests that fix columns multiply into key prefixes, sorted and without repetition, so that
//! scanning one after the other gives rows in index order even for `= ANY`. Ranges of a column with
//! a list take values out of that. The tests of the next column become one pair of ends that all
//! prefixes share. A NULL argument, or one no value of the column can equal, makes the scan empty.
mod any_of;
mod rows;

use super::conditions::Test;
use super::prefixes::Prefixes;
use super::search::Key;
use crate::errors;
use crate::executor::expressions::Value;
use crate::keys::{self, Converted};
use mot_engine::key::{IndexDefinition, KeyBuffer, KeyColumn, KeyKind, KeyValue, encode_value};
use mot_engine::{Direction, EngineError, IndexRef, IndexScan, KeyRange, Session};
use mot_programs::ends::{Argument, End, Ends, Limit};
use pgrx::pg_sys;

/// A condition with its argument.
struct Compiled {
    key: Key,
    /// None for tests without argument.
    argument: Option<Value>,
    argument_kind: Option<KeyKind>,
}

/// The key ranges of an index scan.
pub struct Bounds {
    definition: &'static IndexDefinition,
    conditions: Vec<Compiled>,
    /// The unique index's columns are all fixed and none by IS NULL: each prefix is a whole key.
    is_point: bool,
    /// Each column of the unique index is compared with one value, and nothing else is asked: one
    /// whole key, at most.
    is_one_point: bool,
    /// Leading columns that the prefixes fix.
    fixed_columns: usize,
    /// A column behind the fixed ones has texts that are ordered only roughly.
    has_rough_rest: bool,
    has_enum_ranges: bool,
    /// Whether one prefix is behind the other in the index, too: the values of a list whose texts
    /// are ordered only roughly are in the order of their collation.
    are_in_key_order: bool,
    prefixes: Prefixes,
    ends: Ends,
    scratch: KeyBuffer,
    /// Ranges given since a row was found, as far as they matter.
    barren: u32,
    /// Nothing but memory, between two calls.
    given: KeyRange,
}

/// So many ranges without a row, and the next entry is looked for.
const BARREN_MAX: u32 = 8;

impl Bounds {
    /// `arguments` are those of the keys that have one, in order.
    pub fn new(definition: &'static IndexDefinition, keys: &[Key], arguments: &[Value]) -> Bounds {
        let mut rest = arguments.iter();
        let conditions: Vec<Compiled> = keys
            .iter()
            .map(|key| Compiled {
                key: *key,
                argument: key.test.has_argument().then(|| {
                    *rest
                        .next()
                        .expect("an argument for each condition that has one")
                }),
                argument_kind: keys::kind(key.argument_type),
            })
            .collect();
        let is_fixed = |column: usize| {
            keys.iter()
                .any(|key| key.column == column && matches!(key.test, Test::Equal | Test::AnyOf))
        };
        let is_point = definition.unique && (0..definition.columns.len()).all(is_fixed);
        let fixes = |key: &&Key| key.test.fixes();
        let are_in_key_order = keys
            .iter()
            .all(|key| !key.test.is_list() || !definition.columns[key.column].orders_roughly());
        let is_one_point = definition.unique
            && keys.len() == definition.columns.len()
            && keys
                .iter()
                .enumerate()
                .all(|(column, key)| key.column == column && matches!(key.test, Test::Equal));
        // Several ranges of an enum fix one column.
        let is_further = |at: usize| at > 0 && keys[at - 1].column == keys[at].column;
        let is_fixing = |at: &usize| fixes(&&keys[*at]) && !is_further(*at);
        let fixed_columns = (0..keys.len()).filter(is_fixing).count();
        Bounds {
            definition,
            conditions,
            is_point,
            is_one_point,
            fixed_columns,
            has_rough_rest: definition.rough_column(fixed_columns).is_some(),
            has_enum_ranges: keys.iter().any(|key| key.test.is_of_enums()),
            are_in_key_order,
            prefixes: Prefixes::new(),
            ends: Ends::default(),
            scratch: KeyBuffer::new(),
            barren: 0,
            given: KeyRange::new(),
        }
    }

    /// The same conditions on another index of the same definition: the table was truncated, or
    /// looked up anew.
    pub fn set_definition(&mut self, definition: &'static IndexDefinition) {
        self.definition = definition;
    }

    /// Other arguments for the same conditions, in their order.
    pub fn set_arguments(&mut self, arguments: impl Iterator<Item = Value>) {
        let conditions = self.conditions.iter_mut();
        let with_argument = conditions.filter_map(|condition| condition.argument.as_mut());
        for (place, argument) in with_argument.zip(arguments) {
            *place = argument;
        }
    }

    /// Evaluates the arguments and begins anew.
    pub unsafe fn begin(&mut self, context: *mut pg_sys::ExprContext) {
        self.ends.clear();
        self.barren = 0;
        if let Err(error) = self.prefixes.begin() {
            errors::raise(error);
        }
        for position in 0..self.conditions.len() {
            // SAFETY: the compiled argument belongs to the node whose context this is.
            let added = unsafe { self.add(position, context) };
            match added {
                Ok(true) => {}
                Ok(false) => {
                    // SAFETY: as above.
                    unsafe { self.evaluate_behind(position, context) };
                    self.prefixes.clear();
                    return;
                }
                Err(error) => errors::raise(error),
            }
        }
    }

    /// Ends an execution: the memory of very many keys is not kept for the next, which may be long
    /// in coming.
    pub fn end(&mut self) {
        self.prefixes.end();
    }

    /// The next keys in the direction, if they are whole ones of a unique index, and several: some
    /// thousands at most, which count as given.
    pub fn take_points(
        &mut self,
        direction: Direction,
    ) -> Result<Option<impl Iterator<Item = &[u8]>>, EngineError> {
        if !self.is_point {
            return Ok(None);
        }
        self.barren = BARREN_MAX;
        self.prefixes.take(direction)
    }

    /// Whether what is asked for is one whole key: then [`Bounds::point`] gives it without the
    /// detour over ranges.
    #[inline]
    pub fn is_one_point(&self) -> bool {
        self.is_one_point
    }

    /// Evaluates the arguments to the one key; `None` if no row can have it.
    pub unsafe fn point(
        &mut self,
        context: *mut pg_sys::ExprContext,
    ) -> Result<Option<&[u8]>, EngineError> {
        debug_assert!(self.is_one_point);
        self.scratch.clear();
        let pairs = self.conditions.iter().zip(&self.definition.columns);
        for (position, (condition, column)) in pairs.enumerate() {
            let Some(value) = &condition.argument else {
                unreachable!("equality has an argument");
            };
            // SAFETY: the compiled argument belongs to the node whose context this is.
            let (datum, is_null) = unsafe { value.get(context) };
            let kind = condition.argument_kind.unwrap_or(column.kind);
            // SAFETY: a value of the operator's argument type, not NULL.
            let given = (!is_null).then(|| unsafe { argument(column, kind, datum, false) });
            let encoded = match given {
                Some(Argument::Value(value)) => encode_value(column, value, &mut self.scratch),
                _ => {
                    // SAFETY: as for the argument.
                    unsafe { self.evaluate_behind(position, context) };
                    return Ok(None);
                }
            };
            match encoded {
                Ok(()) => {}
                // Longer than any key.
                Err(EngineError::KeyTooLong { .. }) => {
                    // SAFETY: as for the argument.
                    unsafe { self.evaluate_behind(position, context) };
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some(self.scratch.as_slice()))
    }

    /// Evaluates the arguments behind a condition that no row passes, for the errors they may
    /// raise: core evaluates all before it looks for a row.
    #[cold]
    unsafe fn evaluate_behind(&self, position: usize, context: *mut pg_sys::ExprContext) {
        for condition in &self.conditions[position + 1..] {
            if let Some(argument) = condition.argument {
                // SAFETY: the compiled argument belongs to the node whose context this is.
                unsafe { argument.get(context) };
            }
        }
    }

    /// Whether an enum's values make ranges: other sessions may add some to it.
    pub fn has_enum_ranges(&self) -> bool {
        self.has_enum_ranges
    }

    /// The next range in the direction; false at the end.
    pub fn next_range(
        &mut self,
        direction: Direction,
        range: &mut KeyRange,
    ) -> Result<bool, EngineError> {
        let Some(prefix) = self.prefixes.next(direction) else {
            return Ok(false);
        };
        self.barren = self.barren.saturating_add(1);
        if self.is_point {
            range.set_point(prefix)?;
            return Ok(true);
        }
        self.ends.set_range(prefix, range)?;
        Ok(true)
    }

    /// As [`Bounds::next_range`], of conditions on columns behind others that `front` has: the
    /// range of keys that begin with that.
    pub fn next_range_behind(
        &mut self,
        front: &[u8],
        direction: Direction,
        range: &mut KeyRange,
    ) -> Result<bool, EngineError> {
        let Some(prefix) = self.prefixes.next(direction) else {
            return Ok(false);
        };
        prefix
            .try_reserve(front.len())
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        prefix.splice(0..0, front.iter().copied());
        self.ends.set_range(prefix, range)?;
        Ok(true)
    }

    /// Gives all ranges once more. False: there are none.
    pub fn again(&mut self) -> bool {
        self.prefixes.again()
    }

    /// What the keys of the range last given begin with: so many columns, in this encoding.
    pub fn prefix(&self) -> (usize, &[u8]) {
        (self.fixed_columns, self.prefixes.current())
    }

    /// Whether rows of one range come in the order of the index's collations only after a
    /// sort.
    #[inline]
    pub fn has_rough_rest(&self) -> bool {
        self.has_rough_rest
    }

    /// A range last given has a row.
    #[inline]
    pub fn found(&mut self) {
        self.barren = 0;
    }

    /// Passes over prefixes that no index entry begins with, where rows are rare among very many. A
    /// registered snapshot sees no row of them. The scan has given all rows of the last range.
    pub fn pass_over_missing(
        &mut self,
        session: &Session,
        scan: &mut IndexScan,
        index: IndexRef,
        direction: Direction,
    ) -> Result<(), EngineError> {
        if self.barren < BARREN_MAX || !self.are_in_key_order || !self.prefixes.are_very_many() {
            return Ok(());
        }
        self.given.set_prefix(self.prefixes.current())?;
        let key = scan.key_behind(session, index, &self.given, direction);
        self.prefixes.pass_over(key, direction);
        Ok(())
    }

    /// Takes one condition in; false when no row can pass.
    unsafe fn add(
        &mut self,
        position: usize,
        context: *mut pg_sys::ExprContext,
    ) -> Result<bool, EngineError> {
        let condition = &self.conditions[position];
        let key = condition.key;
        let column = self.definition.columns[key.column];
        match key.test {
            Test::IsNull => {
                if !column.nullable {
                    return Ok(false);
                }
                self.encode(&column, KeyValue::Null)?;
                self.extend_prefixes()?;
                return Ok(true);
            }
            Test::IsNotNull => {
                self.ends.exclude_null(&column, &mut self.scratch)?;
                return Ok(true);
            }
            // With the part before.
            Test::RowGoesOn => return Ok(true),
            // With the one before.
            test if test.is_of_enums() && self.is_of_column_before(position) => return Ok(true),
            // With the list.
            test if test.is_range() && self.is_behind_list(position) => return Ok(true),
            _ => {}
        }
        let (datum, is_null) = match condition.argument {
            // SAFETY: see the caller.
            Some(argument) => unsafe { argument.get(context) },
            None => unreachable!("a test without argument was answered above"),
        };
        if is_null {
            return Ok(false);
        }
        let kind = condition.argument_kind.unwrap_or(column.kind);
        if key.test == Test::AnyOf {
            // SAFETY: see the caller; an array of the operator's argument type, not NULL.
            return unsafe {
                match self.range_of_list(position, context)? {
                    Some(range) => self.add_any(&column, kind, datum, &range),
                    None => Ok(false),
                }
            };
        }
        if key.test.is_of_enums() {
            // SAFETY: see the caller.
            return unsafe { self.add_enums(position, context) };
        }
        // SAFETY: the caller's, and a value of the operator's argument type, not NULL.
        unsafe { self.add_one(position, kind, datum, context) }
    }

    /// Whether the condition before is on the same column.
    pub(super) fn is_of_column_before(&self, position: usize) -> bool {
        let column = |position: usize| self.conditions[position].key.column;
        position > 0 && column(position - 1) == column(position)
    }

    /// Whether a list comes before a condition, on the same column.
    fn is_behind_list(&self, position: usize) -> bool {
        let column = self.conditions[position].key.column;
        let before = self.conditions[..position].iter().rev();
        before
            .take_while(|condition| condition.key.column == column)
            .any(|condition| condition.key.test == Test::AnyOf)
    }

    /// Takes a condition with one value in; false when no row can pass.
    #[inline]
    unsafe fn add_one(
        &mut self,
        position: usize,
        kind: KeyKind,
        datum: pg_sys::Datum,
        context: *mut pg_sys::ExprContext,
    ) -> Result<bool, EngineError> {
        let key = self.conditions[position].key;
        let column = self.definition.columns[key.column];
        // SAFETY: the caller's.
        let argument = unsafe { argument_of_test(key.test, &column, kind, datum) };
        match key.test {
            Test::Equal => {
                let Argument::Value(value) = argument else {
                    return Ok(false);
                };
                if !self.encode_if_possible(&column, value)? {
                    return Ok(false);
                }
                self.extend_prefixes()?;
            }
            test => {
                let limit = limit(test);
                if let Argument::Value(value) = argument
                    && self.is_row(position)
                    // SAFETY: see the caller.
                    && let Some(end) = unsafe { self.row_end(position, value, context)? }
                {
                    self.ends.exclude_null(&column, &mut self.scratch)?;
                    self.ends.add_end(&column, limit, end);
                    return Ok(true);
                }
                return self.ends.add(&column, limit, argument, &mut self.scratch);
            }
        }
        Ok(true)
    }

    fn encode(&mut self, column: &KeyColumn, value: KeyValue<'_>) -> Result<(), EngineError> {
        self.scratch.clear();
        encode_value(column, value, &mut self.scratch)
    }

    /// False when the value is longer than any key: no row has it.
    fn encode_if_possible(
        &mut self,
        column: &KeyColumn,
        value: KeyValue<'_>,
    ) -> Result<bool, EngineError> {
        match self.encode(column, value) {
            Ok(()) => Ok(true),
            Err(EngineError::KeyTooLong { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn extend_prefixes(&mut self) -> Result<(), EngineError> {
        self.prefixes.extend(self.scratch.as_slice())
    }
}

/// How a test limits a column.
fn limit(test: Test) -> Limit {
    match test {
        Test::Less => Limit::Less,
        Test::LessEqual => Limit::LessEqual,
        Test::GreaterEqual => Limit::GreaterEqual,
        Test::Greater => Limit::Greater,
        other => unreachable!("{other:?} is no limit"),
    }
}

/// What a test compares the column with.
///
/// # Safety
/// A value of the operator's argument type, not NULL.
#[inline]
unsafe fn argument_of_test<'a>(
    test: Test,
    column: &KeyColumn,
    kind: KeyKind,
    datum: pg_sys::Datum,
) -> Argument<'a> {
    let (kind, datum) = match test {
        _ if !keys::kind_lies_near(column.kind, kind) => (kind, datum),
        Test::Less | Test::LessEqual => (KeyKind::Timestamp, keys::later(datum)),
        _ => (KeyKind::Timestamp, keys::earlier(datum)),
    };
    // SAFETY: a value of the operator's argument type, or of the one it was replaced by, not NULL.
    unsafe { argument(column, kind, datum, false) }
}

/// A datum of the operator's argument type as a value of the column.
#[inline]
unsafe fn argument<'a>(
    column: &KeyColumn,
    kind: KeyKind,
    datum: pg_sys::Datum,
    is_null: bool,
) -> Argument<'a> {
    if is_null {
        return Argument::Null;
    }
    if (column.kind, kind) == (KeyKind::Text, KeyKind::Name) {
        // SAFETY: a value of the kind.
        return Argument::Value(unsafe { keys::name_as_text(datum) });
    }
    if kind != column.kind {
        // SAFETY: a value of the kind, which the planner takes only if it can be converted.
        return match unsafe { keys::converted(column.kind, kind, datum) } {
            Converted::Same(value) => Argument::Value(KeyValue::Fixed(value)),
            Converted::JustBelow(value) => Argument::JustBelow(KeyValue::Fixed(value)),
            Converted::Below => Argument::Below,
            Converted::Above => Argument::Above,
        };
    }
    // SAFETY: the operator's argument type is the column's, or of the same bytes.
    Argument::Value(unsafe { keys::value(column.kind, datum, false) })
}
