//! Types that are not core's own, and have an encoding: known by the function that compares them.
//!
//! Nothing else says what a type's values are: its name and its schema are the user's. A type of an
//! extension is known by a function of the extension's library. Another one is known if it is
//! compared by one of core's functions, as those of `isn` are: then its values are what that
//! function takes them for. All other types have labels (`storage/labels.rs`).
//!
//! The version of an extension is not looked at. So only types are taken whose values and whose
//! order have been the same in all versions.
use crate::pg::local::ProcessLocal;
use mot_engine::key::{AttributeLayout, KeyKind};
use pgrx::pg_guard;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::CStr;

/// `INTERNALlanguageId` and `ClanguageId` of `catalog/pg_language.h`.
const INTERNAL_LANGUAGE: u32 = 12;
const C_LANGUAGE: u32 = 13;

/// `BTORDER_PROC` of `access/nbtree.h`.
const COMPARISON: i16 = 1;

/// What the values of a type are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KnownType {
    /// Texts that are compared in lower case.
    Folded,
    /// The same, by their bytes.
    FoldedBytes,
    Kind(KeyKind),
}

impl KnownType {
    fn kind(self) -> KeyKind {
        match self {
            KnownType::Folded | KnownType::FoldedBytes => KeyKind::Text,
            KnownType::Kind(kind) => kind,
        }
    }
}

/// Functions of extensions' libraries that compare two values.
const OF_LIBRARIES: [(&CStr, &[u8], KnownType); 8] = [
    (c"citext_cmp", b"citext", KnownType::Folded),
    (c"hstore_cmp", b"hstore", KnownType::Kind(KeyKind::Hstore)),
    (c"ltree_cmp", b"ltree", KnownType::Kind(KeyKind::Ltree)),
    (c"seg_cmp", b"seg", KnownType::Kind(KeyKind::Seg)),
    (c"vector_cmp", b"vector", KnownType::Kind(KeyKind::Vector)),
    (
        c"halfvec_cmp",
        b"vector",
        KnownType::Kind(KeyKind::HalfVector),
    ),
    (
        c"sparsevec_cmp",
        b"vector",
        KnownType::Kind(KeyKind::SparseVector),
    ),
    (c"citext_pattern_cmp", b"citext", KnownType::FoldedBytes),
];

/// Functions of core's that compare two values without a collation. Those of tid, oidvector, jsonb,
/// tsvector and tsquery are left out, since no type is known that borrows them: one would have
/// labels.
const OF_CORE: [(&CStr, KeyKind); 23] = [
    (c"btboolcmp", KeyKind::Bool),
    (c"btcharcmp", KeyKind::Char),
    (c"btint2cmp", KeyKind::Int2),
    (c"btint4cmp", KeyKind::Int4),
    (c"btint8cmp", KeyKind::Int8),
    (c"btoidcmp", KeyKind::Oid),
    (c"btfloat4cmp", KeyKind::Float4),
    (c"btfloat8cmp", KeyKind::Float8),
    (c"numeric_cmp", KeyKind::Numeric),
    (c"cash_cmp", KeyKind::Money),
    (c"date_cmp", KeyKind::Date),
    (c"time_cmp", KeyKind::Time),
    (c"timetz_cmp", KeyKind::TimeTz),
    (c"timestamp_cmp", KeyKind::Timestamp),
    (c"interval_cmp", KeyKind::Interval),
    (c"uuid_cmp", KeyKind::Uuid),
    (c"byteacmp", KeyKind::Bytea),
    (c"bitcmp", KeyKind::VarBit),
    (c"network_cmp", KeyKind::Inet),
    (c"macaddr_cmp", KeyKind::Macaddr),
    (c"macaddr8_cmp", KeyKind::Macaddr8),
    (c"xid8cmp", KeyKind::Unsigned8),
    (c"pg_lsn_cmp", KeyKind::Unsigned8),
];

/// What was found in the catalog.
#[derive(Default)]
struct KnownTypeCache {
    /// Of types, by oid.
    types: HashMap<u32, Option<KnownType>>,
    /// Of what families compare: family, left type and right type.
    comparisons: HashMap<[u32; 3], Option<KnownType>>,
}

static KNOWN_TYPES: ProcessLocal<RefCell<Option<KnownTypeCache>>> =
    ProcessLocal(RefCell::new(None));

/// How often the catalog has changed.
static CHANGES: ProcessLocal<Cell<u64>> = ProcessLocal(Cell::new(0));

