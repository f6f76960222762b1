//! The server's own functions that a filter does itself, by their oids: what `fmgr` calls for such
//! an oid is decided by the oid alone.
use mot_programs::filter::{Arithmetic, Comparison, WordKind};
use pgrx::pg_sys;

/// In the order of the lists below.
const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessEqual,
    Comparison::Greater,
    Comparison::GreaterEqual,
];

/// What a function does. All of them are strict.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    Compare(Comparison, WordKind, WordKind),
    /// With the kind of the result.
    Compute(Arithmetic, WordKind, WordKind, WordKind),
    Negate(WordKind),
    /// From the kind to one that holds all its values.
    Widen(WordKind, WordKind),
    /// Texts; whether blanks at their ends do not count.
    CompareTexts(Comparison, bool),
    /// LIKE, and whether it is NOT LIKE.
    Like(bool),
}

type SixFunctions = [u32; 6];

/// Comparisons of numbers: =, <>, <, <=, >, >=.
const NUMBERS: [(SixFunctions, WordKind, WordKind); 16] = {
    use pg_sys::*;
    [
        (
            [F_INT4EQ, F_INT4NE, F_INT4LT, F_INT4LE, F_INT4GT, F_INT4GE],
            WordKind::Int4,
            WordKind::Int4,
        ),
        (
            [F_INT8EQ, F_INT8NE, F_INT8LT, F_INT8LE, F_INT8GT, F_INT8GE],
            WordKind::Int8,
            WordKind::Int8,
        ),
        (
            [
                F_INT84EQ, F_INT84NE, F_INT84LT, F_INT84LE, F_INT84GT, F_INT84GE,
            ],
            WordKind::Int8,
            WordKind::Int4,
        ),
        (
            [
                F_INT48EQ, F_INT48NE, F_INT48LT, F_INT48LE, F_INT48GT, F_INT48GE,
            ],
            WordKind::Int4,
            WordKind::Int8,
        ),
        (
            [F_INT2EQ, F_INT2NE, F_INT2LT, F_INT2LE, F_INT2GT, F_INT2GE],
            WordKind::Int2,
            WordKind::Int2,
        ),
        (
            [
                F_INT24EQ, F_INT24NE, F_INT24LT, F_INT24LE, F_INT24GT, F_INT24GE,
            ],
            WordKind::Int2,
            WordKind::Int4,
        ),
        (
            [
                F_INT42EQ, F_INT42NE, F_INT42LT, F_INT42LE, F_INT42GT, F_INT42GE,
            ],
            WordKind::Int4,
            WordKind::Int2,
        ),
        (
            [
                F_INT28EQ, F_INT28NE, F_INT28LT, F_INT28LE, F_INT28GT, F_INT28GE,
            ],
            WordKind::Int2,
            WordKind::Int8,
        ),
        (
            [
                F_INT82EQ, F_INT82NE, F_INT82LT, F_INT82LE, F_INT82GT, F_INT82GE,
            ],
            WordKind::Int8,
            WordKind::Int2,
        ),
        (
            [
                F_DATE_EQ, F_DATE_NE, F_DATE_LT, F_DATE_LE, F_DATE_GT, F_DATE_GE,
            ],
            WordKind::Int4,
            WordKind::Int4,
        ),
        (
            [
                F_TIMESTAMP_EQ,
                F_TIMESTAMP_NE,
                F_TIMESTAMP_LT,
                F_TIMESTAMP_LE,
                F_TIMESTAMP_GT,
                F_TIMESTAMP_GE,
            ],
            WordKind::Int8,
            WordKind::Int8,
        ),
        (
            [
                F_TIMESTAMPTZ_EQ,
                F_TIMESTAMPTZ_NE,
                F_TIMESTAMPTZ_LT,
                F_TIMESTAMPTZ_LE,
                F_TIMESTAMPTZ_GT,
                F_TIMESTAMPTZ_GE,
            ],
            WordKind::Int8,
            WordKind::Int8,
        ),
        (
            [
                F_TIME_EQ, F_TIME_NE, F_TIME_LT, F_TIME_LE, F_TIME_GT, F_TIME_GE,
            ],
            WordKind::Int8,
            WordKind::Int8,
        ),
        (
            [F_BOOLEQ, F_BOOLNE, F_BOOLLT, F_BOOLLE, F_BOOLGT, F_BOOLGE],
            WordKind::Bool,
            WordKind::Bool,
        ),
        (
            [F_CHAREQ, F_CHARNE, F_CHARLT, F_CHARLE, F_CHARGT, F_CHARGE],
            WordKind::Char,
            WordKind::Char,
        ),
        (
            [F_OIDEQ, F_OIDNE, F_OIDLT, F_OIDLE, F_OIDGT, F_OIDGE],
            WordKind::Oid,
            WordKind::Oid,
        ),
    ]
};

