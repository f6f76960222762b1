//! Shows an index as a btree for a while, in this process's memory alone.
//!
//! Core reads an index's access method from the index's entry in the relation cache
//! (`rd_rel->relam`). It calls the functions through another field (`rd_indam`), which stays ours.
//! So scans, inserts and builds continue as before.
//!
//! - An entry is held open while it is shown as a btree, so that it does not move. An invalidation
//!   reads the catalog row anew. Core calls the callback right after that, which shows it as a
//!   btree again.
//! - Where the planner meets such an index on 15 to 17, it asks btree for the height of the tree.
//!   Btree looks into the cache of the entry first, so there is the description of a small tree
//!   (`rd_amcache`). The planner's hook (`index_order`) makes the index ours again for all that
//!   follows.
//! - An index that core drops meanwhile is closed by the object access hook, right before core
//!   checks whether it is open.
//! - A table that the statement rewrites has its indexes built anew, and these must not be open.
//!   The object access hook of the transient table closes them (make_new_heap in cluster.c).
//! - An error leaves entries open, and the transaction's end closes them. Before that they are
//!   shown as ours again: in `Drop`, or in the callbacks of (sub)transactions.
use super::access_method::{Method, indexes_of};
use crate::pg::btree::{LOW_TREE, Tree};
use crate::pg::local::ProcessLocal;
use crate::pg::version::index_am::ASKS_FOR_BTREE;
use crate::storage;
use pgrx::pg_sys;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ffi::{CStr, CString};

struct Flip {
    group: u64,
    index: pg_sys::Oid,
    entry: pg_sys::Relation,
    ours: pg_sys::Oid,
    /// The lock that goes when the entry is closed, or none.
    gives_back: pg_sys::LOCKMODE,
    /// The nesting level of the subtransaction that holds the entry open, and its list of what is.
    level: i32,
    owner: pg_sys::ResourceOwner,
}

/// An index that is to be shown as a btree once it is made under a name.
struct Awaited {
    group: u64,
    table: pg_sys::Oid,
    name: CString,
}

struct State {
    flips: Vec<Flip>,
    awaited: Vec<Awaited>,
    last_group: u64,
    has_callbacks: bool,
}

static STATE: ProcessLocal<UnsafeCell<State>> = ProcessLocal(UnsafeCell::new(State {
    flips: Vec::new(),
    awaited: Vec::new(),
    last_group: 0,
    has_callbacks: false,
}));

/// The process's state. The reference must not be kept over a call into PostgreSQL.
fn state() -> &'static mut State {
    // SAFETY: one thread; see above.
    unsafe { &mut *STATE.0.get() }
}

/// Indexes that are shown as btrees until this ends, or is dropped by an error that ends the
/// (sub)transaction.
#[must_use]
pub struct Flips {
    group: u64,
}

/// Shows indexes as btrees. They are locked, and the lock is kept to the end of the transaction.
///
/// # Safety
/// The tables of the indexes are locked, in a mode in which no session can drop them.
pub unsafe fn show(indexes: &[pg_sys::Oid], lock: pg_sys::LOCKMODE) -> Flips {
    let flips = Flips::none();
    // SAFETY: the caller's.
    unsafe { add(flips.group, indexes, lock, NONE) };
    flips
}

/// No lock.
const NONE: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;

unsafe fn add(
    group: u64,
    indexes: &[pg_sys::Oid],
    lock: pg_sys::LOCKMODE,
    gives_back: pg_sys::LOCKMODE,
) {
    let ours = Method::Mot.oid();
    for index in indexes {
        // SAFETY: the index is there (caller); its entry stays open until `end`, or until an abort.
        unsafe {
            let entry = pg_sys::index_open(*index, lock);
            if (*(*entry).rd_rel).relam != ours {
                pg_sys::index_close(entry, gives_back);
                continue;
            }
            state().flips.push(Flip {
                group,
                index: *index,
                entry,
                ours,
                gives_back,
                level: pg_sys::GetCurrentTransactionNestLevel(),
                owner: pg_sys::CurrentResourceOwner,
            });
            as_btree(entry);
        }
    }
}

