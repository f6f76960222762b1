//! What the catalog says of a collation's locale.
use crate::pg::text;
use pgrx::pg_sys;
use std::ffi::{CStr, CString, c_char};

/// A collation's provider and locale.
pub struct LocaleRow {
    /// Of `pg_collation.collprovider`, or of the database's: `c`, `i`, and `b` from 17 on.
    pub provider: u8,
    /// The locale in whose order the provider sorts.
    pub locale: String,
    /// Texts that it calls equal are equal only if their bytes are.
    pub is_deterministic: bool,
    /// The order is changed by rules beside the locale (16 and later).
    pub has_rules: bool,
}

/// Where a row of one of the two catalogs has what is asked for.
struct Columns {
    cache: pg_sys::SysCacheIdentifier::Type,
    provider: u32,
    /// Not of databases: their collations are deterministic.
    deterministic: Option<u32>,
    /// The C library's locale.
    libc: u32,
    /// The locale of the other providers.
    other: u32,
    #[cfg(not(feature = "pg15"))]
    rules: u32,
}

const COLLATION: Columns = Columns {
    cache: pg_sys::SysCacheIdentifier::COLLOID,
    provider: pg_sys::Anum_pg_collation_collprovider,
    deterministic: Some(pg_sys::Anum_pg_collation_collisdeterministic),
    libc: pg_sys::Anum_pg_collation_collcollate,
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    other: pg_sys::Anum_pg_collation_colliculocale,
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    other: pg_sys::Anum_pg_collation_colllocale,
    #[cfg(not(feature = "pg15"))]
    rules: pg_sys::Anum_pg_collation_collicurules,
};

const DATABASE: Columns = Columns {
    cache: pg_sys::SysCacheIdentifier::DATABASEOID,
    provider: pg_sys::Anum_pg_database_datlocprovider,
    deterministic: None,
    libc: pg_sys::Anum_pg_database_datcollate,
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    other: pg_sys::Anum_pg_database_daticulocale,
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    other: pg_sys::Anum_pg_database_datlocale,
    #[cfg(not(feature = "pg15"))]
    rules: pg_sys::Anum_pg_database_daticurules,
};

/// The provider and the locale of a collation, of the database where it is the default one; `None`:
/// there is no such row, or it has no locale. Called through a guard.
pub fn locale_of(collation: pg_sys::Oid) -> Option<LocaleRow> {
    match collation {
        pg_sys::DEFAULT_COLLATION_OID => {
            // SAFETY: a variable of this process.
            let database = unsafe { pg_sys::MyDatabaseId };
            DATABASE.read(database)
        }
        collation => COLLATION.read(collation),
    }
}

unsafe extern "C-unwind" {
    /// The version of a provider's locale that the server has; NULL for none. May raise.
    fn get_collation_actual_version(provider: c_char, locale: *const c_char) -> *mut c_char;
}

/// The version of a collation's locale that the server's own library has.
#[allow(ffi_unwind_calls)]
pub fn actual_version(row: &LocaleRow) -> Option<String> {
    let locale = CString::new(&*row.locale).ok()?;
    // SAFETY: one guarded call; what it gives is a string of this memory context, or NULL.
    unsafe {
        let version = pg_sys::ffi::pg_guard_ffi_boundary(|| {
            get_collation_actual_version(row.provider as c_char, locale.as_ptr())
        });
        (!version.is_null()).then(|| text::from_c(version))
    }
}

/// The C library's locale by which the database makes lower case. Called through a guard.
pub fn database_ctype() -> Option<String> {
    // SAFETY: a variable of this process.
    let database = unsafe { pg_sys::MyDatabaseId };
    let ctype = Columns {
        libc: pg_sys::Anum_pg_database_datctype,
        other: pg_sys::Anum_pg_database_datctype,
        ..DATABASE
    };
    ctype.read(database).map(|row| row.locale)
}

impl Columns {
    fn read(&self, key: pg_sys::Oid) -> Option<LocaleRow> {
        let cache = self.cache as i32;
        // SAFETY: a row of the catalog's cache is read while it is held.
        unsafe {
            let row = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(key));
            if row.is_null() {
                return None;
            }
            let column = |number: u32| {
                let mut is_null = false;
                let value = pg_sys::SysCacheGetAttr(cache, row, number as i16, &raw mut is_null);
                (!is_null).then_some(value)
            };
            let provider = column(self.provider).map(|provider| provider.value() as u8);
            let number = match provider {
                Some(pg_sys::COLLPROVIDER_LIBC) => self.libc,
                _ => self.other,
            };
            let locale = column(number).map(|locale| {
                let locale = pg_sys::text_to_cstring(locale.cast_mut_ptr());
                text::decode(CStr::from_ptr(locale).to_bytes())
            });
            let deterministic = self.deterministic.and_then(column);
            let is_deterministic = deterministic.is_none_or(|value| value.value() != 0);
            #[cfg(feature = "pg15")]
            let has_rules = false;
            #[cfg(not(feature = "pg15"))]
            let has_rules = column(self.rules).is_some();
            pg_sys::ReleaseSysCache(row);
            Some(LocaleRow {
                provider: provider?,
                is_deterministic,
                locale: locale?,
                has_rules,
            })
        }
    }
}
