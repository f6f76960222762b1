//! Prepared transactions: any session ends them, and they hold what they changed and locked over
//! every start.

use std::sync::atomic::Ordering;

use super::*;

impl World {
    /// Its row locks are logged, and it has used no temporary relation.
    pub(super) fn may_prepare(&self, at: usize) -> bool {
        let open = &self.open[at];
        let mut touched = open.touched.iter().map(|(key, ..)| key);
        open.rows.is_some()
            && !open.ended
            && open.locked != Some(TEMPORARY)
            && !open.used.contains(&TEMPORARY)
            && !touched.any(|key| *key == TEMPORARY)
    }

    /// It is prepared, and no session's any more.
    pub(super) fn prepare(&mut self, at: usize) {
        let mut open = self.open.remove(at);
        let effects = self.effects(&open);
        let touched = open.touched.iter().map(|(key, ..)| *key);
        let prepared = Prepared {
            xid: open.xid,
            effects,
            storages: open.storages,
            unlogged: open.unlogged,
            used: touched.chain(open.used).collect(),
            locked: open.locked,
            rows: open.rows.expect("its row locks are logged"),
        };
        let mut wal = self.wal.borrow_mut();
        let lsn = wal.append(Entry::Prepare { xid: open.xid });
        wal.prepared.push((lsn, prepared.clone()));
        drop(wal);
        open.transaction.give_up(&self.session);
        self.prepared.push(prepared);
    }

    /// A session ends a prepared transaction, and no other learns it.
    pub(super) fn end_prepared(&mut self, at: usize, commits: bool) {
        let Prepared {
            xid,
            effects,
            storages,
            unlogged,
            ..
        } = self.prepared.remove(at);
        let mut wal = self.wal.borrow_mut();
        if commits {
            let lsn = wal.append(Entry::Commit { xid });
            wal.effects.push((lsn, effects));
            for (key, table) in storages {
                wal.storages.push((lsn, key, table));
            }
            wal.unlogged
                .extend(unlogged.into_iter().map(|table| (lsn, table)));
            self.outcomes.committed.borrow_mut().insert(xid);
        } else {
            wal.append(Entry::Abort { xid });
        }
        self.outcomes.running.borrow_mut().remove(&xid);
    }

    /// Locks some rows of relations of which a prepared transaction may have locks.
    pub(super) fn lock_some(&mut self, at: usize) {
        for key in RELATIONS.into_iter().filter(|key| *key != TEMPORARY) {
            if self.random.below(2) == 0 {
                self.lock(at, key);
            }
        }
    }

    /// Before a shutdown: what is open locks some more rows and is prepared, where that may be, or
    /// ends.
    pub(in crate::recovery) fn leave_prepared(&mut self) {
        let most = self.prepared.len() + self.random.below(3) as usize;
        while !self.open.is_empty() {
            let open = &self.open[0];
            if !open.logged && self.prepared.len() <= most {
                self.lock_some(0);
                self.log_with_locks(0);
                if self.may_prepare(0) {
                    self.prepare(0);
                    continue;
                }
            }
            self.end(0);
        }
        self.sweep_ended();
    }

    /// Rows that prepared transactions changed or locked are in the way of others that want them,
    /// and no others are. Nothing else is open.
    pub(super) fn check_prepared(&self) {
        for prepared in &self.prepared {
            self.check_changed(prepared);
            for lock in &prepared.rows {
                self.check_locked(prepared, lock);
            }
        }
        for walk in self.session.tables() {
            let table = walk.table();
            for row_id in (0..table.row_ids_end().0).map(RowId) {
                self.check_row(table, row_id);
            }
        }
    }

    fn check_changed(&self, prepared: &Prepared) {
        let changed = prepared.effects.iter().filter(|(_, body)| body.is_some());
        for ((_, table, row_id), _) in changed {
            let (table, clock) = (self.table(*table), self.somebody());
            if table.storage().dropped.load(Ordering::Relaxed) != 0 {
                // The log need not tell what it did there before.
                continue;
            }
            let newest = self.session.newest(&clock, table, RowId(*row_id));
            assert_eq!(newest, Newest::Busy(Xid(prepared.xid)), "row {row_id}");
        }
    }

    fn check_locked(&self, prepared: &Prepared, lock: &RowLock) {
        let (table, clock) = (self.table(lock.table), self.somebody());
        let seen = match self.session.newest(&clock, table, lock.row_id) {
            Newest::Live(seen) => seen,
            // Changed by another one beside the lock.
            Newest::Busy(other) if other.0 != prepared.xid => return,
            newest => panic!("a locked row is {newest:?}"),
        };
        let strength = match lock.strength {
            LockStrength::KeyShare => LockStrength::Update,
            _ => LockStrength::NoKeyUpdate,
        };
        let locked = self.try_lock(&clock, table, lock.row_id, (seen, strength));
        assert!(matches!(locked, Locked::Busy(_)), "{lock:?}: {locked:?}");
    }

    fn check_row(&self, table: TableRef, row_id: RowId) {
        let clock = self.somebody();
        let Newest::Live(seen) = self.session.newest(&clock, table, row_id) else {
            return;
        };
        let locked = self.try_lock(&clock, table, row_id, (seen, LockStrength::Update));
        if let Locked::Busy(holder) = locked {
            let of_row = |lock: &RowLock| (lock.table, lock.row_id) == (table.id(), row_id);
            let mut prepared = self.prepared.iter();
            let is_its = |it: &Prepared| it.xid == holder.0 && it.rows.iter().any(of_row);
            assert!(prepared.any(is_its), "{holder:?} holds {row_id:?}");
        }
    }

    fn table(&self, id: TableId) -> TableRef {
        let walks = self.session.tables();
        let walk = walks.iter().find(|walk| walk.table().id() == id);
        walk.expect("its table is there").table()
    }

    /// A transaction that has done nothing yet.
    fn somebody(&self) -> TestClock<'_> {
        let me = self.next_xid.get();
        self.next_xid.set(me + 1);
        let outcomes = &self.outcomes;
        TestClock { outcomes, me }
    }

    /// What it finds; it gives the lock back.
    fn try_lock(
        &self,
        clock: &TestClock<'_>,
        table: TableRef,
        row_id: RowId,
        (seen, strength): (VersionRef, LockStrength),
    ) -> Locked {
        let mut work = Transaction::new();
        let (session, me) = (&self.session, Xid(clock.me));
        let locked = work.lock(session, clock, table, row_id, seen, strength, me);
        work.abort(session);
        locked.expect("memory")
    }
}

/// The row locks that a record tells of.
pub(super) fn locks((_, entry): &(u64, Entry)) -> Vec<RowLock> {
    let Entry::Record { bytes, .. } = entry else {
        return Vec::new();
    };
    match Record::parse(bytes) {
        Ok(Record::Locks(locks)) => locks.collect::<Result<_, _>>().expect("is whole"),
        _ => Vec::new(),
    }
}
