//! Types whose values are compared in lower case: `citext`.
//!
//! Their comparison makes lower case by the database's default collation, whichever collation the
//! index has, and compares by the index's. The type is known by its comparison: a function of the
//! extension's library.
use crate::pg::local::ProcessLocal;
use crate::pg::version;
use mot_engine::collation::{Folder, Folding};
use pgrx::pg_sys;
use std::cell::Cell;
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

/// Whether values of the type are compared in lower case. May raise.
pub fn folds(input: pg_sys::Oid) -> bool {
    // Core's own types are none of an extension.
    if input.to_u32() < pg_sys::FirstNormalObjectId {
        return false;
    }
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
