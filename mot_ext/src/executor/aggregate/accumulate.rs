//! What an aggregate has seen so far, and its result.
//!
//! Sums of integers are kept in 128 bits, sums of numerics in a fixed point of as many ([`Fixed`]);
//! what does not fit there is added by core's `numeric_add`, which is exact, too, so that the order
//! does not matter. A sum that leaves the range of numeric on the way is no error in core, so
//! halves of the range are taken out and counted ([`Accumulator::take_halves_out`]). Results are
//! core's: a bigint cut as core's addition would be, a numeric by its own functions.
use super::functions::{Function, Input};
use super::numeric::{self, Fixed};
use crate::executor::filter::{Kind, Numbers, ROWS, Rows, members, payload};
use pgrx::pg_sys;

/// Numerics of a group's rows.
pub type Fixeds = [Fixed; ROWS];

/// Numerics of accumulators, which do not fit into these.
pub struct Kept {
    context: pg_sys::MemoryContext,
    /// What they take.
    pub bytes: usize,
}

impl Kept {
    /// In the memory context, as long as that lives.
    pub unsafe fn new(context: pg_sys::MemoryContext) -> *mut Kept {
        // SAFETY: memory of a plain value's size.
        unsafe {
            let kept = pg_sys::MemoryContextAlloc(context, size_of::<Kept>()).cast::<Kept>();
            kept.write(Kept { context, bytes: 0 });
            kept
        }
    }
}

/// Values that are not NULL, added up.
pub struct Accumulator {
    function: Function,
    input: Input,
    /// Of values, or of rows.
    count: i64,
    /// Whether a numeric is in `number`.
    has_fixed: bool,
    /// The sum, or the smallest or largest value.
    number: Fixed,
    /// Halves of numeric's range that were taken out of `beyond`, where that is a sum.
    halves: i32,
    /// Beside it, of the numerics that do not fit there: no numeric is equal to one that does.
    beyond: Option<pg_sys::Datum>,
    /// Where that is kept.
    kept: *mut Kept,
}

impl Accumulator {
    pub fn new(function: Function, input: Input, kept: *mut Kept) -> Accumulator {
        Accumulator {
            function,
            input,
            count: 0,
            number: Fixed::default(),
            has_fixed: false,
            halves: 0,
            beyond: None,
            kept,
        }
    }

    /// Forgets what it has seen.
    pub unsafe fn clear(&mut self) {
        self.count = 0;
        self.number = Fixed::default();
        self.has_fixed = false;
        self.halves = 0;
        if let Some(beyond) = self.beyond.take() {
            // SAFETY: this value's own copy.
            unsafe { self.free(beyond) }
        }
    }

    /// Values whose number does not matter.
    #[inline]
    pub fn add_rows(&mut self, count: u32) {
        self.count += i64::from(count);
    }

    /// The numbers of some rows.
    #[inline]
    pub fn add_numbers(&mut self, rows: Rows, values: &Numbers) {
        if rows == 0 {
            return;
        }
        let is_first = self.count == 0;
        self.count += i64::from(rows.count_ones());
        let known = self.number.value as i64;
        match self.function {
            Function::CountRows | Function::Count => {}
            Function::Smallest | Function::All => {
                let least = least(rows, values);
                self.number.value = if is_first { least } else { least.min(known) }.into();
            }
            Function::Largest | Function::Any => {
                let most = most(rows, values);
                self.number.value = if is_first { most } else { most.max(known) }.into();
            }
            _ if self.input == Input::Number(Kind::Int8) => {
                for at in members(rows) {
                    self.number.value += i128::from(values[at]);
                }
            }
            // The sum of a group's cannot overflow.
            _ => {
                let sum: i64 = if rows == Rows::MAX {
                    values.iter().sum()
                } else {
                    members(rows).map(|at| values[at]).sum()
                };
                self.number.value += i128::from(sum);
            }
        }
    }

    /// One number.
    #[inline]
    pub fn add_number(&mut self, value: i64) {
        let is_first = self.count == 0;
        self.count += 1;
        let known = self.number.value;
        let value = i128::from(value);
        self.number.value = match self.function {
            Function::Smallest | Function::All if !is_first => known.min(value),
            Function::Largest | Function::Any if !is_first => known.max(value),
            Function::CountRows | Function::Count => return,
            _ => known + value,
        };
    }

