//! `= ANY`, and ranges of enums: each element of a list multiplies the prefixes. Lists may be long,
//! so encoding and sorting check for interrupts now and then; what is allocated meanwhile goes with
//! the prefixes.
use super::{Argument, Bounds, argument, argument_of_test, limit};
use crate::keys;
use crate::pg::interrupts;
use mot_engine::key::{KeyColumn, KeyKind, KeyList, KeyValue};
use mot_engine::{EngineError, KeyRange};
use mot_programs::ends::Ends;
use pgrx::pg_sys;

/// Elements of a list that are encoded, or compared, between two checks for interrupts.
const ELEMENTS_PER_LOOK: usize = 4096;

/// May raise.
fn look_at_interrupts() {
    if interrupts::is_pending() {
        interrupts::check_for_interrupts();
    }
}

impl Bounds {
    /// What further conditions on a list's column leave of it; `None`: nothing.
    ///
    /// # Safety
    /// The compiled arguments belong to the node whose context this is.
    pub(super) unsafe fn range_of_list(
        &mut self,
        list: usize,
        context: *mut pg_sys::ExprContext,
    ) -> Result<Option<KeyRange>, EngineError> {
        let column = self.definition.columns[self.conditions[list].key.column];
        let mut ends = Ends::default();
        for position in list + 1..self.conditions.len() {
            if !self.is_of_column_before(position) {
                break;
            }
            let condition = &self.conditions[position];
            let (test, kind) = (condition.key.test, condition.argument_kind);
            let argument = condition.argument.expect("a comparison has an argument");
            // SAFETY: the caller's.
            let (datum, is_null) = unsafe { argument.get(context) };
            if is_null {
                return Ok(None);
            }
            let kind = kind.unwrap_or(column.kind);
            // SAFETY: a value of the operator's argument type, not NULL.
            let argument = unsafe { argument_of_test(test, &column, kind, datum) };
            if !ends.add(&column, limit(test), argument, &mut self.scratch)? {
                return Ok(None);
            }
        }
        let mut range = KeyRange::new();
        ends.set_range(&mut Vec::new(), &mut range)?;
        Ok(Some(range))
    }

    /// Adds each element of an array that is within a range to each prefix.
    pub(super) unsafe fn add_any(
        &mut self,
        column: &KeyColumn,
        kind: KeyKind,
        array: pg_sys::Datum,
        range: &KeyRange,
    ) -> Result<bool, EngineError> {
        let mut found = self.prefixes.list();
        // SAFETY: an array datum whose elements are of this type or one that is binary the same;
        // deconstruct_array fills the three places, of which nothing is used once what it made is
        // given back.
        unsafe {
            let array = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
            let stored_type = (*array).elemtype;
            let (mut width, mut by_value, mut align) = (0, false, 0);
            pg_sys::get_typlenbyvalalign(stored_type, &mut width, &mut by_value, &mut align);
            let (mut values, mut nulls, mut count) =
                (std::ptr::null_mut(), std::ptr::null_mut(), 0);
            pg_sys::deconstruct_array(
                array,
                stored_type,
                i32::from(width),
                by_value,
                align,
                &mut values,
                &mut nulls,
                &mut count,
            );
            let count = count as usize;
            for at in 0..count {
                if at.is_multiple_of(ELEMENTS_PER_LOOK) {
                    look_at_interrupts();
                }
                if let Argument::Value(value) =
                    argument(column, kind, *values.add(at), *nulls.add(at))
                    && self.encode_if_possible(column, value)?
                    && range.contains(self.scratch.as_slice())
                {
                    let encoded = self.scratch.as_slice();
                    if found.is_empty() {
                        // The others will be as long, of most types.
                        let is_fixed = column.kind.width() > 0;
                        let alike = if is_fixed { count - at } else { 1 };
                        found.reserve(count - at, encoded.len().saturating_mul(alike))?;
                    }
                    found.push(encoded, &[])?;
                }
            }
            if count > 0 {
                pg_sys::pfree(values.cast());
                pg_sys::pfree(nulls.cast());
            }
        }
        self.add_list(column, found)
    }

    /// Takes the ranges of an enum's values in that the conditions from here on ask for, of one
    /// column; false if no value passes. The column's keys are the values' oids.
    ///
    /// # Safety
    /// The compiled arguments belong to the node whose context this is.
    pub(super) unsafe fn add_enums(
        &mut self,
        position: usize,
        context: *mut pg_sys::ExprContext,
    ) -> Result<bool, EngineError> {
        let column = self.definition.columns[self.conditions[position].key.column];
        let mut passing: Option<Vec<u32>> = None;
        for next in position..self.conditions.len() {
            let condition = &self.conditions[next];
            if next > position && !self.is_of_column_before(next) {
                break;
            }
            let argument = condition.argument.expect("a comparison has an argument");
            // SAFETY: the caller's.
            let (datum, is_null) = unsafe { argument.get(context) };
            if is_null {
                return Ok(false);
            }
            let values = keys::enum_values(datum.value() as u32);
            let takes = |order| condition.key.test.takes_enum(order) == Some(true);
            let found = values
                .iter()
                .filter(|(_, order)| takes(*order))
                .map(|(value, _)| *value);
            passing = Some(match passing {
                Some(before) => found.filter(|value| before.contains(value)).collect(),
                None => found.collect(),
            });
        }
        let mut list = self.prefixes.list();
        for value in passing.unwrap_or_default() {
            self.encode(&column, KeyValue::Fixed(u64::from(value)))?;
            list.push(self.scratch.as_slice(), &[])?;
        }
        self.add_list(&column, list)
    }

    /// Takes a list of encoded values in.
    fn add_list(&mut self, column: &KeyColumn, mut found: KeyList) -> Result<bool, EngineError> {
        found.sort(look_at_interrupts)?;
        if column.orders_roughly() {
            found.collate(column, look_at_interrupts)?;
        }
        if found.is_empty() {
            return Ok(false);
        }
        self.prefixes.multiply(found)?;
        Ok(true)
    }
}
