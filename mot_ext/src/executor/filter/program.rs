//! Conditions as a filter evaluates them.
//!
//! Three-valued logic in core's order: both arguments of a function before either is looked at for
//! NULL, the members of AND and OR from the first to the one that decides. Whatever core would
//! raise an error about, or what needs more than the row's bytes, ends the evaluation with
//! [`Unsure`].
use super::operators::{Arithmetic, Comparison, Kind};
use super::parameters::{Known, Parameters};
use super::row::{Found, Layout, Row};
use memchr::memmem;
use pgrx::pg_sys;

/// Core has to evaluate the conditions for this row.
pub struct Unsure;

type Sure<T> = Result<T, Unsure>;

/// An expression over values that a datum holds itself.
pub enum Number {
    Column(usize, Kind),
    /// `None`: NULL.
    Constant(Option<i64>),
    Parameter(usize),
    Compute(Arithmetic, Kind, Box<(Number, Number)>),
    Negate(Kind, Box<Number>),
}

/// A text.
pub enum Text {
    Column(usize),
    Constant(Option<Box<[u8]>>),
    Parameter(usize),
}

pub enum Condition {
    Compare(Comparison, Number, Number),
    CompareTexts {
        comparison: Comparison,
        /// Blanks at the ends do not count.
        is_padded: bool,
        left: Text,
        right: Text,
    },
    Like {
        text: Text,
        pattern: Pattern,
        is_negated: bool,
    },
    /// A value of type boolean.
    Is(Number),
    /// IS TRUE and the like: the answers for true, false and NULL.
    Test([bool; 3], Box<Condition>),
    IsNull {
        column: usize,
        is_negated: bool,
    },
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

/// A pattern of LIKE without `_` and escapes: what stands between its `%`.
pub struct Pattern {
    /// What a text begins with.
    start: Box<[u8]>,
    /// What it ends with; `None`: there is no `%`, and it is `start` alone.
    end: Option<Box<[u8]>>,
    /// What there is in between, in this order.
    parts: Vec<memmem::Finder<'static>>,
}

impl Pattern {
    /// `None`: the pattern needs core.
    pub fn new(pattern: &[u8]) -> Option<Pattern> {
        if pattern.iter().any(|byte| matches!(byte, b'_' | b'\\')) {
            return None;
        }
        let mut pieces: Vec<&[u8]> = pattern.split(|byte| *byte == b'%').collect();
        let start = pieces.remove(0).into();
        let end = pieces.pop().map(Into::into);
        let parts = pieces
            .into_iter()
            .filter(|piece| !piece.is_empty())
            .map(|piece| memmem::Finder::new(piece).into_owned())
            .collect();
        Some(Pattern { start, end, parts })
    }

    fn fits(&self, text: &[u8]) -> bool {
        let Some(end) = &self.end else {
            return text == &self.start[..];
        };
        // An empty piece lies nowhere, and the C library's comparison of no bytes there is slow on
        // some processors: it takes a page fault back.
        let (mut rest, start) = (text, &self.start[..]);
        if !start.is_empty() {
            match rest.strip_prefix(start) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        if !end.is_empty() {
            match rest.strip_suffix(&end[..]) {
                Some(before) => rest = before,
                None => return false,
            }
        }
        self.parts.iter().all(|part| match part.find(rest) {
            Some(at) => {
                rest = &rest[at + part.needle().len()..];
                true
            }
            None => false,
        })
    }
}

/// What conditions are evaluated over.
pub struct Place<'a> {
    pub row: Row,
    pub layout: &'a Layout,
    pub parameters: &'a Parameters,
    pub context: *mut pg_sys::ExprContext,
}

impl Place<'_> {
    /// Whether the row passes: NULL is no.
    #[inline]
    pub unsafe fn passes(&self, conditions: &[Condition]) -> Sure<bool> {
        for condition in conditions {
            // SAFETY: the caller's: the row is of the layout's table, the context of the node the
            // conditions belong to. So below.
            if unsafe { self.condition(condition) }? != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

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
                Number::Parameter(number) => match self.parameters.get(*number, self.context)? {
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
                Text::Parameter(number) => match self.parameters.get(*number, self.context)? {
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
fn held(kind: Kind, result: Option<i64>) -> Sure<Option<i64>> {
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

/// Texts of a statement up to so many bytes are kept with a filter, in a copy: memory that no
/// statement's end gives back, and whose lack would end the server. A longer one core takes from
/// where it is.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// The same as [`payload`], if it is short enough to be kept.
pub unsafe fn short_payload<'a>(place: *const u8) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe { payload(place) }.filter(|bytes| bytes.len() <= KEPT_BYTES_MAX)
}

/// The bytes of a varlena that is neither compressed nor elsewhere.
#[inline]
pub unsafe fn payload<'a>(place: *const u8) -> Option<&'a [u8]> {
    // SAFETY: a varlena (caller).
    unsafe {
        let value = place.cast::<pg_sys::varlena>();
        if pgrx::varatt_is_1b_e(value) || pgrx::varatt_is_4b_c(value) {
            return None;
        }
        Some(std::slice::from_raw_parts(
            pgrx::vardata_any(value).cast(),
            pgrx::varsize_any_exhdr(value),
        ))
    }
}
