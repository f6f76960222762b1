//! The unique indexes that an ON CONFLICT asks, in the order in which core asks them.
//!
//! A statement without a conflict target asks all unique indexes of the table. As core's executor
//! does, an execution locks each, has it open where others may use it, and counts its scans.
use super::index_lock::IndexLock;
use super::opened::{Entries, Opened};
use crate::index_am::access_method::indexes_of;
use crate::pg::relation::Relation;
use crate::storage::{self, computed_keys};
use crate::transaction::relation::LockedRelation;
use mot_engine::{IndexRef, TableRef};
use pgrx::pg_sys;

/// One index that is asked.
pub struct Arbiter {
    pub oid: pg_sys::Oid,
    /// Its keys are computed.
    pub is_computed: bool,
    /// What the engine has of it.
    pub index: IndexRef,
    lock: IndexLock,
    entries: Entries,
    /// Where an execution counts what it finds by this index.
    pub opened: Opened,
}

/// All indexes that a statement asks.
pub struct Arbiters {
    /// Those that the statement names; empty: all unique ones.
    named: Vec<pg_sys::Oid>,
    list: Vec<Arbiter>,
}

impl Arbiters {
    /// `None`: one is not valid yet, is checked later, or is not kept by the engine, so core has
    /// to run the statement.
    pub fn of(relation: pg_sys::Oid, named: &[pg_sys::Oid], table: TableRef) -> Option<Arbiters> {
        let named = named.to_vec();
        let list = find(relation, &named, table)?;
        Some(Arbiters { named, list })
    }

    /// Follows the table to another storage; false: other indexes decide now, and core has to run
    /// the statement.
    pub fn move_to(&mut self, relation: pg_sys::Oid, table: TableRef) -> bool {
        let Some(list) = find(relation, &self.named, table) else {
            return false;
        };
        let oid = |arbiter: &Arbiter| arbiter.oid;
        if !list.iter().map(oid).eq(self.list.iter().map(oid)) {
            return false;
        }
        for (arbiter, found) in self.list.iter_mut().zip(list) {
            arbiter.index = found.index;
        }
        true
    }

    /// Those that are asked, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arbiter> {
        self.list.iter()
    }

    /// Whether a duplicate in the index with this oid is what the statement is prepared for.
    pub fn contains(&self, index: u32) -> bool {
        self.list
            .iter()
            .any(|arbiter| arbiter.oid.to_u32() == index)
    }

    /// Locks all for an execution. May wait, and raise.
    pub fn lock(&self) {
        for arbiter in &self.list {
            arbiter.lock.take(arbiter.oid);
        }
    }

    /// Opens all for an execution.
    ///
    /// # Safety
    /// The table `relation` and its indexes are locked.
    pub unsafe fn open(&mut self, relation: pg_sys::Oid) {
        for arbiter in &mut self.list {
            // SAFETY: the caller's locks.
            arbiter.opened = unsafe { Opened::open(relation, arbiter.oid, &mut arbiter.entries) };
        }
    }

    /// Opens only those that cannot be counted by an entry that was found before.
    ///
    /// # Safety
    /// As for [`Arbiters::open`]; no code asks what is open while the execution runs.
    pub unsafe fn find_counters(&mut self, relation: pg_sys::Oid) {
        for arbiter in &mut self.list {
            let known = Opened::closed(&arbiter.entries);
            // SAFETY: the caller's locks.
            let open = || unsafe { Opened::open(relation, arbiter.oid, &mut arbiter.entries) };
            arbiter.opened = known.unwrap_or_else(open);
        }
    }

    /// Closes what is open.
    ///
    /// # Safety
    /// In the execution that opened it.
    pub unsafe fn close(&mut self) {
        for arbiter in &mut self.list {
            // SAFETY: the caller's execution.
            unsafe { arbiter.opened.close() };
        }
    }

    /// After an execution that failed: PostgreSQL closes what was open.
    pub fn forget(&mut self) {
        for arbiter in &mut self.list {
            arbiter.opened = Opened::NONE;
        }
    }
}

/// What the statement asks of a locked table, now.
fn find(relation: pg_sys::Oid, named: &[pg_sys::Oid], table: TableRef) -> Option<Vec<Arbiter>> {
    let indexes = indexes_of(relation);
    let mut found = Vec::with_capacity(indexes.len());
    for oid in indexes {
        if !named.is_empty() && !named.contains(&oid) {
            continue;
        }
        // Planning has locked none that the statement does not name, and a kept plan none at all.
        let lock = IndexLock::new(pg_sys::RowExclusiveLock as pg_sys::LOCKMODE);
        lock.take(oid);
        let asked = LockedRelation::closed(oid).with(|index| asked(table, index));
        if let Asked::Yes { index, is_computed } = asked {
            found.push(Arbiter {
                oid,
                is_computed,
                index,
                lock,
                entries: Entries::NONE,
                opened: Opened::NONE,
            });
        } else if !named.is_empty() || asked == Asked::ByCore {
            return None;
        }
    }
    (named.is_empty() || found.len() == named.len()).then_some(found)
}

/// How an index is asked for a conflict.
#[derive(PartialEq)]
enum Asked {
    Yes {
        index: IndexRef,
        is_computed: bool,
    },
    /// It is not unique.
    No,
    ByCore,
}

fn asked(table: TableRef, index: Relation<'_>) -> Asked {
    let form = index.index_row();
    if !form.indisunique {
        return Asked::No;
    }
    if !(form.indimmediate && form.indisready && form.indisvalid) {
        return Asked::ByCore;
    }
    let is_computed = computed_keys::is_computed(index);
    storage::find_index(table, index)
        .map_or(Asked::ByCore, |index| Asked::Yes { index, is_computed })
}
