//! Calls whose arguments, and fields whose places, differ between major versions of PostgreSQL: one function for each, so that nobody else
//! asks which version this is.
use pgrx::pg_sys;
use std::ffi::c_int;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    /// Raises for an oid that is no collation.
    #[cfg(not(feature = "pg18"))]
    fn lc_collate_is_c(collation: pg_sys::Oid) -> bool;
    /// As above. The result lives as long as the process.
    #[cfg(feature = "pg18")]
    fn pg_newlocale_from_collation(collation: pg_sys::Oid) -> *const Locale;
}

/// How `struct pg_locale_struct` of `utils/pg_locale.h` begins.
#[cfg(feature = "pg18")]
#[repr(C)]
struct Locale {
    _provider: std::ffi::c_char,
    _deterministic: bool,
    collate_is_c: bool,
}

/// Whether a collation orders by bytes; raises for an oid that is no collation.
pub fn orders_by_bytes(collation: pg_sys::Oid) -> bool {
    // SAFETY: one guarded call of a function without side effects but its cache, whose entries stay.
    #[allow(ffi_unwind_calls)]
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_sys::ffi::pg_guard_ffi_boundary(|| lc_collate_is_c(collation));
        #[cfg(feature = "pg18")]
        return (*pg_sys::ffi::pg_guard_ffi_boundary(|| pg_newlocale_from_collation(collation)))
            .collate_is_c;
    }
}

/// Whether the current user owns a table.
pub fn owns_class(relid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up; may raise.
    unsafe {
        let user = pg_sys::GetUserId();
        #[cfg(feature = "pg15")]
        return pg_sys::pg_class_ownercheck(relid, user);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::RelationRelationId, relid, user);
    }
}

/// Whether the current user may create objects in a schema.
pub fn may_create_in(namespace: pg_sys::Oid) -> pg_sys::AclResult::Type {
    // SAFETY: a catalog look-up; may raise.
    unsafe {
        let (user, mode) = (pg_sys::GetUserId(), pg_sys::ACL_CREATE as pg_sys::AclMode);
        #[cfg(feature = "pg15")]
        return pg_sys::pg_namespace_aclcheck(namespace, user, mode);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_aclcheck(pg_sys::NamespaceRelationId, namespace, user, mode);
    }
}

/// Sets the handler of a signal.
pub unsafe fn set_signal_handler(signal: c_int, handler: pg_sys::pqsigfunc) {
    // SAFETY: the handler is safe to run at any time (caller).
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::pqsignal(signal, handler);
        #[cfg(feature = "pg18")]
        pg_sys::pqsignal_be(signal, handler);
    }
}

/// The attributes of a row type, `natts` of them one behind the other.
pub unsafe fn attributes(descriptor: pg_sys::TupleDesc) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: a live descriptor; since 18 the attributes follow their compact forms, of which there are as many.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (*descriptor).attrs.as_ptr();
        #[cfg(feature = "pg18")]
        return (&raw const (*descriptor).compact_attrs)
            .cast::<pg_sys::CompactAttribute>()
            .add((*descriptor).natts as usize)
            .cast();
    }
}

/// Has no privilege asked for on the result relation of a query.
#[cfg_attr(feature = "pg15", allow(unused_variables))]
pub unsafe fn ask_no_privilege(query: *mut pg_sys::Query, target: *mut pg_sys::RangeTblEntry) {
    // SAFETY: fresh nodes of the caller's.
    unsafe {
        #[cfg(feature = "pg15")]
        {
            (*target).requiredPerms = 0;
        }
        #[cfg(not(feature = "pg15"))]
        {
            let info = pg_sys::addRTEPermissionInfo(&raw mut (*query).rteperminfos, target);
            (*info).requiredPerms = 0;
        }
    }
}

/// Runs a plan to its end.
pub unsafe fn run_to_end(query: *mut pg_sys::QueryDesc) {
    let forward = pg_sys::ScanDirection::ForwardScanDirection;
    // SAFETY: a started query; may raise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::ExecutorRun(query, forward, 0, true);
        #[cfg(feature = "pg18")]
        pg_sys::ExecutorRun(query, forward, 0);
    }
}

