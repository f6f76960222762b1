//! Conditions and expressions evaluated over a group of rows at once: one look at an expression's
//! form for all of them, and loops over plain numbers.
//!
//! The answers are those of [`Place`], row by row, with its order of evaluation: a member of AND
//! that comes behind one that says no is not asked about that row, and one that is not sure ends
//! the row. Sets of rows are bits.
use super::evaluate::Place;
use super::group::{Answer, Lacking, Numbers, ROWS, Rows, members};
use super::kind::WordKind;
use super::operators::{Arithmetic, Comparison};
use super::program::{Condition, Known, Number, ParameterValues};
use super::row::{Found, Layout, Row};

/// What is evaluated over.
pub struct Groups<'a, P> {
    /// A group's rows.
    pub rows: &'a [Row],
    /// Of the rows' table.
    pub layout: &'a Layout,
    /// Of the programs.
    pub parameters: &'a P,
}

impl<P: ParameterValues> Groups<'_, P> {
    /// A row of the group by itself.
    pub fn place(&self, at: usize) -> Place<'_, P> {
        Place {
            row: self.rows[at],
            layout: self.layout,
            parameters: self.parameters,
        }
    }

    /// Which of the rows pass all conditions, and of which that is not sure.
    ///
    /// # Safety
    /// The rows are of the layout's table, and columns are read as what they are.
    pub unsafe fn passing(&self, conditions: &[Condition], rows: Rows) -> (Rows, Rows) {
        let (mut passing, mut unsure) = (rows, 0);
        for condition in conditions {
            if passing == 0 {
                break;
            }
            // SAFETY: the caller's promise. So below.
            let answer = unsafe { self.condition(condition, passing) };
            unsure |= answer.unsure;
            passing &= answer.yes;
        }
        (passing, unsure)
    }

    /// What a condition says of some rows.
    ///
    /// # Safety
    /// As for [`Groups::passing`].
    pub unsafe fn condition(&self, condition: &Condition, rows: Rows) -> Answer {
        // SAFETY: as for `passing`.
        unsafe {
            match condition {
                Condition::Compare(comparison, left, right) => {
                    self.compare(*comparison, left, right, rows)
                }
                Condition::Is(value) => {
                    let mut values = [0; ROWS];
                    let lacking = self.numbers(value, rows, &mut values);
                    let yes = self.gather(|at| values[at] != 0);
                    answer(rows, yes, lacking)
                }
                Condition::Not(condition) => {
                    let Answer { yes, no, unsure } = self.condition(condition, rows);
                    Answer {
                        yes: no,
                        no: yes,
                        unsure,
                    }
                }
                Condition::Test(answers, tested) => {
                    let Answer { yes, no, unsure } = self.condition(tested, rows);
                    let null = rows & !(yes | no | unsure);
                    let chosen = |is_chosen: bool, rows: Rows| if is_chosen { rows } else { 0 };
                    let passing =
                        chosen(answers[0], yes) | chosen(answers[1], no) | chosen(answers[2], null);
                    Answer {
                        yes: passing,
                        no: rows & !(passing | unsure),
                        unsure,
                    }
                }
                Condition::All(conditions) => self.decided(conditions, rows, |answer| answer.no),
                Condition::Any(conditions) => {
                    let Answer { yes, no, unsure } =
                        self.decided(conditions, rows, |answer| answer.yes);
                    Answer {
                        yes: no,
                        no: yes,
                        unsure,
                    }
                }
                Condition::CompareTexts { .. }
                | Condition::Like { .. }
                | Condition::IsNull { .. } => {
                    let mut found = Answer::default();
                    for at in members(rows) {
                        let row = 1 << at;
                        match self.place(at).condition(condition) {
                            Ok(Some(true)) => found.yes |= row,
                            Ok(Some(false)) => found.no |= row,
                            Ok(None) => {}
                            Err(_) => found.unsure |= row,
                        }
                    }
                    found
                }
            }
        }
    }

    /// AND, where a row is decided by the first member that says no; OR with the answers turned
    /// round: decided rows are in `no`, those that no member decides in `yes`.
    unsafe fn decided(
        &self,
        conditions: &[Condition],
        rows: Rows,
        decides: impl Fn(&Answer) -> Rows,
    ) -> Answer {
        let (mut decided, mut unsure, mut null, mut left) = (0, 0, 0, rows);
        for condition in conditions {
            if left == 0 {
                break;
            }
            // SAFETY: as for `passing`.
            let answer = unsafe { self.condition(condition, left) };
            decided |= decides(&answer);
            unsure |= answer.unsure;
            null |= left & !(answer.yes | answer.no | answer.unsure);
            left &= !(decided | unsure);
        }
        Answer {
            yes: left & !null,
            no: decided,
            unsure,
        }
    }

    unsafe fn compare(
        &self,
        comparison: Comparison,
        left: &Number,
        right: &Number,
        rows: Rows,
    ) -> Answer {
        let (mut lefts, mut rights) = ([0; ROWS], [0; ROWS]);
        // SAFETY: as for `passing`.
        let lacking = unsafe { self.both(left, right, rows, &mut lefts, &mut rights) };
        let pairs = |at: usize| (lefts[at], rights[at]);
        // One loop for each comparison, without a look at which it is.
        let yes = match comparison {
            Comparison::Equal => self.gather(|at| pairs(at).0 == pairs(at).1),
            Comparison::NotEqual => self.gather(|at| pairs(at).0 != pairs(at).1),
            Comparison::Less => self.gather(|at| pairs(at).0 < pairs(at).1),
            Comparison::LessEqual => self.gather(|at| pairs(at).0 <= pairs(at).1),
            Comparison::Greater => self.gather(|at| pairs(at).0 > pairs(at).1),
            Comparison::GreaterEqual => self.gather(|at| pairs(at).0 >= pairs(at).1),
        };
        answer(rows, yes, lacking)
    }

    /// The rows of which a test holds; it is asked about all.
    #[inline(always)]
    fn gather(&self, test: impl Fn(usize) -> bool) -> Rows {
        (0..self.rows.len()).fold(0, |found, at| found | u64::from(test(at)) << at)
    }

    /// Both arguments of a strict function: none is looked at for NULL before the other is
    /// evaluated.
    unsafe fn both(
        &self,
        left: &Number,
        right: &Number,
        rows: Rows,
        lefts: &mut Numbers,
        rights: &mut Numbers,
    ) -> Lacking {
        // SAFETY: as for `passing`.
        let (left, right) = unsafe {
            (
                self.numbers(left, rows, lefts),
                self.numbers(right, rows, rights),
            )
        };
        let unsure = left.unsure | right.unsure;
        Lacking {
            null: (left.null | right.null) & !unsure,
            unsure,
        }
    }

    /// The values of an expression for some rows.
    ///
    /// # Safety
    /// As for [`Groups::passing`].
    pub unsafe fn numbers(&self, number: &Number, rows: Rows, values: &mut Numbers) -> Lacking {
        // SAFETY: as for `passing`.
        unsafe {
            match number {
                Number::Column(column, kind) => {
                    // One loop for each kind.
                    match kind {
                        WordKind::Int2 => {
                            self.column(*column, rows, values, |at| WordKind::Int2.read(at))
                        }
                        WordKind::Int4 => {
                            self.column(*column, rows, values, |at| WordKind::Int4.read(at))
                        }
                        WordKind::Int8 => {
                            self.column(*column, rows, values, |at| WordKind::Int8.read(at))
                        }
                        kind => self.column(*column, rows, values, |at| kind.read(at)),
                    }
                }
                Number::Constant(value) => self.constant(*value, rows, values),
                Number::Parameter(number) => match self.parameters.value(*number) {
                    Ok(Known::Number(value)) => self.constant(Some(*value), rows, values),
                    Ok(_) => self.constant(None, rows, values),
                    Err(_) => Lacking {
                        null: 0,
                        unsure: rows,
                    },
                },
                Number::Compute(operation, kind, arguments) => {
                    let mut rights = [0; ROWS];
                    let (left, right) = (&arguments.0, &arguments.1);
                    let lacking = self.both(left, right, rows, values, &mut rights);
                    let there = rows & !(lacking.null | lacking.unsure);
                    // One loop for each operation.
                    let unsure = match operation {
                        Arithmetic::Add => compute(there, *kind, values, &rights, |l, r| {
                            Arithmetic::Add.of(l, r)
                        }),
                        Arithmetic::Subtract => compute(there, *kind, values, &rights, |l, r| {
                            Arithmetic::Subtract.of(l, r)
                        }),
                        Arithmetic::Multiply => compute(there, *kind, values, &rights, |l, r| {
                            Arithmetic::Multiply.of(l, r)
                        }),
                        Arithmetic::Divide => compute(there, *kind, values, &rights, |l, r| {
                            Arithmetic::Divide.of(l, r)
                        }),
                        Arithmetic::Remainder => compute(there, *kind, values, &rights, |l, r| {
                            Arithmetic::Remainder.of(l, r)
                        }),
                    };
                    Lacking {
                        unsure: lacking.unsure | unsure,
                        ..lacking
                    }
                }
                Number::Negate(kind, argument) => {
                    let lacking = self.numbers(argument, rows, values);
                    let there = rows & !(lacking.null | lacking.unsure);
                    let unsure = compute(there, *kind, values, &[0; ROWS], |value, _| {
                        value.checked_neg()
                    });
                    Lacking {
                        unsure: lacking.unsure | unsure,
                        ..lacking
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn column(
        &self,
        column: usize,
        rows: Rows,
        values: &mut Numbers,
        read: impl Fn(*const u8) -> i64,
    ) -> Lacking {
        let mut lacking = Lacking::default();
        for at in members(rows) {
            // SAFETY: as for `passing`.
            match unsafe { self.layout.find(&self.rows[at], column) } {
                Found::At(place) => values[at] = read(place),
                Found::Null => lacking.null |= 1 << at,
            }
        }
        lacking
    }

    fn constant(&self, value: Option<i64>, rows: Rows, values: &mut Numbers) -> Lacking {
        let null = match value {
            Some(value) => {
                values[..self.rows.len()].fill(value);
                0
            }
            None => rows,
        };
        Lacking { null, unsure: 0 }
    }
}

/// Of the rows whose value is known, those for which a test holds say yes, the others no.
#[inline]
fn answer(rows: Rows, yes: Rows, lacking: Lacking) -> Answer {
    let known = rows & !(lacking.null | lacking.unsure);
    Answer {
        yes: known & yes,
        no: known & !yes,
        unsure: lacking.unsure,
    }
}

/// Puts the results in the place of the left arguments; returns the rows for which there is none
/// that the kind can hold.
#[inline(always)]
fn compute(
    rows: Rows,
    kind: WordKind,
    lefts: &mut Numbers,
    rights: &Numbers,
    operation: impl Fn(i64, i64) -> Option<i64>,
) -> Rows {
    let mut unsure = 0;
    for at in members(rows) {
        match operation(lefts[at], rights[at]) {
            Some(value) if kind.holds(value) => lefts[at] = value,
            _ => unsure |= 1 << at,
        }
    }
    unsure
}