/// An index of a table was made, and is ours: shows it, if it is awaited.
///
/// # Safety
/// Core has just made the index.
pub unsafe fn created(table: pg_sys::Oid, index: pg_sys::Oid) {
    if state().awaited.is_empty() {
        return;
    }
    // SAFETY: core has the index open and locked; the name is palloc'd.
    unsafe {
        let name = pg_sys::get_rel_name(index);
        if name.is_null() {
            return;
        }
        let is_meant =
            |awaited: &&Awaited| awaited.table == table && *awaited.name == *CStr::from_ptr(name);
        let group = state()
            .awaited
            .iter()
            .find(is_meant)
            .map(|awaited| awaited.group);
        pg_sys::pfree(name.cast());
        if let Some(group) = group {
            let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
            add(group, &[index], lock, NONE);
        }
    }
}

/// Some indexes that are shown, and what is shown with them.
#[derive(Clone, Copy)]
pub struct Group(u64);

impl Group {
    /// Shows those indexes of a table, too, that core opens for an INSERT ... ON CONFLICT. The lock
    /// is that of core, and goes with the end.
    ///
    /// # Safety
    /// As for [`show`].
    pub unsafe fn add_for_insert(&self, table: pg_sys::Oid) {
        let lock = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
        let mut shown = Vec::new();
        loop {
            // Waiting for one index may bring others.
            let mut new = indexes_of(table);
            new.retain(|index| !shown.contains(index) && storage::is_unique_to_core(*index));
            if new.is_empty() {
                return;
            }
            // SAFETY: the caller's.
            unsafe { add(self.0, &new, lock, lock) };
            shown.append(&mut new);
        }
    }
}

impl Flips {
    /// Shows none yet.
    pub fn none() -> Flips {
        install_callbacks();
        state().last_group += 1;
        Flips {
            group: state().last_group,
        }
    }

    /// By which more are shown, until it ends.
    pub fn group(&self) -> Group {
        Group(self.group)
    }

    /// Shows an index of this name, too, if the statement makes one: core drops an index that ALTER
    /// TYPE changes, and makes another.
    pub fn also(&self, table: pg_sys::Oid, name: &CStr) {
        state().awaited.push(Awaited {
            group: self.group,
            table,
            name: name.to_owned(),
        });
    }

    /// Shows the indexes as what they are, and closes them.
    pub fn end(self) {
        for flip in take(|flip| flip.group == self.group) {
            // SAFETY: the entry is open since `show`; no error has ended a transaction, or the flip
            // were gone.
            unsafe { flip.close() };
        }
    }
}

impl Flip {
    /// Closes the entry, in the name of the resource owner that opened it: a statement that drops
    /// the index may run in a subtransaction.
    unsafe fn close(self) {
        // SAFETY: the entry is open since `show` (caller), so its owner is there.
        unsafe {
            let current = pg_sys::CurrentResourceOwner;
            pg_sys::CurrentResourceOwner = self.owner;
            pg_sys::index_close(self.entry, self.gives_back);
            pg_sys::CurrentResourceOwner = current;
        }
    }
}

impl Drop for Flips {
    fn drop(&mut self) {
        // After `end` there is none. In an unwinding the transaction has not ended yet, so entries
        // are still open.
        take(|flip| flip.group == self.group);
        state()
            .awaited
            .retain(|awaited| awaited.group != self.group);
    }
}

/// Closes an index that is about to be dropped: core drops none that is open.
pub fn release(index: pg_sys::Oid) {
    for flip in take(|flip| flip.index == index) {
        // SAFETY: the entry is open since `show`, see `Flips::end`.
        unsafe { flip.close() };
    }
}

/// Core has made a relation. If that is the transient table by which it writes a table anew, the
/// table's indexes are shown as what they are: core has read them by then, and builds only
/// those that are not open.
///
/// # Safety
/// Core has the relation open.
pub unsafe fn end_for_rewrite(relation: pg_sys::Oid) {
    if !is_any_shown() {
        return;
    }
    // SAFETY: the caller's relation; entries of shown indexes are open since `show`.
    unsafe {
        let made = pg_sys::RelationIdGetRelation(relation);
        if made.is_null() {
            return;
        }
        let name = CStr::from_ptr((*(*made).rd_rel).relname.data.as_ptr());
        let table = name.to_bytes().strip_prefix(b"pg_temp_").and_then(|oid| {
            let oid = std::str::from_utf8(oid).ok()?;
            oid.parse().ok().map(pg_sys::Oid::from_u32)
        });
        let is_temporary = (*(*made).rd_rel).relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP;
        pg_sys::RelationClose(made);
        // REFRESH MATERIALIZED VIEW CONCURRENTLY makes a temporary one, reads the view's indexes
        // after that, and keeps them. A view itself is never temporary.
        let is_kept = |table: pg_sys::Oid| {
            is_temporary && pg_sys::get_rel_relkind(table) as u8 == pg_sys::RELKIND_MATVIEW
        };
        if let Some(table) = table.filter(|table| !is_kept(*table)) {
            for flip in take(|flip| (*(*flip.entry).rd_index).indrelid == table) {
                flip.close();
            }
        }
    }
}

