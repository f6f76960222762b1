//! Which type it is that has no keys, where a column's type holds others.
use super::column::IndexColumn;
use crate::pg::nodes;
use pgrx::pg_sys;

impl IndexColumn {
    /// The type, of the column or inside it, for which there is no encoding. May raise.
    pub fn unknown_type(self) -> Option<pg_sys::Oid> {
        match (self.kind(), self.held_type()) {
            (Some(_), _) => None,
            (None, Some(held)) => unknown_type(held).or(Some(self.own_type)),
            (None, None) if self.input == pg_sys::RECORDOID => {
                let inside = column_types(self.own_type).into_iter();
                inside
                    .filter_map(unknown_type)
                    .next()
                    .or(Some(self.own_type))
            }
            // SAFETY: a catalog look-up.
            (None, None) => Some(unsafe { pg_sys::getBaseType(self.own_type) }),
        }
    }

    /// What an array, a range or a multirange holds.
    fn held_type(self) -> Option<pg_sys::Oid> {
        // SAFETY: catalog look-ups of the column's type, or of the one that a domain is over.
        let held = unsafe {
            let base = pg_sys::getBaseType(self.own_type);
            match self.input {
                pg_sys::ANYARRAYOID => pg_sys::get_element_type(base),
                pg_sys::ANYRANGEOID => pg_sys::get_range_subtype(base),
                pg_sys::ANYMULTIRANGEOID => {
                    pg_sys::get_range_subtype(pg_sys::get_multirange_range(base))
                }
                _ => pg_sys::InvalidOid,
            }
        };
        (held != pg_sys::InvalidOid).then_some(held)
    }
}

/// The type for which there is no encoding: this one, or one inside. May raise.
fn unknown_type(own_type: pg_sys::Oid) -> Option<pg_sys::Oid> {
    IndexColumn::of_type(own_type, pg_sys::InvalidOid).unknown_type()
}

/// The types of a row type's columns. May raise.
fn column_types(own_type: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: catalog look-ups; the description is a copy, in the current memory.
    unsafe {
        let base = pg_sys::getBaseType(own_type);
        if pg_sys::get_typtype(base) as u8 != pg_sys::TYPTYPE_COMPOSITE {
            return Vec::new();
        }
        let description = pg_sys::lookup_rowtype_tupdesc_copy(base, -1);
        let columns = nodes::attributes_of(description).iter();
        columns
            .filter(|column| !column.attisdropped)
            .map(|column| column.atttypid)
            .collect()
    }
}
