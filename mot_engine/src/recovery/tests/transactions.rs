//! Steps at random: a transaction begins, writes, defines, logs, commits or aborts; the sweeper
//! comes by.

use super::*;

impl World {
    pub(super) fn begin(&mut self) -> usize {
        let xid = self.next_xid.get();
        self.next_xid.set(xid + 1);
        self.outcomes.running.borrow_mut().insert(xid);
        self.open.push(Open {
            xid,
            cid: 0,
            transaction: Transaction::new(),
            touched: BTreeSet::new(),
            storages: Vec::new(),
            locked: None,
            logged: false,
            rows: None,
            used: BTreeSet::new(),
            ended: false,
        });
        self.open.len() - 1
    }

    pub(super) fn abort(&mut self, at: usize) {
        let mut open = self.open.remove(at);
        open.transaction.abort(&self.session);
        self.outcomes.running.borrow_mut().remove(&open.xid);
    }

    pub(super) fn log(&mut self, at: usize) {
        let open = &mut self.open[at];
        let mut log = Appender {
            wal: &self.wal,
            xid: open.xid,
        };
        if self.random.below(2) == 0 {
            let before = self.wal.borrow().entries.len();
            open.transaction
                .log_locks(&self.session, Xid(open.xid), &mut log)
                .expect("logs");
            let wal = self.wal.borrow();
            open.rows = Some(wal.entries[before..].iter().flat_map(locks).collect());
        }
        open.transaction.log(&self.session, &mut log).expect("logs");
        open.logged = true;
    }

    /// It is prepared, and no session's any more.
    fn prepare(&mut self, at: usize) {
        let mut open = self.open.remove(at);
        let effects = self.effects(&open);
        let touched = open.touched.iter().map(|(key, ..)| *key);
        let prepared = Prepared {
            xid: open.xid,
            effects,
            storages: open.storages,
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

    /// Somebody ends a prepared transaction, and nobody is told.
    fn end_prepared(&mut self, at: usize, commits: bool) {
        let Prepared {
            xid,
            effects,
            storages,
            ..
        } = self.prepared.remove(at);
        let mut wal = self.wal.borrow_mut();
        if commits {
            let lsn = wal.append(Entry::Commit { xid });
            wal.effects.push((lsn, effects));
            for (key, table) in storages {
                wal.storages.push((lsn, key, table));
            }
            self.outcomes.committed.borrow_mut().insert(xid);
        } else {
            wal.append(Entry::Abort { xid });
        }
        self.outcomes.running.borrow_mut().remove(&xid);
    }

    /// The rows that prepared transactions locked are in the way of whoever wants them.
    pub(super) fn check_locks(&self) {
        for prepared in &self.prepared {
            for lock in &prepared.rows {
                let xid = self.next_xid.get();
                self.next_xid.set(xid + 1);
                let clock = TestClock {
                    outcomes: &self.outcomes,
                    me: xid,
                };
                let walks = self.session.tables();
                let walk = walks.iter().find(|walk| walk.table().id() == lock.table);
                let table = walk.expect("its table is there").table();
                let Newest::Live(seen) = self.session.newest(&clock, table, lock.slot) else {
                    // A crash has emptied its table.
                    assert!(!table.is_logged(), "a locked row is gone");
                    continue;
                };
                let mut work = Transaction::new();
                let strength = match lock.strength {
                    LockStrength::KeyShare => LockStrength::Update,
                    _ => LockStrength::NoKeyUpdate,
                };
                let locked = work.lock(
                    &self.session,
                    &clock,
                    table,
                    lock.slot,
                    seen,
                    strength,
                    Xid(xid),
                );
                let locked = locked.expect("memory");
                assert!(matches!(locked, Locked::Busy(_)), "{lock:?}: {locked:?}");
                work.abort(&self.session);
            }
        }
    }

    /// What a transaction has made of its rows.
    fn effects(&self, open: &Open) -> Vec<Effect> {
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: open.xid,
        };
        let walks = self.session.tables();
        let mut effects = Vec::new();
        for place in &open.touched {
            let (key, id, slot) = *place;
            let Some(walk) = walks.iter().find(|walk| walk.table().id() == id) else {
                continue;
            };
            assert_eq!(walk.table().key(), key);
            let body = match self.session.newest(&clock, walk.table(), Slot(slot)) {
                Newest::Live(version) => Some(version.body().to_vec()),
                _ => None,
            };
            effects.push((*place, body));
        }
        effects
    }

    pub(super) fn commit(&mut self, at: usize) {
        if !self.open[at].ended {
            self.write_commit_record(at);
        }
        let mut open = self.open.remove(at);
        self.outcomes.running.borrow_mut().remove(&open.xid);
        open.transaction.commit(&self.session);
    }

    /// From here on it has committed; others learn that later, as where a commit waits for a
    /// standby.
    fn write_commit_record(&mut self, at: usize) {
        let effects = self.effects(&self.open[at]);
        let open = &mut self.open[at];
        open.ended = true;
        let mut wal = self.wal.borrow_mut();
        let lsn = wal.append(Entry::Commit { xid: open.xid });
        wal.effects.push((lsn, effects));
        for (key, table) in open.storages.drain(..) {
            wal.storages.push((lsn, key, table));
        }
        drop(wal);
        self.outcomes.committed.borrow_mut().insert(open.xid);
    }

    /// One random step of one transaction.
    pub(in crate::recovery) fn step(&mut self) {
        let dice = self.random.below(100);
        if self.open.len() < 3 && (self.open.is_empty() || dice < 15) {
            self.begin();
            return;
        }
        let at = self.random.below(self.open.len() as u64) as usize;
        if self.open[at].logged {
            let may_prepare = self.open[at].rows.is_some() && !self.open[at].ended;
            match dice {
                0..25 if may_prepare && self.prepared.len() < 3 => self.prepare(at),
                0..55 => self.commit(at),
                55..70 if !self.open[at].ended => self.write_commit_record(at),
                70..85 if !self.open[at].ended => self.abort(at),
                _ => {}
            }
            return;
        }
        match dice {
            0..14 => self.log(at),
            14..18 => self.abort(at),
            18..22 => self.define(at),
            22..25 => self.sweep(),
            25..30 => self.lock(at),
            30..34 if !self.prepared.is_empty() => {
                let at = self.random.below(self.prepared.len() as u64) as usize;
                let commits = self.random.below(2) == 0;
                self.end_prepared(at, commits);
            }
            _ => self.write(at),
        }
    }

    /// Locks a row.
    fn lock(&mut self, at: usize) {
        let key = RELATIONS[self.random.below(2) as usize];
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: self.open[at].xid,
        };
        let table = self.session.find_table(key, &clock);
        let (Some(table), false) = (table, self.is_locked_by_others(at, key)) else {
            return;
        };
        let slot = Slot(self.random.below(table.slots_end().0.max(1)));
        let Newest::Live(seen) = self.session.newest(&clock, table, slot) else {
            return;
        };
        let strengths = [
            LockStrength::KeyShare,
            LockStrength::Share,
            LockStrength::NoKeyUpdate,
            LockStrength::Update,
        ];
        let strength = strengths[self.random.below(4) as usize];
        let (session, open) = (&self.session, &mut self.open[at]);
        open.used.insert(key);
        let xid = Xid(open.xid);
        open.transaction
            .lock(session, &clock, table, slot, seen, strength, xid)
            .expect("memory");
    }

