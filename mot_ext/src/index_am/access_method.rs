//! Changes an index's access method: in the catalog, and in the entry of the relation cache.
use crate::errors::refuse::raise;
use crate::pg::local::ProcessLocal;
use crate::pg::relation::{self, NO_LOCK};
use crate::pg::version;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;

/// The access methods by which core and we know an index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Core's own.
    Btree,
    /// Ours.
    Mot,
}

impl Method {
    /// Its oid.
    pub fn oid(self) -> pg_sys::Oid {
        match self {
            Method::Btree => pg_sys::BTREE_AM_OID,
            Method::Mot => crate::storage::index_method(),
        }
    }
}

/// `InplaceUpdateTupleLock` of storage/lock.h, which the bindings lack.
const IN_PLACE_LOCK: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;

/// Writes an index's access method into `pg_class`, and makes the change visible to what follows.
///
/// Core changes rows of `pg_class` in place, too, under no lock on the index. So the row itself is
/// locked from before it is copied until it is written (`README.tuplock` of core).
///
/// # Safety
/// The index's row in `pg_class` is visible, and no other session can replace it: the caller has a
/// lock for that.
pub unsafe fn write(index: pg_sys::Oid, method: Method) {
    // SAFETY: the row is a copy of the cache's, whose fixed part is a pg_class row.
    unsafe {
        let lock = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
        let class = pg_sys::table_open(pg_sys::RelationRelationId, lock);
        let method_oid = method.oid();
        let cache = pg_sys::SysCacheIdentifier::RELOID as i32;
        let found = pg_sys::SearchSysCacheLocked1(cache, pg_sys::Datum::from(index));
        if found.is_null() {
            missing(index);
        }
        let row = pg_sys::heap_copytuple(found);
        pg_sys::ReleaseSysCache(found);
        let mut place = (*row).t_self;
        let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_class>(row);
        (*form).relam = method_oid;
        pg_sys::CatalogTupleUpdate(class, &raw mut place, row);
        pg_sys::UnlockTuple(class, &raw mut place, IN_PLACE_LOCK);
        pg_sys::heap_freetuple(row);
        pg_sys::table_close(class, lock);
        note_dependency(index, method);
        pg_sys::CommandCounterIncrement();
    }
}

/// Has an index of ours go before our access method does (DROP EXTENSION ... CASCADE). Core notes
/// that of an index's operator classes, and ours are core's.
unsafe fn note_dependency(index: pg_sys::Oid, method: Method) {
    let (relations, methods) = (pg_sys::RelationRelationId, pg_sys::AccessMethodRelationId);
    let normal = pg_sys::DependencyType::DEPENDENCY_NORMAL;
    let address = |class, object| pg_sys::ObjectAddress {
        classId: class,
        objectId: object,
        objectSubId: 0,
    };
    let ours = Method::Mot.oid();
    // SAFETY: both objects are there (caller).
    unsafe {
        pg_sys::deleteDependencyRecordsForSpecific(
            relations,
            index,
            normal as std::ffi::c_char,
            methods,
            ours,
        );
        if method == Method::Mot {
            let (depender, referenced) = (address(relations, index), address(methods, ours));
            pg_sys::recordDependencyOn(&raw const depender, &raw const referenced, normal);
        }
    }
}

/// `InvalidSubTransactionId` of c.h, which the bindings lack.
const NOT_IN_SUBTRANSACTION: pg_sys::SubTransactionId = 0;

/// A routine that a rollback to a savepoint puts back into an entry of the relation cache.
struct ReplacedRoutine {
    entry: pg_sys::Relation,
    routine: Box<pg_sys::IndexAmRoutine>,
    handler: pg_sys::Oid,
    /// The nesting level of the subtransaction that replaced it.
    level: i32,
}

/// The replaced routines of this transaction, in their order, and whether the callbacks are
/// installed.
static REPLACED: ProcessLocal<(RefCell<Vec<ReplacedRoutine>>, Cell<bool>)> =
    ProcessLocal((RefCell::new(Vec::new()), Cell::new(false)));

/// As `refresh_routine`, of an index that was there before: what a rollback to a savepoint must put
/// back is kept.
///
/// # Safety
/// As of `refresh_routine`.
pub unsafe fn replace_routine(index: pg_sys::Relation) {
    // SAFETY: an open index's entry (caller) has a routine. Core keeps an entry with one of these
    // marks, at its place, to the end of the (sub)transaction that set the mark.
    unsafe {
        if (*index).rd_refcnt != 1 {
            in_use(index);
        }
        let stays = (*index).rd_createSubid != NOT_IN_SUBTRANSACTION
            || version::first_file_subtransaction(index) != NOT_IN_SUBTRANSACTION;
        if stays {
            install_callbacks();
            REPLACED.0.0.borrow_mut().push(ReplacedRoutine {
                entry: index,
                routine: Box::new(std::ptr::read((*index).rd_indam.cast())),
                handler: (*index).rd_amhandler,
                level: pg_sys::GetCurrentTransactionNestLevel(),
            });
        }
        refresh_routine(index);
    }
}

