//! Row types as keys: their columns, as the catalog has them.
//!
//! A row type is looked up once, because scans ask for it. It is looked up again after a relation,
//! a type, a function, an operator class or a collation has changed.
use super::column::IndexColumn;
use crate::errors;
use crate::pg::local::ProcessLocal;
use crate::pg::{nodes, record};
use mot_engine::collation::Collation;
use mot_engine::key::{AttributeLayout, Field, KeyColumn, KeyKind, KeyValue, Record};
use pgrx::pg_guard;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// What keys of a row type are.
#[derive(Clone, Copy)]
pub struct RowType {
    pub record: Record,
    /// They lie in the order of core's comparison.
    pub is_ordered: bool,
    /// Their texts would have to have a collation, and cannot.
    pub lacks_collation: bool,
}

impl RowType {
    /// Whether keys without collations would hold equal values apart.
    pub fn needs_collations(self) -> bool {
        let mut needs = false;
        self.record.each_collation(&mut |collation| {
            needs |= collation.equates() || collation.folding().is_some();
        });
        needs
    }
}

/// What was found of row types, by oid; `None`: keys of it have no encoding.
type RowTypeCache = HashMap<u32, Option<RowType>>;

static ROW_TYPES: ProcessLocal<RefCell<Option<RowTypeCache>>> = ProcessLocal(RefCell::new(None));

/// How often something of it was forgotten.
static FORGOTTEN: ProcessLocal<Cell<u64>> = ProcessLocal(Cell::new(0));

/// What keys of a row type, or a domain over one, are; `None`: they have no encoding. May raise.
pub fn row_type(own_type: pg_sys::Oid) -> Option<RowType> {
    // SAFETY: a catalog look-up.
    let base = unsafe { pg_sys::getBaseType(own_type) };
    let oid = base.to_u32();
    if let Some(found) = ROW_TYPES
        .0
        .borrow()
        .as_ref()
        .and_then(|cache| cache.get(&oid))
    {
        return *found;
    }
    if ROW_TYPES.0.borrow().is_none() {
        *ROW_TYPES.0.borrow_mut() = Some(HashMap::new());
        use pg_sys::SysCacheIdentifier::{AMPROCNUM, CLAOID, COLLOID, PROCOID, TYPEOID};
        let nothing = pg_sys::Datum::null();
        // SAFETY: once in a process; the callbacks forget.
        unsafe {
            for cache in [AMPROCNUM, CLAOID, COLLOID, PROCOID, TYPEOID] {
                pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(on_change), nothing);
            }
            pg_sys::CacheRegisterRelcacheCallback(Some(on_relation), nothing);
        }
    }
    let forgotten = FORGOTTEN.0.get();
    let found = look_up(base);
    if let Some(cache) = ROW_TYPES.0.borrow_mut().as_mut()
        && FORGOTTEN.0.get() == forgotten
    {
        cache.insert(oid, found);
    }
    found
}

/// A collation, an operator class, a function or a type has changed.
#[pg_guard]
unsafe extern "C-unwind" fn on_change(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    forget();
}

/// A relation has changed.
#[pg_guard]
unsafe extern "C-unwind" fn on_relation(_argument: pg_sys::Datum, _relation: pg_sys::Oid) {
    forget();
}

fn forget() {
    FORGOTTEN.0.set(FORGOTTEN.0.get() + 1);
    if let Ok(mut cache) = ROW_TYPES.0.try_borrow_mut()
        && let Some(cache) = cache.as_mut()
    {
        cache.clear();
    }
}

fn look_up(row_type: pg_sys::Oid) -> Option<RowType> {
    // SAFETY: a catalog look-up.
    if unsafe { pg_sys::get_typtype(row_type) } as u8 != pg_sys::TYPTYPE_COMPOSITE {
        return None;
    }
    let mut is_ordered = true;
    let mut lacks_collation = false;
    // SAFETY: a copy of the row type's description, in the current memory.
    let fields = unsafe {
        let description = pg_sys::lookup_rowtype_tupdesc_copy(row_type, -1);
        let attributes = nodes::attributes_of(description).iter();
        let fields: Option<Vec<_>> = attributes
            .map(|attribute| {
                let field = field(description, attribute)?;
                is_ordered &= field.is_ordered;
                lacks_collation |= field.lacks_collation;
                Some(field.field)
            })
            .collect();
        pg_sys::FreeTupleDesc(description);
        fields?
    };
    Some(RowType {
        record: Record::of(row_type.to_u32(), fields).ok()?,
        is_ordered,
        lacks_collation,
    })
}

struct FieldInfo {
    field: Field,
    is_ordered: bool,
    lacks_collation: bool,
}