/// What was found before, or is found now. What has changed in the catalog is looked for again.
fn remembered<K: std::hash::Hash + Eq + Copy>(
    key: K,
    of: fn(&mut KnownTypeCache) -> &mut HashMap<K, Option<KnownType>>,
    look_up: impl FnOnce() -> Option<KnownType>,
) -> Option<KnownType> {
    if KNOWN_TYPES.0.borrow().is_none() {
        use pg_sys::SysCacheIdentifier::{AMPROCNUM, CLAOID, PROCOID, TYPEOID};
        let nothing = pg_sys::Datum::null();
        for cache in [TYPEOID, PROCOID, CLAOID, AMPROCNUM] {
            // SAFETY: once in a process; the callback forgets.
            unsafe {
                pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(on_change), nothing);
            }
        }
    }
    if let Some(found) = of(KNOWN_TYPES.0.borrow_mut().get_or_insert_default()).get(&key) {
        return *found;
    }
    let changes = CHANGES.0.get();
    let found = look_up();
    // What was changed meanwhile is looked for again.
    if CHANGES.0.get() == changes {
        of(KNOWN_TYPES.0.borrow_mut().get_or_insert_default()).insert(key, found);
    }
    found
}

/// Whether a type is one of core's own.
pub fn is_core(input: pg_sys::Oid) -> bool {
    input.to_u32() < pg_sys::FirstNormalObjectId
}

/// What the values of a type are that is not core's; `None`: unknown. The catalog is read once
/// for each type, and again when types or functions change: scans ask. May raise.
pub fn known_type(input: pg_sys::Oid) -> Option<KnownType> {
    if is_core(input) {
        return None;
    }
    remembered(input.to_u32(), |cache| &mut cache.types, || look_up(input))
}

/// A type, a function or an operator class has changed.
#[pg_guard]
unsafe extern "C-unwind" fn on_change(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    CHANGES.0.set(CHANGES.0.get() + 1);
    if let Ok(mut cache) = KNOWN_TYPES.0.try_borrow_mut()
        && let Some(cache) = cache.as_mut()
    {
        *cache = KnownTypeCache::default();
    }
}

fn look_up(input: pg_sys::Oid) -> Option<KnownType> {
    // SAFETY: a catalog look-up; the entry lives as long as the process.
    let entry = unsafe {
        let wanted = (pg_sys::TYPECACHE_BTREE_OPFAMILY | pg_sys::TYPECACHE_CMP_PROC) as i32;
        &*pg_sys::lookup_type_cache(input, wanted)
    };
    let found = compared_by(entry.cmp_proc).filter(|of| *of != KnownType::FoldedBytes)?;
    let kind = found.kind();
    // A user's type may borrow the class of another one, and lie otherwise.
    let layout = AttributeLayout {
        len: entry.typlen,
        align: super::column::alignment(entry.typalign as u8)?,
        by_value: entry.typbyval,
    };
    let lies_alike = entry.btree_opintype == input && layout == kind.layout();
    lies_alike.then_some(found)
}

/// What a function compares.
fn compared_by(function: pg_sys::Oid) -> Option<KnownType> {
    let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
    // SAFETY: a row of the catalog's cache is read while it is held.
    unsafe {
        let row = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(function));
        if row.is_null() {
            return None;
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
        let symbol = string(pg_sys::Anum_pg_proc_prosrc);
        let path = string(pg_sys::Anum_pg_proc_probin);
        pg_sys::ReleaseSysCache(row);
        match (language, symbol?) {
            (Some(INTERNAL_LANGUAGE), symbol) => {
                let mut known = OF_CORE.into_iter();
                let (_, kind) = known.find(|(function, _)| *function == symbol)?;
                Some(KnownType::Kind(kind))
            }
            (Some(C_LANGUAGE), symbol) => {
                let file = path?.to_bytes().rsplit(|byte| *byte == b'/').next()?;
                let library = file.strip_suffix(b".so").unwrap_or(file);
                let mut known = OF_LIBRARIES.into_iter();
                let (.., of) =
                    known.find(|(function, of, _)| *function == symbol && *of == library)?;
                Some(of)
            }
            _ => None,
        }
    }
}

/// What a family takes values of two types for, where it compares them.
fn comparison(family: pg_sys::Oid, left: pg_sys::Oid, right: pg_sys::Oid) -> Option<KnownType> {
    let key = [family, left, right].map(pg_sys::Oid::to_u32);
    remembered(
        key,
        |cache| &mut cache.comparisons,
        || {
            // SAFETY: a catalog look-up.
            compared_by(unsafe { pg_sys::get_opfamily_proc(family, left, right, COMPARISON) })
        },
    )
}

/// Whether a family compares values of a type with those of another one as it does its own: both
/// are the same to the function. May raise.
pub fn compares_alike(family: pg_sys::Oid, left: pg_sys::Oid, right: pg_sys::Oid) -> bool {
    let own = known_type(left);
    own.is_some() && own == comparison(family, left, right)
}

/// Whether a family compares texts of a type in lower case, and then by their bytes, whatever the
/// collation. May raise.
pub fn compares_folded_bytes(family: pg_sys::Oid, input: pg_sys::Oid) -> bool {
    known_type(input) == Some(KnownType::Folded)
        && comparison(family, input, input) == Some(KnownType::FoldedBytes)
}
