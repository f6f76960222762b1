//! Functions of the executor that the bindings lack.
use pgrx::pg_sys;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn ExecComputeStoredGenerated(
        relation: *mut pg_sys::ResultRelInfo,
        estate: *mut pg_sys::EState,
        slot: *mut pg_sys::TupleTableSlot,
        command: pg_sys::CmdType::Type,
    );
}

/// Computes the stored generated columns of a new row; may raise.
pub unsafe fn compute_stored_generated(
    relation: *mut pg_sys::ResultRelInfo,
    estate: *mut pg_sys::EState,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CmdType::Type,
) {
    // SAFETY: the caller's executor state; the closure holds one call.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            ExecComputeStoredGenerated(relation, estate, slot, command)
        })
    }
}