/// Raises for an index that is open elsewhere in this session: calls from there would go to the
/// other access method's functions.
fn in_use(index: pg_sys::Relation) -> ! {
    let name = crate::storage::name_of(index);
    raise(
        PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
        format!(
            "cannot change the access method of index \"{name}\" because it is being used by active queries in \
             this session"
        ),
        None,
        None,
    )
}

fn install_callbacks() {
    if REPLACED.0.1.replace(true) {
        return;
    }
    // SAFETY: the callbacks live as long as the library, which PostgreSQL never unloads.
    unsafe {
        pg_sys::RegisterXactCallback(Some(on_transaction), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(on_subtransaction), std::ptr::null_mut());
    }
}

unsafe extern "C-unwind" fn on_transaction(event: pg_sys::XactEvent::Type, _: *mut c_void) {
    use pgrx::pg_sys::XactEvent::*;
    if matches!(
        event,
        XACT_EVENT_COMMIT | XACT_EVENT_ABORT | XACT_EVENT_PREPARE
    ) {
        // Core takes the marks away, and reads the entries anew.
        REPLACED.0.0.take();
    }
}

unsafe extern "C-unwind" fn on_subtransaction(
    event: pg_sys::SubXactEvent::Type,
    this: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _: *mut c_void,
) {
    use pgrx::pg_sys::SubXactEvent::*;
    let mut replaced = REPLACED.0.0.borrow_mut();
    if replaced.is_empty() {
        return;
    }
    // SAFETY: a plain variable of this process; entries are at their places, see `replace_routine`.
    unsafe {
        let level = pg_sys::GetCurrentTransactionNestLevel();
        match event {
            SUBXACT_EVENT_ABORT_SUB => {
                while let Some(last) = replaced.pop_if(|last| last.level >= level) {
                    std::ptr::write((*last.entry).rd_indam.cast(), *last.routine);
                    (*last.entry).rd_amhandler = last.handler;
                }
            }
            SUBXACT_EVENT_COMMIT_SUB => {
                // Core throws an entry away after this if the subtransaction made its index and
                // dropped it.
                replaced.retain(|one| {
                    let entry = &*one.entry;
                    entry.rd_createSubid != this || entry.rd_droppedSubid == NOT_IN_SUBTRANSACTION
                });
                for one in replaced.iter_mut() {
                    one.level = one.level.min(level - 1);
                }
            }
            _ => {}
        }
    }
}

/// Has an open entry of the relation cache call the functions of the access method that its catalog
/// row names.
///
/// Core makes them when it builds the entry, and keeps them for as long as the entry lives. The
/// entry of an index that this transaction has made, or given a new file, lives to the end of the
/// transaction.
///
/// # Safety
/// An open index whose entry was read anew since the catalog was changed.
pub unsafe fn refresh_routine(index: pg_sys::Relation) {
    // SAFETY: an index's entry has a routine of its own, of this size, and the new one is a copy
    // too.
    unsafe {
        let method = (*(*index).rd_rel).relam;
        let cache = pg_sys::SysCacheIdentifier::AMOID as i32;
        let row = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(method));
        if row.is_null() {
            missing(method);
        }
        let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_am>(row);
        let handler = (*form).amhandler;
        pg_sys::ReleaseSysCache(row);
        let routine = pg_sys::GetIndexAmRoutine(handler);
        std::ptr::copy_nonoverlapping(routine, (*index).rd_indam.cast(), 1);
        pg_sys::pfree(routine.cast());
        (*index).rd_amhandler = handler;
    }
}

/// The access method of a relation; `InvalidOid`: it has none, or is gone.
pub fn of(relation: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: a catalog's row, released when its field was read.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::RELOID as i32;
        let row = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(relation));
        if row.is_null() {
            return pg_sys::InvalidOid;
        }
        let method = (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_class>(row)).relam;
        pg_sys::ReleaseSysCache(row);
        method
    }
}

/// The indexes of a table that the caller has locked.
pub fn indexes_of(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    relation::with(table, NO_LOCK, |table| {
        // SAFETY: an open table; the list of oids is core's copy.
        let list = unsafe {
            let list = pg_sys::RelationGetIndexList(table.as_ptr());
            pgrx::PgList::<pg_sys::Oid>::from_pg(list)
        };
        list.iter_oid().collect()
    })
}

/// Raises for a row that a lock of the caller's keeps in the catalog.
fn missing(oid: pg_sys::Oid) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        format!("cache lookup failed for relation {}", oid.to_u32()),
        None,
        None,
    )
}
