//! The order that a collation gives to texts, and whether keys can lie in it.
//!
//! The catalog is read once for each collation, and again when its rows change.
use crate::pg::local::ProcessLocal;
use crate::pg::version::{self, LocaleRow};
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

/// What was found of a collation.
#[derive(Clone, Copy)]
struct CachedCollation {
    order: TextOrder,
    /// Core has opened its locale.
    is_open: bool,
}

/// What was found of collations, by oid.
static COLLATIONS: ProcessLocal<RefCell<Option<HashMap<u32, CachedCollation>>>> =
    ProcessLocal(RefCell::new(None));

/// Has core open the locale of a collation by which a scan compares: it warns of another version
/// than the catalog's, and raises if the machine does not have it.
pub fn use_locale(collation: pg_sys::Oid) {
    let (TextOrder::Collated(_) | TextOrder::Other) = text_order(collation) else {
        return;
    };
    let is_open = |cache: &HashMap<u32, CachedCollation>| {
        let found = cache.get(&collation.to_u32());
        found.is_some_and(|found| found.is_open)
    };
    if COLLATIONS.0.borrow().as_ref().is_some_and(is_open) {
        return;
    }
    version::open_locale(collation);
    if let Some(found) = COLLATIONS
        .0
        .borrow_mut()
        .as_mut()
        .and_then(|cache| cache.get_mut(&collation.to_u32()))
    {
        found.is_open = true;
    }
}

/// The order of a collation, or of values without one. It is `Other` of a locale that the machine
/// does not have.
pub fn text_order(collation: pg_sys::Oid) -> TextOrder {
    if collation == pg_sys::InvalidOid {
        return TextOrder::Bytes;
    }
    let oid = collation.to_u32();
    if let Some(order) = COLLATIONS
        .0
        .borrow()
        .as_ref()
        .and_then(|cache| cache.get(&oid))
    {
        return order.order;
    }
    let order = look_up(collation);
    let mut cache = COLLATIONS.0.borrow_mut();
    let cache = cache.get_or_insert_with(|| {
        let collations = pg_sys::SysCacheIdentifier::COLLOID as i32;
        let nothing = pg_sys::Datum::null();
        // SAFETY: once in a process; the callback forgets.
        unsafe { pg_sys::CacheRegisterSyscacheCallback(collations, Some(on_change), nothing) };
        HashMap::new()
    });
    let is_open = order == TextOrder::Bytes;
    cache.insert(oid, CachedCollation { order, is_open });
    order
}

fn look_up(collation: pg_sys::Oid) -> TextOrder {
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
        pg_sys::COLLPROVIDER_ICU => return TextOrder::Other,
        // Those that come with core, from 17 on: all of them compare bytes.
        _ => return TextOrder::Bytes,
    };
    match Collation::named(provider, &row.locale) {
        Ok(named) if !named.is_missing() && is_of_server(named, &row) => TextOrder::Collated(named),
        _ => TextOrder::Other,
    }
}

/// Whether the library that gives keys is the one with which the server compares: another module
/// may have brought another version of ICU into this process.
fn is_of_server(collation: Collation, row: &LocaleRow) -> bool {
    row.provider != pg_sys::COLLPROVIDER_ICU || collation.version() == version::actual_version(row)
}

pub(super) fn is_utf8() -> bool {
    // SAFETY: a variable of this process.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    encoding == pg_sys::pg_enc::PG_UTF8 as i32
}

/// A row of `pg_collation` has changed.
#[pg_guard]
unsafe extern "C-unwind" fn on_change(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    if let Ok(mut cache) = COLLATIONS.0.try_borrow_mut()
        && let Some(cache) = cache.as_mut()
    {
        cache.clear();
    }
}
