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
        open.transaction.log(&self.session, &mut log).expect("logs");
        open.logged = true;
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
        let open = &mut self.open[at];
        open.ended = true;
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: open.xid,
        };
        let mut effects = Vec::new();
        for place in &open.touched {
            let (key, id, slot) = *place;
            let walks = self.session.tables();
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
            match dice {
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
            _ => self.write(at),
        }
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
                && (open.locked == Some(key) || open.touched.iter().any(|(used, ..)| *used == key))
        });
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
        let foreign = self
            .open
            .iter()
            .enumerate()
            .any(|(other, open)| other != at && open.locked == Some(key));
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
    }
}
