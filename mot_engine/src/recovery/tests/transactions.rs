//! Steps at random: a transaction begins, writes, defines, logs, commits or aborts; the sweeper
//! runs.

use super::prepared::locks;
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
            unlogged: Vec::new(),
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
        if self.random.below(2) == 0 {
            self.lock_some(at);
            return self.log_with_locks(at);
        }
        let open = &mut self.open[at];
        let mut log = Appender {
            wal: &self.wal,
            xid: open.xid,
        };
        open.transaction.log(&self.session, &mut log).expect("logs");
        open.logged = true;
    }

    /// As what is going to be prepared.
    pub(super) fn log_with_locks(&mut self, at: usize) {
        let open = &mut self.open[at];
        let mut log = Appender {
            wal: &self.wal,
            xid: open.xid,
        };
        let before = self.wal.borrow().entries.len();
        open.transaction
            .log_locks(&self.session, Xid(open.xid), &mut log)
            .expect("logs");
        let wal = self.wal.borrow();
        open.rows = Some(wal.entries[before..].iter().flat_map(locks).collect());
        drop(wal);
        open.transaction.log(&self.session, &mut log).expect("logs");
        open.logged = true;
    }

    /// What a transaction has made of its rows.
    pub(super) fn effects(&self, open: &Open) -> Vec<Effect> {
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: open.xid,
        };
        let walks = self.session.tables();
        let mut effects = Vec::new();
        for place in &open.touched {
            let (key, id, row_id) = *place;
            let Some(walk) = walks.iter().find(|walk| walk.table().id() == id) else {
                continue;
            };
            assert_eq!(walk.table().key(), key);
            let body = match self.session.newest(&clock, walk.table(), RowId(row_id)) {
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
        for table in open.unlogged.drain(..) {
            wal.unlogged.push((lsn, table));
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
            let may_prepare = self.may_prepare(at);
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
            25..34 => {
                let key = self.relation();
                self.lock(at, key);
            }
            34..38 if !self.prepared.is_empty() => {
                let at = self.random.below(self.prepared.len() as u64) as usize;
                let commits = self.random.below(2) == 0;
                self.end_prepared(at, commits);
            }
            _ => self.write(at),
        }
    }

    /// A row that the transaction sees, if the table has any.
    fn live_row(&mut self, table: TableRef, me: u64) -> Option<(RowId, VersionRef)> {
        let end = table.row_ids_end().0;
        let from = self.random.below(end.max(1));
        let clock = TestClock {
            outcomes: &self.outcomes,
            me,
        };
        let mut row_ids = (from..end).chain(0..from).map(RowId);
        row_ids.find_map(|row_id| match self.session.newest(&clock, table, row_id) {
            Newest::Live(version) => Some((row_id, version)),
            _ => None,
        })
    }

    /// Locks some rows of a relation.
    pub(super) fn lock(&mut self, at: usize, key: RelationKey) {
        let me = self.open[at].xid;
        let strengths = [
            LockStrength::KeyShare,
            LockStrength::Share,
            LockStrength::NoKeyUpdate,
            LockStrength::Update,
        ];
        for _ in 0..1 + self.random.below(3) {
            let clock = TestClock {
                outcomes: &self.outcomes,
                me,
            };
            let table = self.session.find_table(key, &clock);
            let (Some(table), false) = (table, self.is_locked_by_others(at, key)) else {
                return;
            };
            let Some((row_id, seen)) = self.live_row(table, me) else {
                return;
            };
            let strength = strengths[self.random.below(4) as usize];
            let clock = TestClock {
                outcomes: &self.outcomes,
                me,
            };
            let (session, open) = (&self.session, &mut self.open[at]);
            open.used.insert(key);
            open.transaction
                .lock(session, &clock, table, row_id, seen, strength, Xid(me))
                .expect("memory");
        }
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
        self.session.resolve_given_up(&clock);
        let is_over = |xid: Xid| !clock.is_in_progress(xid);
        self.session.drop_ended_locks(is_over).expect("memory");
        let mut log = Appender {
            wal: &self.wal,
            xid: 0,
        };
        crate::transaction::log_and_free_pending(&self.session, &mut log, || ()).expect("memory");
    }

    fn relation(&mut self) -> RelationKey {
        RELATIONS[self.random.below(RELATIONS.len() as u64) as usize]
    }

    /// Creates, truncates or drops a table, or an index, if no other session uses the relation.
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
        let what = self.random.below(11);
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
            if key == UNLOGGED {
                open.unlogged.push(table.id());
            }
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
                if fresh.persistence() == Persistence::Unlogged {
                    open.unlogged.push(fresh.id());
                }
                open.storages.push((key, Some(fresh.id())));
            }
            10 if RELATIONS[..3].contains(&key) => switch(session, &clock, open, table),
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
        let dice = self.random.below(10);
        let row = self.live_row(table, me);
        let open = &mut self.open[at];
        open.cid += 1;
        let (xid, cid) = (Xid(open.xid), CommandId(open.cid));
        let clock = TestClock {
            outcomes: &self.outcomes,
            me,
        };
        let session = &self.session;
        let transaction = &mut open.transaction;
        let (row_id, version): (RowId, Option<VersionRef>) = if dice < 4 {
            let (row_id, version) = transaction
                .insert(session, table, &new, xid, cid)
                .expect("memory");
            (row_id, Some(version))
        } else {
            let Some((row_id, seen)) = row else {
                return;
            };
            let mut changed = seen.body().to_vec();
            if dice < 8 {
                changed[10] = changed[10].wrapping_add(1) % 4;
            } else {
                changed = new;
            }
            let written = if dice == 9 && cid.0.is_multiple_of(2) {
                transaction.delete_moved_away(session, &clock, table, row_id, seen, xid, cid)
            } else if dice == 9 {
                transaction.delete(session, &clock, table, row_id, seen, xid, cid)
            } else {
                transaction.update(session, &clock, table, row_id, seen, &changed, xid, cid)
            };
            match written.expect("memory") {
                Written::Done(_) if dice == 9 => (row_id, None),
                Written::Done(version) => (row_id, Some(version)),
                _ => return,
            }
        };
        open.touched.insert((key, table.id(), row_id.0));
        if let Some(version) = version {
            self.enter(at, (table, row_id, version));
        }
    }

    /// Enters a new state, or gives its transaction up.
    fn enter(&mut self, at: usize, (table, row_id, version): (TableRef, RowId, VersionRef)) {
        let open = &mut self.open[at];
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: open.xid,
        };
        let transaction = &mut open.transaction;
        let entered = transaction.enter(&self.session, &clock, table, row_id, version);
        if !matches!(entered.expect("enters"), Entered::Done) {
            self.abort(at);
        }
    }

    pub(super) fn end(&mut self, at: usize) {
        if self.open[at].logged {
            self.commit(at);
        } else {
            self.abort(at);
        }
    }

    pub(in crate::recovery) fn end_all(&mut self) {
        while !self.open.is_empty() {
            self.end(0);
        }
        while !self.prepared.is_empty() {
            let commits = self.random.below(2) == 0;
            self.end_prepared(0, commits);
            self.check_prepared();
        }
        self.sweep_ended();
    }

    /// What was prepared and rolled back counts until the sweeper comes by.
    pub(super) fn sweep_ended(&mut self) {
        let is_prepare = |(_, entry): &(u64, Entry)| matches!(entry, Entry::Prepare { .. });
        let has_prepared = self.wal.borrow().entries.iter().any(is_prepare);
        if has_prepared {
            self.sweep();
        }
    }
}

