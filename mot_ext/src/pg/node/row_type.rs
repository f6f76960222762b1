//! Row types.
use super::Node;
use crate::pg::version;
use pgrx::pg_sys;
use std::ffi::CStr;

impl<'p> Node<'p, pg_sys::TupleDescData> {
    /// Its columns, dropped ones too.
    #[inline]
    pub fn columns(self) -> &'p [pg_sys::FormData_pg_attribute] {
        // SAFETY: a live row type has so many columns, one behind the other, which nobody changes.
        unsafe {
            let count = (*self.as_ptr()).natts as usize;
            std::slice::from_raw_parts(version::attributes(self.as_ptr()), count)
        }
    }

    /// Whether a column is generated.
    pub fn has_generated_columns(self) -> bool {
        // SAFETY: a live row type has there NULL, or its constraints.
        let constraints = unsafe { (*self.as_ptr()).constr.as_ref() };
        constraints.is_some_and(version::has_generated_columns)
    }

    /// Whether rows may lack columns, whose values are in the catalog.
    pub fn has_missing_values(self) -> bool {
        self.columns().iter().any(|column| column.atthasmissing)
    }

    /// Its CHECK conditions that are enforced, as they are stored.
    pub fn checks(self) -> impl Iterator<Item = &'p CStr> {
        // SAFETY: a live row type has there NULL, or its constraints, with an array of checks.
        let checks = unsafe {
            match (*self.as_ptr()).constr.as_ref() {
                Some(known) if known.num_check > 0 => {
                    std::slice::from_raw_parts(known.check, usize::from(known.num_check))
                }
                _ => &[],
            }
        };
        let enforced = checks.iter().filter(|check| version::is_enforced(check));
        // SAFETY: each check has its text.
        enforced.map(|check| unsafe { CStr::from_ptr(check.ccbin) })
    }

    /// Whether another one has the same columns, constraints and type.
    pub fn is_alike(self, other: Node<'_, pg_sys::TupleDescData>) -> bool {
        // SAFETY: two live row types.
        unsafe { pg_sys::equalTupleDescs(self.as_ptr(), other.as_ptr()) }
    }

    /// A copy of it with its constraints, in the current memory context.
    pub fn copied(self) -> *mut pg_sys::TupleDescData {
        // SAFETY: a live row type.
        unsafe { pg_sys::CreateTupleDescCopyConstr(self.as_ptr()) }
    }

    /// Whether it is counted, and so may be pinned: one of the relation cache, or of the type
    /// cache.
    pub fn is_counted(self) -> bool {
        // SAFETY: a live row type.
        unsafe { (*self.as_ptr()).tdrefcount >= 0 }
    }
}
