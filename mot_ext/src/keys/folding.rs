//! Types whose values are compared in lower case: `citext`.
//!
//! Their comparison makes lower case by the database's default collation, whichever collation the
//! index has, and compares by the index's. The type is known by its comparison: a function of the
//! extension's library.
use crate::pg::local::ProcessLocal;
use crate::pg::version;
use mot_engine::collation::{Folder, Folding};
use pgrx::pg_guard;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::CStr;

/// `ClanguageId` of `catalog/pg_language.h`.
const C_LANGUAGE: u32 = 13;

/// What this process's database makes lower case by; the outer `None`: nobody has looked.
static OF_DATABASE: ProcessLocal<Cell<Option<Option<Folding>>>> = ProcessLocal(Cell::new(None));

/// How the database's default collation makes lower case; `None`: in a way that the engine does not
/// know. It never changes. May raise.
pub fn folding() -> Option<Folding> {
    if let Some(known) = OF_DATABASE.0.get() {
        return known;
    }
    let found = look_up();
    OF_DATABASE.0.set(Some(found));
    found
}

fn look_up() -> Option<Folding> {
    let (folder, locale) = if version::folds_ascii() {
        (Folder::Ascii, String::new())
    } else if !super::text_order::is_utf8() {
        return None;
    } else {
        let row = version::locale_of(pg_sys::DEFAULT_COLLATION_OID)?;
        match row.provider {
            pg_sys::COLLPROVIDER_LIBC => (Folder::Libc, version::database_ctype()?),
            pg_sys::COLLPROVIDER_ICU => (Folder::Icu, row.locale),
            _ => return None,
        }
    };
    let folding = Folding::named(folder, &locale).ok()?;
    (!folding.is_missing()).then_some(folding)
}

/// What was found of types, by oid.
static OF_TYPES: ProcessLocal<RefCell<Option<HashMap<u32, bool>>>> =
    ProcessLocal(RefCell::new(None));

/// Whether values of the type are compared in lower case. The catalog is read once for each type,
/// and again when types or functions change: scans ask. May raise.
pub fn folds(input: pg_sys::Oid) -> bool {
    let oid = input.to_u32();
    // Core's own types are none of an extension.
    if oid < pg_sys::FirstNormalObjectId {
        return false;
    }
    let known = OF_TYPES
        .0
        .borrow()
        .as_ref()
        .and_then(|known| known.get(&oid).copied());
    if let Some(known) = known {
        return known;
    }
    let found = is_folding_type(input);
    let mut known = OF_TYPES.0.borrow_mut();
    let known = known.get_or_insert_with(|| {
        use pg_sys::SysCacheIdentifier::{PROCOID, TYPEOID};
        let nothing = pg_sys::Datum::null();
        for cache in [TYPEOID, PROCOID] {
            // SAFETY: once in a process; the callback forgets.
            unsafe {
                pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(on_change), nothing);
            }
        }
        HashMap::new()
    });
    known.insert(oid, found);
    found
}

/// A type or a function has changed.
#[pg_guard]
unsafe extern "C-unwind" fn on_change(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    if let Ok(mut known) = OF_TYPES.0.try_borrow_mut()
        && let Some(known) = known.as_mut()
    {
        known.clear();
    }
}

fn is_folding_type(input: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up; the entry lives as long as the process.
    let entry = unsafe {
        let wanted = (pg_sys::TYPECACHE_BTREE_OPFAMILY | pg_sys::TYPECACHE_CMP_PROC) as i32;
        &*pg_sys::lookup_type_cache(input, wanted)
    };
    entry.typlen == -1
        && entry.typalign as u8 == pg_sys::TYPALIGN_INT
        && entry.btree_opintype == input
        && is_of_library(entry.cmp_proc, c"citext_cmp", b"citext")
}

/// Whether a function is this one of a library.
fn is_of_library(function: pg_sys::Oid, symbol: &CStr, library: &[u8]) -> bool {
    let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
    // SAFETY: a row of the catalog's cache is read while it is held.
    unsafe {
        let row = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(function));
        if row.is_null() {
            return false;
        }
        let column = |number: u32| {
            let mut is_null = false;
            let value = pg_sys::SysCacheGetAttr(cache, row, number as i16, &raw mut is_null);
            (!is_null).then_some(value)
        };
        let string = |number| {
            let value = column(number)?;
            Some(CStr::from_ptr(pg_sys::text_to_cstring(
                value.cast_mut_ptr(),
            )))
        };
        let language = column(pg_sys::Anum_pg_proc_prolang).map(|value| value.value() as u32);
        let path = string(pg_sys::Anum_pg_proc_probin);
        let file = path.and_then(|path| path.to_bytes().rsplit(|byte| *byte == b'/').next());
        let is_it = language == Some(C_LANGUAGE)
            && string(pg_sys::Anum_pg_proc_prosrc) == Some(symbol)
            && file.is_some_and(|file| file.strip_suffix(b".so").unwrap_or(file) == library);
        pg_sys::ReleaseSysCache(row);
        is_it
    }
}