/// Gives a relation another storage with the same rows, which are logged from then on, or are not
/// any more.
fn switch(session: &Session, clock: &TestClock<'_>, open: &mut Open, table: TableRef) {
    let (key, xid) = (table.key(), Xid(open.xid));
    let persistence = match table.persistence() {
        Persistence::Logged => Persistence::Unlogged,
        _ => Persistence::Logged,
    };
    let made = open
        .transaction
        .create_table_as(session, key, persistence, xid)
        .expect("memory");
    for row_id in (0..table.row_ids_end().0).map(RowId) {
        if let Newest::Live(version) = session.newest(clock, table, row_id) {
            let body = version.body().to_vec();
            let inserted = open
                .transaction
                .insert(session, made, &body, xid, CommandId(open.cid));
            let (row_id, _) = inserted.expect("memory");
            open.touched.insert((key, made.id(), row_id.0));
        }
    }
    for index in session.indexes(table, clock) {
        let definition = IndexDefinition::from_bytes(index.definition_bytes()).expect("is whole");
        let built = open
            .transaction
            .create_index(session, clock, made, &definition, xid);
        assert!(matches!(built, Ok(Build::Done(_))));
    }
    open.transaction
        .drop_table(session, table, xid)
        .expect("memory");
    if persistence == Persistence::Unlogged {
        open.unlogged.push(made.id());
    }
    open.storages.push((key, Some(made.id())));
}