    /// Whether another transaction has the relation for itself.
    fn is_locked_by_others(&self, at: usize, key: RelationKey) -> bool {
        let mut open = self.open.iter().enumerate();
        open.any(|(other, open)| other != at && open.locked == Some(key))
            || self.prepared.iter().any(|it| it.locked == Some(key))
    }

    pub(in crate::recovery) fn sweep(&mut self) {
        let oldest = self.outcomes.running.borrow().first().copied();
        self.engine
            .raise_horizon(Xid(oldest.unwrap_or(self.next_xid.get())));
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: 0,
        };
        for walk in self.session.tables() {
            self.session.sweep(&clock, walk.table(), true, || {});
        }
        self.session.settle_given_up(&clock);
        let is_over = |xid: Xid| !clock.is_in_progress(xid);
        self.session.drop_ended_locks(is_over).expect("memory");
        let mut log = Appender {
            wal: &self.wal,
            xid: 0,
        };
        crate::transaction::log_and_free_doomed(&self.session, &mut log, || ()).expect("memory");
    }

    fn relation(&mut self) -> RelationKey {
        RELATIONS[self.random.below(RELATIONS.len() as u64) as usize]
    }

    /// Creates, truncates or drops a table, or an index, if nobody else uses the relation.
    pub(super) fn define(&mut self, at: usize) {
        let key = self.relation();
        let others = self.open.iter().enumerate().any(|(other, open)| {
            other != at
                && (open.locked == Some(key)
                    || open.used.contains(&key)
                    || open.touched.iter().any(|(used, ..)| *used == key))
        }) || self
            .prepared
            .iter()
            .any(|it| it.locked == Some(key) || it.used.contains(&key));
        let mine = self.open[at].locked;
        if others || mine.is_some_and(|locked| locked != key) {
            return;
        }
        let what = self.random.below(10);
        let open = &mut self.open[at];
        let (session, xid) = (&self.session, Xid(open.xid));
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: open.xid,
        };
        open.locked = Some(key);
        let Some(table) = session.find_table(key, &clock) else {
            let table = open
                .transaction
                .create_table_as(session, key, persistence_of(key), xid)
                .expect("memory");
            for definition in [index(1000, 1, true), index(1001, 2, false)] {
                let built = open
                    .transaction
                    .create_index(session, &clock, table, &definition, xid);
                assert!(matches!(built, Ok(Build::Done(_))));
            }
            open.storages.push((key, Some(table.id())));
            return;
        };
        match what {
            0 => {
                open.transaction
                    .drop_table(session, table, xid)
                    .expect("memory");
                open.storages.push((key, None));
            }
            1 => {
                let fresh = open
                    .transaction
                    .truncate_table(session, &clock, table, xid)
                    .expect("memory");
                open.storages.push((key, Some(fresh.id())));
            }
            2..5 => {
                open.transaction
                    .drop_index(session, &clock, table, 1001, xid)
                    .expect("memory");
            }
            _ => {
                if session.find_index(table, 1001, &clock).is_none() {
                    let built = open.transaction.create_index(
                        session,
                        &clock,
                        table,
                        &index(1001, 2, false),
                        xid,
                    );
                    assert!(matches!(built, Ok(Build::Done(_))));
                }
            }
        }
    }

    pub(super) fn write(&mut self, at: usize) {
        let key = self.relation();
        let foreign = self.is_locked_by_others(at, key);
        let me = self.open[at].xid;
        let table = {
            let clock = TestClock {
                outcomes: &self.outcomes,
                me,
            };
            self.session.find_table(key, &clock)
        };
        let (Some(table), false) = (table, foreign) else {
            if !foreign {
                self.define(at);
            }
            return;
        };
        let new = body(
            self.random.below(KEYS),
            self.random.below(4),
            [0, 3, 40][self.random.below(3) as usize],
        );
        let slot = Slot(self.random.below(table.slots_end().0.max(1)));
        let dice = self.random.below(10);
        let open = &mut self.open[at];
        open.cid += 1;
        let (xid, cid) = (Xid(open.xid), CommandId(open.cid));
        let clock = TestClock {
            outcomes: &self.outcomes,
            me,
        };
        let session = &self.session;
        let transaction = &mut open.transaction;
        let (slot, version): (Slot, Option<VersionRef>) = if dice < 4 {
            let (slot, version) = transaction
                .insert(session, table, &new, xid, cid)
                .expect("memory");
            (slot, Some(version))
        } else {
            let Newest::Live(seen) = session.newest(&clock, table, slot) else {
                return;
            };
            let mut changed = seen.body().to_vec();
            if dice < 8 {
                changed[10] = changed[10].wrapping_add(1) % 4;
            } else {
                changed = new;
            }
            let written = if dice == 9 && cid.0.is_multiple_of(2) {
                transaction.delete_moved_away(session, &clock, table, slot, seen, xid, cid)
            } else if dice == 9 {
                transaction.delete(session, &clock, table, slot, seen, xid, cid)
            } else {
                transaction.update(session, &clock, table, slot, seen, &changed, xid, cid)
            };
            match written.expect("memory") {
                Written::Done(_) if dice == 9 => (slot, None),
                Written::Done(version) => (slot, Some(version)),
                _ => return,
            }
        };
        open.touched.insert((key, table.id(), slot.0));
        let entered = version.map(|version| {
            transaction
                .enter(session, &clock, table, slot, version)
                .expect("enters")
        });
        if !matches!(entered, None | Some(Entered::Done)) {
            self.abort(at);
        }
    }

    pub(in crate::recovery) fn end_all(&mut self) {
        while !self.open.is_empty() {
            if self.open[0].logged {
                self.commit(0);
            } else {
                self.abort(0);
            }
        }
        let mut entries = self.wal.borrow().entries.clone().into_iter();
        let has_prepared = entries.any(|(_, entry)| matches!(entry, Entry::Prepare { .. }));
        while !self.prepared.is_empty() {
            let commits = self.random.below(2) == 0;
            self.end_prepared(0, commits);
        }
        if has_prepared {
            // What was rolled back counts until then.
            self.sweep();
        }
    }
}

/// The row locks that a record tells of.
fn locks((_, entry): &(u64, Entry)) -> Vec<RowLock> {
    let Entry::Record { bytes, .. } = entry else {
        return Vec::new();
    };
    match Record::parse(bytes) {
        Ok(Record::Locks(locks)) => locks.collect::<Result<_, _>>().expect("is whole"),
        _ => Vec::new(),
    }
}
