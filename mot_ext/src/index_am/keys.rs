//! From core's scan keys to key ranges.
//!
//! The conditions on leading columns that fix a value each (`=`, `= ANY`, IS NULL) become prefixes,
//! those on the next column a range. Core evaluates the rest, and whatever the range does not hold
//! exactly, over the row (`xs_recheck`).
use crate::fdw::bounds::Bounds;
use crate::fdw::{Key, Test, Value};
use crate::keys;
use crate::pg::version;
use mot_engine::key::IndexDefinition;
use pgrx::pg_sys;

/// Operator families whose order is that of bytes under every collation.
const BYTE_ORDER_FAMILIES: [u32; 2] = [TEXT_PATTERN_FAMILY, BPCHAR_PATTERN_FAMILY];
/// `text_pattern_ops` of pg_opfamily.dat.
const TEXT_PATTERN_FAMILY: u32 = 2095;
/// `bpchar_pattern_ops` of pg_opfamily.dat.
const BPCHAR_PATTERN_FAMILY: u32 = 2097;

/// What an index scan looks for.
pub struct Sought {
    pub bounds: Bounds,
    /// Core is to evaluate the conditions over each row.
    pub is_inexact: bool,
    /// A comparison with NULL: no row passes.
    pub is_empty: bool,
}

/// The conditions of a scan of an open index.
///
/// # Safety
/// The keys are core's, for this index, in the order of columns.
pub unsafe fn sought(
    index: pg_sys::Relation,
    definition: &'static IndexDefinition,
    scan_keys: &[pg_sys::ScanKeyData],
) -> Sought {
    let mut chosen = Vec::new();
    let mut arguments = Vec::new();
    let mut used = 0;
    let mut is_inexact = false;
    let is_empty = scan_keys.iter().any(compares_with_null);
    let mut add = |condition: Condition| {
        chosen.push(condition.key);
        arguments.extend(condition.argument);
        is_inexact |= condition.is_inexact;
        used += 1;
    };
    for column in 0..definition.columns.len() {
        let of_column = scan_keys
            .iter()
            .filter(|key| usize::from(key.sk_attno as u16) == column + 1)
            // SAFETY: the caller's index and its keys.
            .filter_map(|key| unsafe { condition(index, definition, column, key) });
        let of_column: Vec<Condition> = of_column.collect();
        let fixes = |condition: &&Condition| {
            matches!(condition.key.test, Test::Equal | Test::AnyOf | Test::IsNull)
        };
        if let Some(fixing) = of_column.iter().find(fixes) {
            add(*fixing);
            continue;
        }
        of_column.into_iter().for_each(&mut add);
        break;
    }
    let is_inexact = is_inexact || used < scan_keys.len();
    Sought {
        bounds: Bounds::new(definition, &chosen, &arguments),
        is_inexact,
        is_empty,
    }
}

/// A scan key as a test of its column.
#[derive(Clone, Copy)]
struct Condition {
    key: Key,
    argument: Option<Value>,
    is_inexact: bool,
}

fn has(key: &pg_sys::ScanKeyData, flag: u32) -> bool {
    key.sk_flags as u32 & flag != 0
}

fn compares_with_null(key: &pg_sys::ScanKeyData) -> bool {
    has(key, pg_sys::SK_ISNULL) && !has(key, pg_sys::SK_SEARCHNULL | pg_sys::SK_SEARCHNOTNULL)
}

/// The test that a scan key is, if the index can answer it or bound it.
///
/// # Safety
/// An open index and a key of this column of it.
unsafe fn condition(
    index: pg_sys::Relation,
    definition: &IndexDefinition,
    column: usize,
    key: &pg_sys::ScanKeyData,
) -> Option<Condition> {
    let test_of_null = |test| Condition {
        key: Key {
            column,
            test,
            argument_type: pg_sys::InvalidOid,
        },
        argument: None,
        is_inexact: false,
    };
    if has(key, pg_sys::SK_SEARCHNULL) {
        return Some(test_of_null(Test::IsNull));
    }
    if has(key, pg_sys::SK_SEARCHNOTNULL) {
        return Some(test_of_null(Test::IsNotNull));
    }
    if has(key, pg_sys::SK_ROW_HEADER | pg_sys::SK_ISNULL) {
        return None;
    }
    let is_list = has(key, pg_sys::SK_SEARCHARRAY);
    let test = match key.sk_strategy {
        1 if !is_list => Test::Less,
        2 if !is_list => Test::LessEqual,
        3 if is_list => Test::AnyOf,
        3 => Test::Equal,
        4 if !is_list => Test::GreaterEqual,
        5 if !is_list => Test::Greater,
        _ => return None,
    };
    let is_range = !matches!(test, Test::Equal | Test::AnyOf);
    // SAFETY: the caller's index, which has a class, a family and a collation for each column.
    let (own_type, orders) = unsafe {
        let family = (*(*index).rd_opfamily.add(column)).to_u32();
        let orders = BYTE_ORDER_FAMILIES.contains(&family)
            || orders_by_key(*(*index).rd_indcollation.add(column));
        (*(*index).rd_opcintype.add(column), orders)
    };
    if is_range && !orders {
        return None;
    }
    let argument_type = match key.sk_subtype {
        pg_sys::InvalidOid => own_type,
        other => other,
    };
    let argument_kind = keys::kind(argument_type)?;
    let is_same = argument_kind == definition.columns[column].kind;
    let lies_near = is_range && keys::lies_near(own_type, argument_type);
    if !(is_same || lies_near || keys::converts(own_type, argument_type)) {
        return None;
    }
    Some(Condition {
        key: Key {
            column,
            test,
            argument_type,
        },
        argument: Some(Value::Constant(key.sk_argument, false)),
        is_inexact: lies_near && !is_same,
    })
}

/// Whether keys lie in a collation's order.
fn orders_by_key(collation: pg_sys::Oid) -> bool {
    collation == pg_sys::InvalidOid || version::orders_by_bytes(collation)
}