/// +, -, *, / of integers, and the kinds of their arguments and result.
const INTEGERS: [([u32; 4], WordKind, WordKind, WordKind); 9] = {
    use WordKind::{Int2, Int4, Int8};
    use pg_sys::*;
    [
        ([F_INT4PL, F_INT4MI, F_INT4MUL, F_INT4DIV], Int4, Int4, Int4),
        ([F_INT8PL, F_INT8MI, F_INT8MUL, F_INT8DIV], Int8, Int8, Int8),
        ([F_INT2PL, F_INT2MI, F_INT2MUL, F_INT2DIV], Int2, Int2, Int2),
        (
            [F_INT84PL, F_INT84MI, F_INT84MUL, F_INT84DIV],
            Int8,
            Int4,
            Int8,
        ),
        (
            [F_INT48PL, F_INT48MI, F_INT48MUL, F_INT48DIV],
            Int4,
            Int8,
            Int8,
        ),
        (
            [F_INT24PL, F_INT24MI, F_INT24MUL, F_INT24DIV],
            Int2,
            Int4,
            Int4,
        ),
        (
            [F_INT42PL, F_INT42MI, F_INT42MUL, F_INT42DIV],
            Int4,
            Int2,
            Int4,
        ),
        (
            [F_INT28PL, F_INT28MI, F_INT28MUL, F_INT28DIV],
            Int2,
            Int8,
            Int8,
        ),
        (
            [F_INT82PL, F_INT82MI, F_INT82MUL, F_INT82DIV],
            Int8,
            Int2,
            Int8,
        ),
    ]
};

const OPERATIONS: [Arithmetic; 4] = [
    Arithmetic::Add,
    Arithmetic::Subtract,
    Arithmetic::Multiply,
    Arithmetic::Divide,
];

/// Comparisons of texts, without and with blanks at their ends left out.
const TEXTS: [(SixFunctions, bool); 2] = {
    use pg_sys::*;
    [
        (
            [
                F_TEXTEQ, F_TEXTNE, F_TEXT_LT, F_TEXT_LE, F_TEXT_GT, F_TEXT_GE,
            ],
            false,
        ),
        (
            [
                F_BPCHAREQ, F_BPCHARNE, F_BPCHARLT, F_BPCHARLE, F_BPCHARGT, F_BPCHARGE,
            ],
            true,
        ),
    ]
};

/// What the function with this oid does, if a filter can do it.
pub fn function(oid: pg_sys::Oid) -> Option<Function> {
    let oid = oid.to_u32();
    let place = |functions: &[u32]| functions.iter().position(|function| *function == oid);
    for (functions, left, right) in &NUMBERS {
        if let Some(at) = place(functions) {
            return Some(Function::Compare(COMPARISONS[at], *left, *right));
        }
    }
    for (functions, is_padded) in &TEXTS {
        if let Some(at) = place(functions) {
            return Some(Function::CompareTexts(COMPARISONS[at], *is_padded));
        }
    }
    for (functions, left, right, result) in &INTEGERS {
        if let Some(at) = place(functions) {
            return Some(Function::Compute(OPERATIONS[at], *left, *right, *result));
        }
    }
    let remainder = |kind| Function::Compute(Arithmetic::Remainder, kind, kind, kind);
    Some(match oid {
        pg_sys::F_INT2MOD => remainder(WordKind::Int2),
        pg_sys::F_INT4MOD => remainder(WordKind::Int4),
        pg_sys::F_INT8MOD => remainder(WordKind::Int8),
        pg_sys::F_INT2UM => Function::Negate(WordKind::Int2),
        pg_sys::F_INT4UM => Function::Negate(WordKind::Int4),
        pg_sys::F_INT8UM => Function::Negate(WordKind::Int8),
        pg_sys::F_INT4_INT2 => Function::Widen(WordKind::Int2, WordKind::Int4),
        pg_sys::F_INT8_INT2 => Function::Widen(WordKind::Int2, WordKind::Int8),
        pg_sys::F_INT8_INT4 => Function::Widen(WordKind::Int4, WordKind::Int8),
        pg_sys::F_TEXTLIKE | pg_sys::F_BPCHARLIKE => Function::Like(false),
        pg_sys::F_TEXTNLIKE | pg_sys::F_BPCHARNLIKE => Function::Like(true),
        _ => return None,
    })
}
