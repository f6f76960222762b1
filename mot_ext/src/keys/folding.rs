//! Types whose values are compared in lower case: `citext` (`known_types.rs`).
//!
//! Their comparison makes lower case by the database's default collation, whichever collation the
//! index has, and compares by the index's, or by bytes.
use super::known_types::{KnownType, known_type};
use crate::pg::local::ProcessLocal;
use crate::pg::version;
use mot_engine::collation::{Folder, Folding};
use pgrx::pg_sys;
use std::cell::Cell;

/// What this process's database makes lower case by; the outer `None`: not looked up yet.
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
    known_type(input) == Some(KnownType::Folded)
}
