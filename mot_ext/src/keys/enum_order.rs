//! The order of an enum's values, as the catalog has it: what scans of our indexes ask where ALTER
//! TYPE has put a value between two others.
use crate::pg::local::ProcessLocal;
use mot_engine::key::set_enum_order;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

/// An enum's values by their oids, each compared with one of them.
type EnumValues = Rc<[(u32, Ordering)]>;

/// Most lists that are remembered: of enums with many values each is long.
const LISTS_MAX: usize = 64;

/// The places of values within their enums, as far as they were looked up.
struct EnumPlaces {
    /// By oid: those of one enum can be compared.
    places: RefCell<HashMap<u32, f32>>,
    /// By a value's oid: all values of its enum, compared with it.
    lists: RefCell<HashMap<u32, EnumValues>>,
    /// How often the catalog has changed.
    changes: Cell<u64>,
    has_callback: Cell<bool>,
}

static ENUM_PLACES: std::sync::LazyLock<ProcessLocal<EnumPlaces>> =
    std::sync::LazyLock::new(|| {
        ProcessLocal(EnumPlaces {
            places: RefCell::default(),
            lists: RefCell::default(),
            changes: Cell::new(0),
            has_callback: Cell::new(false),
        })
    });

/// Has the engine ask for the order here; called once, while the server loads its libraries.
pub fn init() {
    set_enum_order(compare);
}

#[pg_guard]
unsafe extern "C-unwind" fn on_change(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    let cache = &ENUM_PLACES.0;
    cache.changes.set(cache.changes.get() + 1);
    cache.places.borrow_mut().clear();
    cache.lists.borrow_mut().clear();
}

/// Compares two values of one enum. Raises 22P03 where the catalog lacks one, as core does.
fn compare(left: u32, right: u32) -> Ordering {
    let cache = &ENUM_PLACES.0;
    loop {
        let changes = cache.changes.get();
        let (left, right) = (place(left), place(right));
        // A change may number all of them anew.
        if cache.changes.get() == changes {
            return left.total_cmp(&right);
        }
    }
}

/// The values of the enum that has this one, in no order, and how each compares with it. Raises
/// 22P03 where the catalog lacks it.
///
/// A row that a snapshot sees has a value that was there before the snapshot: what other sessions
/// have said of the catalog is taken in first.
pub fn enum_values(limit: u32) -> EnumValues {
    let cache = &ENUM_PLACES.0;
    register();
    // SAFETY: no code here holds anything that an invalidation could take away.
    unsafe { pg_sys::AcceptInvalidationMessages() };
    if let Some(known) = cache.lists.borrow().get(&limit) {
        return known.clone();
    }
    let changes = cache.changes.get();
    let places = places_beside(limit);
    let own = places.iter().find(|(value, _)| *value == limit);
    let Some((_, own)) = own else {
        unknown_value(limit);
    };
    let compared = places
        .iter()
        .map(|(value, place)| (*value, place.total_cmp(own)));
    let values: EnumValues = compared.collect();
    if cache.changes.get() == changes {
        let mut lists = cache.lists.borrow_mut();
        if lists.len() >= LISTS_MAX {
            lists.clear();
        }
        lists.insert(limit, values.clone());
    }
    values
}

/// The values of the enum that has this one, with their places; none, if the catalog lacks it.
fn places_beside(value: u32) -> Vec<(u32, f32)> {
    let by_oid = pg_sys::SysCacheIdentifier::ENUMOID as i32;
    let by_type = pg_sys::SysCacheIdentifier::ENUMTYPOIDNAME as i32;
    let none = pg_sys::Datum::null();
    // SAFETY: catalog look-ups. The row and the list are released when they were read, and nothing
    // raises before.
    unsafe {
        let row = pg_sys::SearchSysCache1(by_oid, pg_sys::Datum::from(value));
        if row.is_null() {
            return Vec::new();
        }
        let of_type = (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_enum>(row)).enumtypid;
        pg_sys::ReleaseSysCache(row);
        let list = pg_sys::SearchSysCacheList(by_type, 1, of_type.into(), none, none);
        let members = (*list).members.as_slice((*list).n_members as usize);
        let form = |member: &*mut pg_sys::CatCTup| {
            let row = &raw mut (**member).tuple;
            let form = &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_enum>(row);
            (form.oid.to_u32(), form.enumsortorder)
        };
        let places = members.iter().map(form).collect();
        pg_sys::ReleaseCatCacheList(list);
        places
    }
}

/// Has the catalog's changes told to this process; once in a process.
fn register() {
    if !ENUM_PLACES.0.has_callback.replace(true) {
        let values = pg_sys::SysCacheIdentifier::ENUMOID as i32;
        // SAFETY: the callback only forgets and counts.
        unsafe {
            pg_sys::CacheRegisterSyscacheCallback(values, Some(on_change), pg_sys::Datum::null())
        };
    }
}

#[cold]
fn unknown_value(value: u32) -> ! {
    ereport!(
        ERROR,
        PgSqlErrorCode::ERRCODE_INVALID_BINARY_REPRESENTATION,
        format!("invalid internal value for enum: {value}")
    );
}

fn place(value: u32) -> f32 {
    let cache = &ENUM_PLACES.0;
    let found = cache.places.borrow().get(&value).copied();
    if let Some(place) = found {
        return place;
    }
    let values = pg_sys::SysCacheIdentifier::ENUMOID as i32;
    register();
    let changes = cache.changes.get();
    // SAFETY: a catalog look-up by oid; the row is released when it was read.
    let found = unsafe {
        let row = pg_sys::SearchSysCache1(values, pg_sys::Datum::from(value));
        (!row.is_null()).then(|| {
            let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_enum>(row);
            let place = (*form).enumsortorder;
            pg_sys::ReleaseSysCache(row);
            place
        })
    };
    let Some(place) = found else {
        unknown_value(value);
    };
    if cache.changes.get() == changes {
        cache.places.borrow_mut().insert(value, place);
    }
    place
}