/// A column of a row type; `None`: its values have no encoding.
///
/// # Safety
/// A description, and a column of it.
unsafe fn field(
    description: pg_sys::TupleDesc,
    attribute: &pg_sys::FormData_pg_attribute,
) -> Option<FieldInfo> {
    let layout = AttributeLayout {
        len: attribute.attlen,
        align: super::column::alignment(attribute.attalign as u8)?,
        by_value: false,
    };
    if attribute.attisdropped {
        return Some(FieldInfo {
            field: Field {
                kind: None,
                layout,
                collation: None,
                missing: None,
            },
            is_ordered: true,
            lacks_collation: false,
        });
    }
    let column = IndexColumn::of_type(attribute.atttypid, attribute.attcollation);
    let kind = column
        .kind()
        .filter(|kind| kind.width() == attribute.attlen)?;
    // Texts that lie roughly are put in order by a scan, but no values that hold them.
    let collation = match column.collation(false) {
        Some(rough) if !rough.is_exact() => {
            let folding = rough.folding();
            folding.map(|folding| Collation::folded(folding, None))
        }
        exact => exact,
    };
    let is_ordered = column.is_ordered_as(&KeyColumn {
        attnum: 1,
        kind,
        descending: false,
        nulls_first: false,
        nullable: true,
        collation,
    });
    // SAFETY: the caller's description has the column, and owns the value.
    let missing = unsafe { missing_value(description, attribute.attnum, kind)? };
    Some(FieldInfo {
        field: Field {
            kind: Some(kind),
            layout,
            collation,
            missing,
        },
        is_ordered,
        lacks_collation: column.lacks_collation(false),
    })
}

/// What a column of a table's row type is in rows from before it; the outer `None`: it is too long.
unsafe fn missing_value(
    description: pg_sys::TupleDesc,
    attnum: i16,
    kind: KeyKind,
) -> Option<Option<Box<[u8]>>> {
    // SAFETY: the caller's description has the column, and owns the value.
    let value = unsafe {
        let mut is_null = false;
        let datum = pg_sys::getmissingattr(description, attnum.into(), &raw mut is_null);
        super::value(kind, datum, is_null)
    };
    let bytes: Box<[u8]> = match value {
        KeyValue::Null => return Some(None),
        KeyValue::Fixed(datum) => datum.to_le_bytes()[..kind.width() as usize].into(),
        KeyValue::Bytes(bytes) => bytes.into(),
    };
    (bytes.len() <= usize::from(u16::MAX)).then_some(Some(bytes))
}

/// Offsets in a value of a row type behind the varlena's header.
const ROW_TYPE: std::ops::Range<usize> = 4..8;

/// A value of a row type in the form of a key column's, which is of this one. May raise, as core's
/// comparison does, where the two cannot be compared.
///
/// # Safety
/// A datum of some row type, and what is behind its header.
pub unsafe fn own_form(record: Record, datum: pg_sys::Datum, bytes: &[u8]) -> &[u8] {
    let of = bytes.get(ROW_TYPE).and_then(|of| of.try_into().ok());
    if of.map(u32::from_le_bytes) == Some(record.row_type()) {
        return bytes;
    }
    // SAFETY: the caller's datum.
    unsafe { converted(record, datum) }
}

/// A value of another row type with columns of the same types: a ROW() in a query.
///
/// # Safety
/// A datum of some row type.
unsafe fn converted<'a>(record: Record, datum: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: the caller's datum.
    let value = unsafe { record::Record::enter(datum) };
    let (their_type, modifier) = value.row_type();
    let own_type = pg_sys::Oid::from(record.row_type());
    let converted = record::with_description(their_type, modifier, |theirs| {
        record::with_description(own_type, -1, |own| {
            // SAFETY: the description of its type.
            let given = unsafe { value.columns(theirs) };
            let taken = rearranged(own.columns(), theirs.columns(), &given);
            // SAFETY: values of the columns' own types.
            unsafe { own.formed(&taken) }
        })
    });
    // SAFETY: a new value of a row type.
    unsafe { super::varlena_payload(converted.cast_mut_ptr()) }
}

/// The columns of one row type, in the order of another, which has columns of the same types. NULL
/// stands for dropped ones.
fn rearranged(
    own: &[pg_sys::FormData_pg_attribute],
    theirs: &[pg_sys::FormData_pg_attribute],
    given: &[Option<pg_sys::Datum>],
) -> Vec<Option<pg_sys::Datum>> {
    let live = |columns: &[pg_sys::FormData_pg_attribute]| -> Vec<usize> {
        let all = 0..columns.len();
        all.filter(|at| !columns[*at].attisdropped).collect()
    };
    let (their_live, own_live) = (live(theirs), live(own));
    let mut taken = vec![None; own.len()];
    for (number, (at, own_at)) in their_live.iter().zip(&own_live).enumerate() {
        check_alike(number + 1, &own[*own_at], &theirs[*at]);
        taken[*own_at] = given[*at];
    }
    if their_live.len() != own_live.len() {
        errors::other_number_of_columns();
    }
    taken
}

/// Raises where a key column's row type has another column at a place than the value that it is
/// compared with, as core's comparison would.
fn check_alike(
    number: usize,
    own: &pg_sys::FormData_pg_attribute,
    theirs: &pg_sys::FormData_pg_attribute,
) {
    if own.atttypid != theirs.atttypid {
        let names = [own, theirs].map(|column| {
            // SAFETY: a catalog look-up that returns a palloc'd string.
            unsafe { nodes::text(pg_sys::format_type_be(column.atttypid)) }
        });
        errors::dissimilar_columns(&names, number);
    }
    if own.attcollation != theirs.attcollation {
        errors::no_common_collation(number);
    }
}