    /// The numerics of some rows.
    #[inline]
    pub unsafe fn add_fixed(&mut self, rows: Rows, values: &Fixeds) {
        for at in members(rows) {
            // SAFETY: as there.
            unsafe { self.add_one_fixed(values[at]) }
        }
    }

    /// One numeric.
    #[inline]
    pub unsafe fn add_one_fixed(&mut self, new: Fixed) {
        let is_first = !self.has_fixed;
        self.count += 1;
        self.has_fixed = true;
        let known = self.number;
        let is_taken = match self.function {
            // Of equal ones core takes the later, which may show more digits.
            Function::Smallest => is_first || new.value <= known.value,
            Function::Largest => is_first || new.value >= known.value,
            _ => {
                let scale = known.scale.max(new.scale);
                match known.value.checked_add(new.value) {
                    Some(value) => self.number = Fixed { value, scale },
                    None => {
                        self.number = new;
                        // SAFETY: as there.
                        unsafe { self.put_beyond(known.to_numeric(), pg_sys::F_NUMERIC_ADD) }
                    }
                }
                return;
            }
        };
        if is_taken {
            self.number = new;
        }
    }

    /// A numeric.
    pub unsafe fn add_numeric(&mut self, value: pg_sys::Datum, fixed: Option<Fixed>) {
        // SAFETY: a numeric that is not compressed or elsewhere (caller).
        unsafe {
            if let Some(fixed) = fixed {
                return self.add_one_fixed(fixed);
            }
            self.count += 1;
            self.put_beyond(value, self.combining());
        }
    }

    /// Core's function that combines two numerics.
    fn combining(&self) -> u32 {
        match self.function {
            Function::Smallest => pg_sys::F_NUMERIC_SMALLER,
            Function::Largest => pg_sys::F_NUMERIC_LARGER,
            _ => pg_sys::F_NUMERIC_ADD,
        }
    }

    /// Combines the numeric beyond with another one.
    unsafe fn put_beyond(&mut self, value: pg_sys::Datum, function: u32) {
        // SAFETY: numerics; what was kept is this value's own.
        unsafe {
            let is_sum = function == pg_sys::F_NUMERIC_ADD;
            let value = if is_sum {
                self.take_halves_out(value)
            } else {
                value
            };
            let Some(known) = self.beyond else {
                self.beyond = Some(self.copy(value));
                return;
            };
            let combined = numeric::call(function, known, value);
            let combined = if is_sum {
                self.take_halves_out(combined)
            } else {
                combined
            };
            let kept = self.copy(combined);
            self.beyond = Some(kept);
            self.free(known);
        }
    }

    /// What is left of a part of a sum, in the current memory context: below half of numeric's
    /// range, so that the sum of two such parts is in range.
    unsafe fn take_halves_out(&mut self, value: pg_sys::Datum) -> pg_sys::Datum {
        // SAFETY: a numeric that is not compressed or elsewhere; core's functions.
        unsafe {
            if !payload(value.cast_mut_ptr()).is_some_and(numeric::is_at_the_end) {
                return value;
            }
            let half = numeric::half_of_range();
            let zero = numeric::of_integer(0);
            let is = |function, left, right| numeric::call(function, left, right).value() & 1 != 0;
            if is(pg_sys::F_NUMERIC_LT, value, zero) {
                let left = numeric::call(pg_sys::F_NUMERIC_ADD, value, half);
                if is(pg_sys::F_NUMERIC_LE, left, zero) {
                    self.halves -= 1;
                    return left;
                }
            } else if is(pg_sys::F_NUMERIC_GE, value, half) {
                self.halves += 1;
                return numeric::call(pg_sys::F_NUMERIC_SUB, value, half);
            }
            value
        }
    }

    /// Puts the halves back that were taken out of a sum; raises 22003 if it is beyond the range,
    /// as core does.
    unsafe fn put_halves_back(&self, sum: pg_sys::Datum) -> pg_sys::Datum {
        // SAFETY: as for `take_halves_out`.
        unsafe {
            let function = match self.halves {
                0 => return sum,
                1.. => pg_sys::F_NUMERIC_ADD,
                _ => pg_sys::F_NUMERIC_SUB,
            };
            let half = numeric::half_of_range();
            // A few are beyond the range, whatever else there is.
            (0..self.halves.unsigned_abs().min(4))
                .fold(sum, |sum, _| numeric::call(function, sum, half))
        }
    }