/// The description of an index on plain columns that is valid from the begin.
pub unsafe fn make_index_info(
    keys: usize,
    am: pg_sys::Oid,
    is_unique: bool,
    are_nulls_equal: bool,
) -> *mut pg_sys::IndexInfo {
    let none = std::ptr::null_mut();
    let keys = keys as c_int;
    // SAFETY: plain values; no expressions, no predicate.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::makeIndexInfo(
            keys,
            keys,
            am,
            none,
            none,
            is_unique,
            are_nulls_equal,
            true,
            false,
        );
        #[cfg(any(feature = "pg16", feature = "pg17"))]
        return pg_sys::makeIndexInfo(
            keys,
            keys,
            am,
            none,
            none,
            is_unique,
            are_nulls_equal,
            true,
            false,
            false,
        );
        #[cfg(feature = "pg18")]
        return pg_sys::makeIndexInfo(
            keys,
            keys,
            am,
            none,
            none,
            is_unique,
            are_nulls_equal,
            true,
            false,
            false,
            false,
        );
    }
}

/// What [`create_index`] needs; the arrays have a value per key.
pub struct NewIndex<'a> {
    pub table: pg_sys::Relation,
    pub name: *const std::ffi::c_char,
    pub info: *mut pg_sys::IndexInfo,
    pub columns: *mut pg_sys::List,
    pub am: pg_sys::Oid,
    pub collations: &'a mut [pg_sys::Oid],
    pub classes: &'a mut [pg_sys::Oid],
    pub options: &'a mut [i16],
    pub flags: u32,
}

/// Makes the catalog entries of an index; invalid if there is one of the name and that is no error.
pub unsafe fn create_index(new: NewIndex<'_>) -> pg_sys::Oid {
    let none = pg_sys::InvalidOid;
    let mut constraint = pg_sys::InvalidOid;
    // SAFETY: an open, locked table and arrays of the right length (caller); may raise.
    unsafe {
        pg_sys::index_create(
            new.table,
            new.name,
            none,
            none,
            none,
            none,
            new.info,
            new.columns,
            new.am,
            none,
            new.collations.as_mut_ptr(),
            new.classes.as_mut_ptr(),
            #[cfg(any(feature = "pg17", feature = "pg18"))]
            std::ptr::null(),
            new.options.as_mut_ptr(),
            #[cfg(any(feature = "pg17", feature = "pg18"))]
            std::ptr::null(),
            pg_sys::Datum::from(0),
            new.flags as pg_sys::bits16,
            0,
            false,
            false,
            &raw mut constraint,
        )
    }
}

/// A condition of a base relation's own, as the planner keeps it.
pub unsafe fn make_restriction(
    root: *mut pg_sys::PlannerInfo,
    clause: *mut pg_sys::Expr,
    security_level: u32,
) -> *mut pg_sys::RestrictInfo {
    let none = std::ptr::null_mut();
    // SAFETY: the planner's own structures (caller). What stands between `is_pushed_down` and the level says in 15 that it is not
    // delayed by an outer join, later that it is no clone; then that it is not pseudoconstant.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::make_restrictinfo(
            root,
            clause,
            true,
            false,
            false,
            security_level,
            none,
            none,
            none,
        );
        #[cfg(not(feature = "pg15"))]
        return pg_sys::make_restrictinfo(
            root,
            clause,
            true,
            false,
            false,
            false,
            security_level,
            none,
            none,
            none,
        );
    }
}

/// How many elements an array expression is expected to have.
#[cfg_attr(any(feature = "pg15", feature = "pg16"), allow(unused_variables))]
pub unsafe fn array_length(root: *mut pg_sys::PlannerInfo, array: *mut pg_sys::Node) -> f64 {
    // SAFETY: an expression of array type (caller).
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return f64::from(pg_sys::estimate_array_length(array));
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        return pg_sys::estimate_array_length(root, array);
    }
}

/// What a scan is expected to cost.
pub struct Cost {
    pub rows: f64,
    pub startup: f64,
    pub total: f64,
}

/// A path for a scan of the relation.
pub unsafe fn foreign_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    cost: Cost,
    order: *mut pg_sys::List,
    outer: pg_sys::Relids,
    private: *mut pg_sys::List,
) -> *mut pg_sys::ForeignPath {
    // SAFETY: the planner's own structures (caller). No path is disabled, and none stands for a join that has conditions of its own.
    unsafe {
        pg_sys::create_foreignscan_path(
            root,
            rel,
            std::ptr::null_mut(),
            cost.rows,
            #[cfg(feature = "pg18")]
            0,
            cost.startup,
            cost.total,
            order,
            outer,
            std::ptr::null_mut(),
            #[cfg(any(feature = "pg17", feature = "pg18"))]
            std::ptr::null_mut(),
            private,
        )
    }
}

