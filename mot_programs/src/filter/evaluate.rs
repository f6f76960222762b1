//! Conditions evaluated over one row.
//!
//! Three-valued logic in PostgreSQL's order: both arguments of a function before either is looked
//! at for NULL, the members of AND and OR from the first to the one that decides. Whatever
//! PostgreSQL would raise an error about, or what needs more than the row's bytes, ends the
//! evaluation with [`Unsure`].
use super::kind::WordKind;
use super::program::{Condition, Known, Number, ParameterValues, Sure, Text, Unsure};
use super::row::{Found, Layout, Row};
use crate::varlena::payload;

/// What conditions are evaluated over.
pub struct Place<'a, P> {
    /// The row.
    pub row: Row,
    /// Of the row's table.
    pub layout: &'a Layout,
    /// Of the programs.
    pub parameters: &'a P,
}

impl<P: ParameterValues> Place<'_, P> {
    /// Whether the row passes: NULL is no.
    ///
    /// # Safety
    /// The row is of the layout's table, and columns are read as what they are.
    #[inline]
    pub unsafe fn passes(&self, conditions: &[Condition]) -> Sure<bool> {
        for condition in conditions {
            // SAFETY: the caller's promise. So below.
            if unsafe { self.condition(condition) }? != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What a condition says of the row; `None`: NULL.
    ///
    /// # Safety
    /// As for [`Place::passes`].
    pub unsafe fn condition(&self, condition: &Condition) -> Sure<Option<bool>> {
        // SAFETY: as for `passes`.
        unsafe {
            Ok(match condition {
                Condition::Compare(comparison, left, right) => {
                    let (left, right) = (self.number(left)?, self.number(right)?);
                    both(left, right).map(|(left, right)| comparison.holds(&left, &right))
                }
                Condition::CompareTexts {
                    comparison,
                    is_padded,
                    left,
                    right,
                } => {
                    let (left, right) = (self.text(left)?, self.text(right)?);
                    both(left, right).map(|(left, right)| {
                        if *is_padded {
                            comparison.holds(without_blanks(left), without_blanks(right))
                        } else {
                            comparison.holds(left, right)
                        }
                    })
                }
                Condition::Like {
                    text,
                    pattern,
                    is_negated,
                } => self
                    .text(text)?
                    .map(|text| pattern.fits(text) != *is_negated),
                Condition::Is(value) => self.number(value)?.map(|value| value != 0),
                Condition::Test(answers, tested) => Some(
                    answers[match self.condition(tested)? {
                        Some(true) => 0,
                        Some(false) => 1,
                        None => 2,
                    }],
                ),
                Condition::IsNull { column, is_negated } => {
                    match self.layout.find(&self.row, *column) {
                        Found::At(_) => Some(*is_negated),
                        Found::Null => Some(!is_negated),
                    }
                }
                Condition::Not(condition) => self.condition(condition)?.map(|value| !value),
                Condition::All(members) => self.first(members, false)?,
                Condition::Any(members) => self.first(members, true)?,
            })
        }
    }

    /// AND, which `false` decides, or OR, which `true` does.
    unsafe fn first(&self, members: &[Condition], deciding: bool) -> Sure<Option<bool>> {
        let mut result = Some(!deciding);
        for member in members {
            // SAFETY: as for `passes`.
            match unsafe { self.condition(member) }? {
                Some(value) if value == deciding => return Ok(Some(deciding)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    /// The value of an expression; `None`: NULL.
    ///
    /// # Safety
    /// As for [`Place::passes`].
    #[inline]
    pub unsafe fn number(&self, number: &Number) -> Sure<Option<i64>> {
        // SAFETY: as for `passes`.
        unsafe {
            match number {
                Number::Column(position, kind) => match self.layout.find(&self.row, *position) {
                    Found::At(place) => Ok(Some(kind.read(place))),
                    Found::Null => Ok(None),
                },
                Number::Constant(value) => Ok(*value),
                Number::Parameter(number) => match self.parameters.value(*number)? {
                    Known::Number(value) => Ok(Some(*value)),
                    _ => Ok(None),
                },
                Number::Compute(operation, kind, arguments) => {
                    let (left, right) = (self.number(&arguments.0)?, self.number(&arguments.1)?);
                    match both(left, right) {
                        Some((left, right)) => held(*kind, operation.of(left, right)),
                        None => Ok(None),
                    }
                }
                Number::Negate(kind, argument) => match self.number(argument)? {
                    Some(value) => held(*kind, value.checked_neg()),
                    None => Ok(None),
                },
            }
        }
    }

    #[inline]
    unsafe fn text<'t>(&'t self, text: &'t Text) -> Sure<Option<&'t [u8]>> {
        // SAFETY: as for `passes`; the row outlives its place.
        unsafe {
            match text {
                Text::Column(position) => match self.layout.find(&self.row, *position) {
                    Found::At(place) => payload(place).map(Some).ok_or(Unsure),
                    Found::Null => Ok(None),
                },
                Text::Constant(value) => Ok(value.as_deref()),
                Text::Parameter(number) => match self.parameters.value(*number)? {
                    Known::Text(value) => Ok(Some(value)),
                    _ => Ok(None),
                },
            }
        }
    }
}

#[inline]
fn both<T>(left: Option<T>, right: Option<T>) -> Option<(T, T)> {
    Some((left?, right?))
}

/// A result that its kind can hold.
#[inline]
fn held(kind: WordKind, result: Option<i64>) -> Sure<Option<i64>> {
    match result {
        Some(value) if kind.holds(value) => Ok(Some(value)),
        _ => Err(Unsure),
    }
}

/// Without the blanks at the end, as values of type character are compared.
fn without_blanks(text: &[u8]) -> &[u8] {
    let length = text
        .iter()
        .rposition(|byte| *byte != b' ')
        .map_or(0, |last| last + 1);
    &text[..length]
}
