//! The order of an enum's values.
//!
//! A key has a value's oid, but the order is in PostgreSQL's catalog: ALTER TYPE may put a new
//! value between two others. So an index orders such a column only roughly, and a scan that gives
//! an order asks here. Values with even oids are in the order of their oids (`enum_cmp`). For
//! others the server is asked.

use std::cmp::Ordering;
use std::sync::OnceLock;

/// Compares two values of one enum by their oids. It may look into the catalog: no caller asks with
/// a latch or a pin. It unwinds if there is no such value.
pub type EnumOrder = fn(u32, u32) -> Ordering;

static ORDER: OnceLock<EnumOrder> = OnceLock::new();

/// Sets the function that knows the order of values with odd oids; called once, while the server
/// loads its libraries.
pub fn set_enum_order(order: EnumOrder) {
    let _: Result<(), EnumOrder> = ORDER.set(order);
}

/// Compares two values of one enum. Without a server all lie in the order of their oids.
pub(super) fn compare(left: u32, right: u32) -> Ordering {
    match ORDER.get() {
        Some(order) if !(is_even(left) && is_even(right)) => order(left, right),
        _ => left.cmp(&right),
    }
}

fn is_even(oid: u32) -> bool {
    oid.is_multiple_of(2)
}