/// Fires BEFORE UPDATE row triggers of a foreign table, which may change the new row; false: they want nothing to be done.
pub unsafe fn before_update_triggers(
    estate: *mut pg_sys::EState,
    epq: *mut pg_sys::EPQState,
    info: *mut pg_sys::ResultRelInfo,
    old: pg_sys::HeapTuple,
    new: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as core calls it for a foreign table (caller): the old row as a tuple, no tuple id, nobody to tell of a concurrent change.
    unsafe {
        pg_sys::ExecBRUpdateTriggers(
            estate,
            epq,
            info,
            std::ptr::null_mut(),
            old,
            new,
            std::ptr::null_mut(),
            #[cfg(not(feature = "pg15"))]
            std::ptr::null_mut(),
            #[cfg(feature = "pg18")]
            false,
        )
    }
}

/// Acquires an existing replication slot, valid or not. May raise.
pub unsafe fn acquire_slot(name: *const std::ffi::c_char) {
    // SAFETY: the process has a PGPROC and no slot (caller).
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::ReplicationSlotAcquire(name, true);
        #[cfg(feature = "pg18")]
        pg_sys::ReplicationSlotAcquire(name, true, false);
    }
}

/// Whether the slot this process holds was invalidated.
pub unsafe fn is_slot_invalidated() -> bool {
    // SAFETY: this process holds a slot (caller), so only it changes the data.
    unsafe {
        let data = &raw const (*pg_sys::MyReplicationSlot).data;
        #[cfg(feature = "pg15")]
        return (*data).restart_lsn == 0 && (*data).invalidated_at != 0;
        #[cfg(not(feature = "pg15"))]
        return (*data).invalidated != pg_sys::ReplicationSlotInvalidationCause::RS_INVAL_NONE;
    }
}

/// Makes a persistent physical slot and acquires it. May raise.
pub unsafe fn create_slot(name: *const std::ffi::c_char) {
    let persistent = pg_sys::ReplicationSlotPersistency::RS_PERSISTENT;
    // SAFETY: the process has a PGPROC and no slot (caller).
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        pg_sys::ReplicationSlotCreate(name, false, persistent, false);
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        pg_sys::ReplicationSlotCreate(name, false, persistent, false, false, false);
    }
}

/// Whether transaction `xid` has ended, without waiting. May raise.
pub unsafe fn has_ended(xid: pg_sys::TransactionId) -> bool {
    // SAFETY: any xid may be asked about; a refusal is not logged.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_sys::ConditionalXactLockTableWait(xid);
        #[cfg(feature = "pg18")]
        return pg_sys::ConditionalXactLockTableWait(xid, false);
    }
}

/// Takes a tuple lock if it is free. May raise.
pub unsafe fn lock_tuple_if_free(
    relation: pg_sys::Relation,
    tid: &mut pg_sys::ItemPointerData,
    mode: pg_sys::LOCKMODE,
) -> bool {
    // SAFETY: an open relation (caller); a refusal is not logged.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_sys::ConditionalLockTuple(relation, tid, mode);
        #[cfg(feature = "pg18")]
        return pg_sys::ConditionalLockTuple(relation, tid, mode, false);
    }
}

/// Where this process keeps the number of its virtual transaction.
pub fn local_transaction() -> *mut u32 {
    // SAFETY: this process's own PGPROC; the caller has one.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return &raw mut (*pg_sys::MyProc).lxid;
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        return &raw mut (*pg_sys::MyProc).vxid.lxid;
    }
}

/// Tells the planner what the strategies of our operator classes mean, which are those of btree: 18 does not take them for granted, and
/// without it no path is known to be sorted.
#[cfg_attr(not(feature = "pg18"), allow(unused_variables))]
pub unsafe fn set_order(am: *mut pg_sys::IndexAmRoutine) {
    #[cfg(feature = "pg18")]
    // SAFETY: a fresh node of the caller's.
    unsafe {
        (*am).amtranslatestrategy = Some(order::of_strategy);
        (*am).amtranslatecmptype = Some(order::strategy_of);
    }
}

/// `CompareType` numbers "less" to "greater" as btree numbers its strategies.
#[cfg(feature = "pg18")]
mod order {
    use pgrx::pg_sys::{CompareType, Oid, StrategyNumber};

    pub unsafe extern "C-unwind" fn of_strategy(
        strategy: StrategyNumber,
        _family: Oid,
    ) -> CompareType::Type {
        match strategy {
            1..=5 => CompareType::Type::from(strategy),
            _ => CompareType::COMPARE_INVALID,
        }
    }

    pub unsafe extern "C-unwind" fn strategy_of(
        kind: CompareType::Type,
        _family: Oid,
    ) -> StrategyNumber {
        match kind {
            CompareType::COMPARE_LT..=CompareType::COMPARE_GT => kind as StrategyNumber,
            _ => 0,
        }
    }
}