    unsafe fn copy(&self, value: pg_sys::Datum) -> pg_sys::Datum {
        // SAFETY: a varlena; the context outlives this value.
        unsafe {
            let kept = &mut *self.kept;
            let old = pg_sys::MemoryContextSwitchTo(kept.context);
            let copy = copied(value);
            pg_sys::MemoryContextSwitchTo(old);
            kept.bytes += pg_sys::GetMemoryChunkSpace(copy.cast_mut_ptr());
            copy
        }
    }

    unsafe fn free(&self, copy: pg_sys::Datum) {
        // SAFETY: what `copy` made.
        unsafe {
            (*self.kept).bytes -= pg_sys::GetMemoryChunkSpace(copy.cast_mut_ptr());
            pg_sys::pfree(copy.cast_mut_ptr());
        }
    }

    /// The sum of numerics, or the smallest or largest one, in the current memory context.
    unsafe fn numeric(&self) -> pg_sys::Datum {
        // SAFETY: core's functions; may raise.
        unsafe {
            match self.beyond {
                None => self.number.to_numeric(),
                Some(beyond) if !self.has_fixed => self.put_halves_back(copied(beyond)),
                Some(beyond) => {
                    let number = self.number.to_numeric();
                    // It may be `beyond` itself.
                    let all = copied(numeric::call(self.combining(), beyond, number));
                    self.put_halves_back(all)
                }
            }
        }
    }

    /// The aggregate's result, in the current memory context; `None`: NULL.
    pub unsafe fn result(&self) -> Option<pg_sys::Datum> {
        let is_count = matches!(self.function, Function::CountRows | Function::Count);
        if self.count == 0 && !is_count {
            return None;
        }
        // SAFETY: core's functions; may raise.
        unsafe {
            Some(match (self.function, self.input) {
                (Function::CountRows | Function::Count, _) => pg_sys::Datum::from(self.count),
                (Function::Sum, _) => pg_sys::Datum::from(self.number.value as i64),
                (Function::SumExact, Input::Numeric) => self.numeric(),
                (Function::SumExact, _) => numeric::of_integer(self.number.value),
                (Function::Average, input) => {
                    let sum = match input {
                        Input::Numeric => self.numeric(),
                        Input::Number(Kind::Int8) => numeric::of_integer(self.number.value),
                        // Core adds these up in 64 bits.
                        _ => numeric::of_integer((self.number.value as i64).into()),
                    };
                    let count = numeric::of_integer(self.count.into());
                    numeric::call(pg_sys::F_NUMERIC_DIV, sum, count)
                }
                (_, Input::Numeric) => self.numeric(),
                (_, Input::Number(kind)) => kind.to_datum(self.number.value as i64),
                (_, Input::Anything) => unreachable!("only counts have no value"),
            })
        }
    }
}

/// A copy of a numeric, in the current memory context.
unsafe fn copied(value: pg_sys::Datum) -> pg_sys::Datum {
    // SAFETY: a varlena that is not compressed or elsewhere; as much is read as it has.
    unsafe {
        let value = value.cast_mut_ptr::<u8>();
        let bytes = pgrx::varsize_any(value.cast());
        let copy = pg_sys::palloc(bytes).cast::<u8>();
        copy.copy_from_nonoverlapping(value, bytes);
        pg_sys::Datum::from(copy)
    }
}

#[inline]
fn least(rows: Rows, values: &Numbers) -> i64 {
    if rows == Rows::MAX {
        return values.iter().copied().fold(i64::MAX, i64::min);
    }
    members(rows).fold(i64::MAX, |known, at| known.min(values[at]))
}

#[inline]
fn most(rows: Rows, values: &Numbers) -> i64 {
    if rows == Rows::MAX {
        return values.iter().copied().fold(i64::MIN, i64::max);
    }
    members(rows).fold(i64::MIN, |known, at| known.max(values[at]))
}