/// Whether an index is shown as a btree now.
pub fn is_shown(index: pg_sys::Oid) -> bool {
    state().flips.iter().any(|flip| flip.index == index)
}

/// Whether any index is shown as a btree now.
#[inline]
pub fn is_any_shown() -> bool {
    !state().flips.is_empty()
}

/// Takes some out of the list and shows them as what they are. Calls nothing that reads a
/// catalog.
fn take(is_meant: impl Fn(&Flip) -> bool) -> Vec<Flip> {
    let (taken, kept) = std::mem::take(&mut state().flips)
        .into_iter()
        .partition::<Vec<_>, _>(|flip| is_meant(flip));
    state().flips = kept;
    for flip in &taken {
        if !is_shown(flip.index) {
            // SAFETY: the entry is still open, see `Flips::end` and the callbacks.
            unsafe { as_ours(flip) };
        }
    }
    taken
}

unsafe fn as_btree(entry: pg_sys::Relation) {
    // SAFETY: an open entry of an index (caller) has a catalog row and a memory context of its own.
    unsafe {
        (*(*entry).rd_rel).relam = Method::Btree.oid();
        if ASKS_FOR_BTREE && (*entry).rd_amcache.is_null() {
            let room = pg_sys::MemoryContextAllocZero((*entry).rd_indexcxt, size_of::<Tree>());
            room.cast::<Tree>().write(LOW_TREE);
            (*entry).rd_amcache = room;
        }
    }
}

unsafe fn as_ours(flip: &Flip) {
    // SAFETY: an open entry of an index (caller); what is in its cache is ours.
    unsafe {
        let entry = flip.entry;
        (*(*entry).rd_rel).relam = flip.ours;
        if !(*entry).rd_amcache.is_null() {
            pg_sys::pfree((*entry).rd_amcache);
            (*entry).rd_amcache = std::ptr::null_mut();
        }
    }
}

fn install_callbacks() {
    if std::mem::replace(&mut state().has_callbacks, true) {
        return;
    }
    let none = std::ptr::null_mut();
    // SAFETY: the callbacks live as long as the library, which PostgreSQL never unloads.
    unsafe {
        pg_sys::CacheRegisterRelcacheCallback(Some(invalidated), pg_sys::Datum::from(0));
        pg_sys::RegisterXactCallback(Some(on_transaction), none);
        pg_sys::RegisterSubXactCallback(Some(on_subtransaction), none);
    }
}

/// An entry was read anew from the catalog; 0: all were.
unsafe extern "C-unwind" fn invalidated(_argument: pg_sys::Datum, index: pg_sys::Oid) {
    if !is_any_shown() {
        return;
    }
    let is_meant = |flip: &&Flip| index == pg_sys::InvalidOid || flip.index == index;
    for flip in state().flips.iter().filter(is_meant) {
        // SAFETY: the entry is open.
        unsafe { as_btree(flip.entry) };
    }
}

unsafe extern "C-unwind" fn on_transaction(event: pg_sys::XactEvent::Type, _: *mut c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT
        || event == pg_sys::XactEvent::XACT_EVENT_PARALLEL_ABORT
    {
        // Core closes the entries after this.
        take(|_| true);
    }
}

unsafe extern "C-unwind" fn on_subtransaction(
    event: pg_sys::SubXactEvent::Type,
    _this: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _: *mut c_void,
) {
    if !is_any_shown() {
        return;
    }
    // SAFETY: a plain variable of this process.
    let level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    match event {
        // Core closes the entries after this.
        pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB => {
            take(|flip| flip.level >= level);
        }
        pg_sys::SubXactEvent::SUBXACT_EVENT_COMMIT_SUB => {
            for flip in &mut state().flips {
                flip.level = flip.level.min(level - 1);
            }
        }
        _ => {}
    }
}
