//! Stored generated columns of an UPDATE, computed when they are asked for here and not before.
//!
//! Core computes a foreign table's before it hands the row over. Where BEFORE row triggers are fired behind that, an expression that cannot be computed of the row as it was before
//! them (`100 / b`, with a trigger that mends `b = 0`) raised an error that a heap table does not. Core passes over the columns where it believes that there is
//! none to be computed, which the result relation counts.
use super::executor::compute_stored_generated;
use pgrx::pg_sys;
use std::ffi::c_int;

#[cfg(not(feature = "pg15"))]
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    #[cfg_attr(feature = "pg18", link_name = "ExecInitGenerated")]
    fn ExecInitStoredGenerated(
        relation: *mut pg_sys::ResultRelInfo,
        estate: *mut pg_sys::EState,
        command: pg_sys::CmdType::Type,
    );
}

/// The columns of one result relation, hidden from core.
pub struct Hidden {
    /// How many there are to compute.
    needed: c_int,
}

impl Hidden {
    /// Whether core then passes over those of a row that is inserted through the same result relation, too, as one is that an UPDATE moves from another
    /// partition: 15 has one count for both.
    pub const HIDES_INSERTS: bool = cfg!(feature = "pg15");

    /// Hides them, if the relation has any that the UPDATE changes, for as long as it lives. Core must have made all of the statement's nodes: 15 looks for the
    /// columns then, later than it calls the wrapper's Begin (before 15.2 at the first row, and there it is as it was); 16 and later look when they
    /// are first asked for, which is done here.
    pub unsafe fn of(
        relation: *mut pg_sys::ResultRelInfo,
        _estate: *mut pg_sys::EState,
    ) -> Option<Hidden> {
        // SAFETY: an initialized result relation of a running statement; the closure holds one call.
        unsafe {
            #[cfg(not(feature = "pg15"))]
            if (*relation).ri_GeneratedExprsU.is_null() {
                pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    #[allow(ffi_unwind_calls)]
                    ExecInitStoredGenerated(relation, _estate, pg_sys::CmdType::CMD_UPDATE)
                });
            }
            let needed = std::mem::take(count(relation));
            (needed > 0).then_some(Hidden { needed })
        }
    }

    /// Computes them for a new row; may raise, and then the statement has ended.
    pub unsafe fn compute(
        &self,
        relation: *mut pg_sys::ResultRelInfo,
        estate: *mut pg_sys::EState,
        slot: *mut pg_sys::TupleTableSlot,
        command: pg_sys::CmdType::Type,
    ) {
        // SAFETY: the relation of `of`, and a filled slot of its row type.
        unsafe {
            *count(relation) = self.needed;
            compute_stored_generated(relation, estate, slot, command);
            *count(relation) = 0;
        }
    }
}

/// Where core counts the columns that an UPDATE has to compute.
unsafe fn count<'a>(relation: *mut pg_sys::ResultRelInfo) -> &'a mut c_int {
    // SAFETY: an initialized result relation, which outlives the reference.
    unsafe {
        #[cfg(feature = "pg15")]
        {
            &mut (*relation).ri_NumGeneratedNeeded
        }
        #[cfg(not(feature = "pg15"))]
        {
            &mut (*relation).ri_NumGeneratedNeededU
        }
    }
}
