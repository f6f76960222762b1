//! Functions of the executor that the bindings lack.
use super::version;
use pgrx::pg_sys;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    // PostgreSQL's own function without pgrx's guard: see `exec_scan`.
    #[link_name = "ExecScan"]
    fn scan_without_guard(
        node: *mut pg_sys::ScanState,
        access: pg_sys::ExecScanAccessMtd,
        recheck: pg_sys::ExecScanRecheckMtd,
    ) -> *mut pg_sys::TupleTableSlot;
}

/// `ExecScan`: the next row of a scan's node that passes its conditions, projected. It is called
/// for each row, so without a guard.
///
/// # Safety
/// The caller is a callback of core's whose frame has nothing to drop: an error jumps over it.
#[inline]
#[allow(ffi_unwind_calls)]
pub unsafe fn exec_scan(
    node: *mut pg_sys::ScanState,
    access: pg_sys::ExecScanAccessMtd,
    recheck: pg_sys::ExecScanRecheckMtd,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's.
    unsafe { scan_without_guard(node, access, recheck) }
}

/// Whether another library has a say in rights.
#[inline]
pub fn has_rights_hook() -> bool {
    // SAFETY: a plain variable of this process.
    unsafe { pg_sys::ExecutorCheckPerms_hook }.is_some()
}

/// Raises the constraint that a new row of `relation` violates, if any, as core does for the result
/// relation at `position` of the range table.
pub unsafe fn check_constraints(
    relation: pg_sys::Relation,
    position: u32,
    row: *mut pg_sys::TupleTableSlot,
    estate: *mut pg_sys::EState,
) {
    // SAFETY: an open relation and a filled slot of its row type; the structure lives as long as
    // the memory of the statement.
    unsafe {
        let info =
            pg_sys::palloc0(size_of::<pg_sys::ResultRelInfo>()).cast::<pg_sys::ResultRelInfo>();
        (*info).type_ = pg_sys::NodeTag::T_ResultRelInfo;
        pg_sys::InitResultRelInfo(info, relation, position, std::ptr::null_mut(), 0);
        version::give_permissions(estate);
        (*row).tts_tableOid = (*relation).rd_id;
        pg_sys::ExecConstraints(info, row, estate);
    }
}
