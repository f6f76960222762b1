//! Numerics of any size: kept in a memory context, computed by core's functions; and results as
//! core's final functions make them.
use mot_programs::aggregate::{self, Fixed, Outcome, Wide};
use mot_programs::filter::WordKind;
use mot_programs::varlena::{self, payload};
use pgrx::pg_sys;
use std::ffi::CString;

/// What an aggregate has seen so far.
pub type Accumulator = aggregate::Accumulator<Kept>;

/// A numeric that is neither compressed nor elsewhere, in a memory context that lives until it was
/// taken in, or given as a result.
#[derive(Clone, Copy)]
pub struct Numeric(pg_sys::Datum);

impl Numeric {
    /// # Safety
    /// The datum is such a numeric.
    pub unsafe fn new(datum: pg_sys::Datum) -> Numeric {
        Numeric(datum)
    }
}

/// A copy that an accumulator keeps.
pub struct Copied(pg_sys::Datum);

/// Where numerics of accumulators are kept, which do not fit into these.
#[derive(Clone, Copy)]
pub struct Kept(*mut Keeping);

struct Keeping {
    context: pg_sys::MemoryContext,
    /// What they take.
    bytes: usize,
}

impl Kept {
    /// In the memory context.
    ///
    /// # Safety
    /// No handle is used when the context is gone.
    pub unsafe fn new(context: pg_sys::MemoryContext) -> Kept {
        // SAFETY: memory of a plain value's size.
        unsafe {
            let kept = pg_sys::MemoryContextAlloc(context, size_of::<Keeping>()).cast::<Keeping>();
            kept.write(Keeping { context, bytes: 0 });
            Kept(kept)
        }
    }
}

impl Wide for Kept {
    type Numeric = Numeric;
    type Kept = Copied;

    fn of_fixed(self, number: Fixed) -> Numeric {
        // SAFETY: digits, as numeric's input function takes them.
        unsafe { Numeric(parsed(number.text())) }
    }

    fn of_integer(self, number: i128) -> Numeric {
        // SAFETY: a plain number.
        unsafe { Numeric(of_integer(number)) }
    }

    fn add(self, left: Numeric, right: Numeric) -> Numeric {
        combined(pg_sys::F_NUMERIC_ADD, left, right)
    }

    fn subtract(self, left: Numeric, right: Numeric) -> Numeric {
        combined(pg_sys::F_NUMERIC_SUB, left, right)
    }

    fn smaller(self, left: Numeric, right: Numeric) -> Numeric {
        combined(pg_sys::F_NUMERIC_SMALLER, left, right)
    }

    fn larger(self, left: Numeric, right: Numeric) -> Numeric {
        combined(pg_sys::F_NUMERIC_LARGER, left, right)
    }

    fn is_at_most(self, left: Numeric, right: Numeric) -> bool {
        combined(pg_sys::F_NUMERIC_LE, left, right).0.value() & 1 != 0
    }

    fn is_at_the_end(self, number: Numeric) -> bool {
        // SAFETY: a numeric (type invariant).
        unsafe { payload(number.0.cast_mut_ptr()) }.is_some_and(aggregate::is_at_the_end)
    }

    fn half_of_range(self) -> Numeric {
        // SAFETY: a number that numeric's input function takes.
        unsafe { Numeric(half_of_range()) }
    }

    fn keep(self, number: Numeric) -> Copied {
        // SAFETY: the context lives (`Kept::new`).
        unsafe {
            let keeping = &mut *self.0;
            let old = pg_sys::MemoryContextSwitchTo(keeping.context);
            let copy = self.copied(number).0;
            pg_sys::MemoryContextSwitchTo(old);
            keeping.bytes += pg_sys::GetMemoryChunkSpace(copy.cast_mut_ptr());
            Copied(copy)
        }
    }

    fn kept(self, kept: &Copied) -> Numeric {
        Numeric(kept.0)
    }

    fn copied(self, number: Numeric) -> Numeric {
        // SAFETY: a varlena that is not compressed or elsewhere (type invariant); as much is read
        // as it has.
        unsafe {
            let value = number.0.cast_mut_ptr::<u8>();
            let bytes = varlena::bytes(value);
            let copy = pg_sys::palloc(bytes).cast::<u8>();
            copy.copy_from_nonoverlapping(value, bytes);
            Numeric(pg_sys::Datum::from(copy))
        }
    }

    fn release(self, kept: Copied) {
        // SAFETY: what `keep` made; the context lives (`Kept::new`).
        unsafe {
            (*self.0).bytes -= pg_sys::GetMemoryChunkSpace(kept.0.cast_mut_ptr());
            pg_sys::pfree(kept.0.cast_mut_ptr());
        }
    }

    fn bytes(self) -> usize {
        // SAFETY: the context lives (`Kept::new`).
        unsafe { (*self.0).bytes }
    }
}

/// A result, in the current memory context; `None`: NULL.
pub fn result(outcome: Outcome<Numeric>) -> Option<pg_sys::Datum> {
    match outcome {
        Outcome::Null => None,
        Outcome::Integer(number) => Some(pg_sys::Datum::from(number)),
        Outcome::Number(kind, number) => Some(datum(kind, number)),
        Outcome::Numeric(numeric) => Some(numeric.0),
        Outcome::Quotient(sum, count) => {
            // SAFETY: a plain number.
            let count = unsafe { Numeric(of_integer(count.into())) };
            Some(combined(pg_sys::F_NUMERIC_DIV, sum, count).0)
        }
    }
}

/// The datum of a number.
pub fn datum(kind: WordKind, number: i64) -> pg_sys::Datum {
    pg_sys::Datum::from(kind.to_word(number) as usize)
}

/// What a function of two numerics, core's, gives.
fn combined(function: u32, left: Numeric, right: Numeric) -> Numeric {
    // SAFETY: two numerics (type invariant).
    unsafe { Numeric(call(function, left.0, right.0)) }
}

/// The numeric of an integer, in the current memory context.
unsafe fn of_integer(value: i128) -> pg_sys::Datum {
    match i64::try_from(value) {
        // SAFETY: core's function; may raise.
        Ok(value) => unsafe { pg_sys::Datum::from(pg_sys::int64_to_numeric(value)) },
        // SAFETY: as there.
        Err(_) => unsafe { parsed(value.to_string()) },
    }
}

/// Half of the end of numeric's range, 5 * 10^131071, in the current memory context.
unsafe fn half_of_range() -> pg_sys::Datum {
    // SAFETY: as there.
    unsafe { parsed("5e131071".to_owned()) }
}

unsafe fn parsed(text: String) -> pg_sys::Datum {
    let text = CString::new(text).expect("digits");
    // SAFETY: numeric's input function: the text, no element type, no type modifier. The text is
    // dropped after it, at an error too.
    unsafe {
        pg_sys::OidFunctionCall3Coll(
            pg_sys::Oid::from(pg_sys::F_NUMERIC_IN),
            pg_sys::InvalidOid,
            pg_sys::Datum::from(text.as_ptr()),
            pg_sys::Datum::from(0),
            pg_sys::Datum::from(-1_i32),
        )
    }
}

/// A function of two numerics, core's, in the current memory context.
unsafe fn call(function: u32, left: pg_sys::Datum, right: pg_sys::Datum) -> pg_sys::Datum {
    // SAFETY: a strict function of the server's, by its oid, that takes two numerics (caller); may
    // raise.
    unsafe {
        let function = pg_sys::Oid::from(function);
        pg_sys::OidFunctionCall2Coll(function, pg_sys::InvalidOid, left, right)
    }
}
