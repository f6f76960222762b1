//! In whose order a collation has texts, and whether keys can lie so.
//!
//! The catalog is read once for each collation, and again when its rows change.
use crate::pg::local::ProcessLocal;
use crate::pg::version;
use mot_engine::collation::{Collation, Provider, compares_bytes};
use pgrx::pg_guard;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CString;

/// The order of a collation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextOrder {
    /// That of the texts' bytes.
    Bytes,
    /// One that keys can lie in.
    Collated(Collation),
    /// Another one.
    Other,
}

/// What was found of collations, by oid.
static KNOWN: ProcessLocal<RefCell<Option<HashMap<u32, TextOrder>>>> =
    ProcessLocal(RefCell::new(None));

/// The order of a collation, or of values without one. Raises as core does for a locale that the
/// machine does not have.
pub fn text_order(collation: pg_sys::Oid) -> TextOrder {
    if collation == pg_sys::InvalidOid {
        return TextOrder::Bytes;
    }
    let oid = collation.to_u32();
    if let Some(order) = KNOWN.0.borrow().as_ref().and_then(|known| known.get(&oid)) {
        return *order;
    }
    let order = look_up(collation);
    let mut known = KNOWN.0.borrow_mut();
    let known = known.get_or_insert_with(|| {
        let collations = pg_sys::SysCacheIdentifier::COLLOID as i32;
        let nothing = pg_sys::Datum::null();
        // SAFETY: once in a process; the callback forgets.
        unsafe { pg_sys::CacheRegisterSyscacheCallback(collations, Some(on_change), nothing) };
        HashMap::new()
    });
    known.insert(oid, order);
    order
}

fn look_up(collation: pg_sys::Oid) -> TextOrder {
    if version::orders_by_bytes(collation) {
        return TextOrder::Bytes;
    }
    version::open_locale(collation);
    let Some(row) = version::locale_of(collation) else {
        return TextOrder::Other;
    };
    let provider = match row.provider {
        pg_sys::COLLPROVIDER_LIBC => {
            let name = CString::new(&*row.locale);
            if name.is_ok_and(|name| compares_bytes(&name)) {
                return TextOrder::Bytes;
            }
            Provider::LibcFirstLevel
        }
        // The engine has texts in UTF-8 alone for ICU.
        pg_sys::COLLPROVIDER_ICU if is_utf8() && !row.has_rules => match row.is_deterministic {
            true => Provider::Icu,
            false => Provider::IcuEqual,
        },
        _ => return TextOrder::Other,
    };
    match Collation::named(provider, &row.locale) {
        Ok(named) if !named.is_missing() => TextOrder::Collated(named),
        _ => TextOrder::Other,
    }
}

pub(super) fn is_utf8() -> bool {
    // SAFETY: a variable of this process.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    encoding == pg_sys::pg_enc::PG_UTF8 as i32
}

/// A row of `pg_collation` has changed.
#[pg_guard]
unsafe extern "C-unwind" fn on_change(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    if let Ok(mut known) = KNOWN.0.try_borrow_mut()
        && let Some(known) = known.as_mut()
    {
        known.clear();
    }
}
