//! The end of a range that a comparison of rows gives: the key of the values that it compares with,
//! as far as they go.
use super::{Argument, Bounds, End, argument};
use crate::access::conditions::Test;
use mot_engine::EngineError;
use mot_engine::key::{KEY_BYTES_MAX, KeyValue};
use pgrx::pg_sys;

impl Bounds {
    /// Whether the condition is the first part of a comparison of rows.
    pub(super) fn is_row(&self, position: usize) -> bool {
        let next = self.conditions.get(position + 1);
        next.is_some_and(|next| next.key.test == Test::RowGoesOn)
    }

    /// The end for the comparison that begins at `position`, whose first value is this one; `None`
    /// if that is longer than any key.
    pub(super) unsafe fn row_end(
        &mut self,
        position: usize,
        first: KeyValue<'_>,
        context: *mut pg_sys::ExprContext,
    ) -> Result<Option<End>, EngineError> {
        let test = self.conditions[position].key.test;
        let is_upper = matches!(test, Test::Less | Test::LessEqual);
        let column = self.definition.columns[self.conditions[position].key.column];
        if !self.encode_if_possible(&column, first)? {
            return Ok(None);
        }
        let mut key = self.scratch.as_slice().to_vec();
        // Rows that are equal as far as the key goes.
        let mut is_inclusive = matches!(test, Test::LessEqual | Test::GreaterEqual);
        for at in position + 1.. {
            let Some(next) = self
                .conditions
                .get(at)
                .filter(|next| next.key.test == Test::RowGoesOn)
            else {
                break;
            };
            let column = self.definition.columns[next.key.column];
            let kind = next.argument_kind.unwrap_or(column.kind);
            let (datum, is_null) = match next.argument {
                // SAFETY: the compiled argument belongs to the node whose context this is.
                Some(argument) => unsafe { argument.get(context) },
                None => unreachable!("a part of a row has an argument"),
            };
            // SAFETY: a value of the operator's argument type, or NULL.
            let (value, end) = match unsafe { argument(&column, kind, datum, is_null) } {
                Argument::Value(value) => (value, None),
                // No row is equal here.
                Argument::JustBelow(value) => (value, Some(!is_upper)),
                Argument::Below => {
                    is_inclusive = !is_upper;
                    break;
                }
                Argument::Above => {
                    is_inclusive = is_upper;
                    break;
                }
                // Whatever is equal so far does not pass.
                Argument::Null => {
                    is_inclusive = false;
                    break;
                }
            };
            let fits = self.encode_if_possible(&column, value)?
                && key.len() + self.scratch.len() <= KEY_BYTES_MAX;
            if !fits {
                is_inclusive = true;
                break;
            }
            key.extend_from_slice(self.scratch.as_slice());
            if let Some(end) = end {
                is_inclusive = end;
                break;
            }
        }
        Ok(Some(End { key, is_inclusive }))
    }
}
