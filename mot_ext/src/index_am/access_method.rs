//! Changes an index's access method: in the catalog, and in the entry of the relation cache.
use crate::errors::refuse::raise;
use crate::pg::index_routine::Routine;
use crate::pg::local::ProcessLocal;
use crate::pg::relation::{self, NO_LOCK, Relation};
use crate::pg::{self, catalog, class_row};
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

/// Writes an index's access method into `pg_class`, and makes the change visible to what follows.
///
/// # Safety
/// The index's row in `pg_class` is visible, and no other session can replace it: the caller has a
/// lock for that.
pub unsafe fn write(index: pg_sys::Oid, method: Method) {
    let method_oid = method.oid();
    // SAFETY: the caller's row. Core reads entries of both methods' indexes in the same way.
    if !unsafe { class_row::change(index, |row| row.relam = method_oid) } {
        missing(index);
    }
    // SAFETY: both are there.
    unsafe { note_dependency(index, method) };
    catalog::make_changes_visible();
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

/// A routine that a rollback to a savepoint puts back into an entry of the relation cache.
struct ReplacedRoutine {
    entry: pg_sys::Relation,
    routine: Routine,
    /// The nesting level of the subtransaction that replaced it.
    level: i32,
}

impl ReplacedRoutine {
    /// The entry.
    fn entry(&self) -> Relation<'_> {
        // SAFETY: it keeps its place until the end of the (sub)transaction, which takes this out of
        // the list.
        unsafe { Relation::enter(self.entry) }
    }
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
pub unsafe fn replace_routine(index: Relation<'_>) {
    if index.uses() != 1 {
        in_use(index);
    }
    if index.keeps_place() {
        install_callbacks();
        REPLACED.0.0.borrow_mut().push(ReplacedRoutine {
            entry: index.as_ptr(),
            routine: index.routine(),
            level: pg::nest_level(),
        });
    }
    // SAFETY: the caller's.
    unsafe { refresh_routine(index) };
}

/// Raises for an index that is open elsewhere in this session: calls from there would go to the
/// other access method's functions.
fn in_use(index: Relation<'_>) -> ! {
    let name = index.name_text();
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
    let level = pg::nest_level();
    match event {
        SUBXACT_EVENT_ABORT_SUB => {
            while let Some(last) = replaced.pop_if(|last| last.level >= level) {
                // SAFETY: the index's own functions from before.
                unsafe { last.entry().set_routine(&last.routine) };
            }
        }
        SUBXACT_EVENT_COMMIT_SUB => {
            // Core throws an entry away after this if the subtransaction made its index and
            // dropped it.
            replaced.retain(|one| !one.entry().is_made_and_dropped_in(this));
            for one in replaced.iter_mut() {
                one.level = one.level.min(level - 1);
            }
        }
        _ => {}
    }
}

/// Has an open entry of the relation cache call the functions of the access method that its catalog
/// row names.
///
/// The entry of an index that this transaction has made, or given a new file, lives to the end of
/// the transaction.
///
/// # Safety
/// An index whose entry was read anew since the catalog was changed.
pub unsafe fn refresh_routine(index: Relation<'_>) {
    let method = index.access_method();
    let Some(handler) = catalog::handler_of(method) else {
        missing(method);
    };
    // SAFETY: the handler of the index's own access method.
    unsafe { index.set_routine(&Routine::of(handler)) };
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
