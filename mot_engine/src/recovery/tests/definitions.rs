//! Indexes of other times: dropped, made again, or made when a row had gone.

use super::*;

/// An index is dropped and made again and again, while no reclaimer runs. On the server each drop
/// gives a place back at its end.
#[test]
fn dropped_indexes_give_their_places_back() {
    let mut world = World::new(1);
    let key = RELATIONS[0];
    for number in 0..=3 * INDEXES_PER_TABLE_MAX {
        let at = world.begin();
        world.open[at].locked = Some(key);
        let clock = TestClock {
            outcomes: &world.outcomes,
            me: world.open[at].xid,
        };
        let (session, open) = (&world.session, &mut world.open[at]);
        let xid = Xid(open.xid);
        let table = match session.find_table(key, &clock) {
            Some(table) => table,
            None => {
                let made = open.transaction.create_table(session, key, xid);
                let table = made.expect("memory");
                open.storages.push((key, Some(table.id())));
                table
            }
        };
        if number % 2 == 0 {
            let definition = index(1001, 2, false);
            let built = open
                .transaction
                .create_index(session, &clock, table, &definition, xid);
            assert!(matches!(built, Ok(Build::Done(_))));
        } else {
            let dropped = open
                .transaction
                .drop_index(session, &clock, table, 1001, xid);
            assert!(dropped.expect("memory"));
        }
        world.log(at);
        // Some drops are rolled back, when they are logged already.
        if number % 10 == 1 {
            world.abort(at);
            let again = world.begin();
            let (session, open) = (&world.session, &mut world.open[again]);
            let clock = TestClock {
                outcomes: &world.outcomes,
                me: open.xid,
            };
            let dropped = open
                .transaction
                .drop_index(session, &clock, table, 1001, Xid(open.xid));
            assert!(dropped.expect("memory"));
            world.log(again);
            world.commit(again);
        } else {
            world.commit(at);
        }
    }
    let wal = world.wal.borrow().clone();
    let outcomes = Outcomes::default();
    let clock = TestClock {
        outcomes: &outcomes,
        me: 0,
    };
    let (_region, engine) = arena();
    let session = engine.join().expect("joins");
    engine.set_state(State::Replaying);
    let mut replayer = Replayer::new(1);
    let mut resolved = 0;
    for (lsn, entry) in &wal.entries {
        let (xid, bytes) = match entry {
            Entry::Record { xid, bytes } => (Xid(*xid), bytes),
            Entry::Prepare { .. } | Entry::Abort { .. } => continue,
            Entry::Commit { xid } => {
                outcomes.committed.borrow_mut().insert(*xid);
                continue;
            }
        };
        let mut applied = replayer.apply(&session, bytes, Lsn(*lsn), xid);
        if let Err(EngineError::TooManyIndexes { .. }) = applied {
            resolved += resolve_gone_indexes(&session, &clock);
            applied = replayer.apply(&session, bytes, Lsn(*lsn), xid);
        }
        applied.expect("there was a place");
    }
    assert!(resolved > 0, "there were places for all");
    finish(&session, &clock, 1).expect("finishes");
    engine.set_state(State::Ready);
    let table = session.find_table(key, &clock).expect("exists");
    let ids = |session: &Session, table, clock: &TestClock<'_>| -> Vec<IndexId> {
        let indexes = session.indexes(table, clock);
        indexes.into_iter().map(|index| index.id()).collect()
    };
    let before = TestClock {
        outcomes: &world.outcomes,
        me: 0,
    };
    let original = world.session.find_table(key, &before).expect("exists");
    assert_eq!(
        ids(&session, table, &clock),
        ids(&world.session, original, &before)
    );
}

/// Indexes of one column of the first relation's table, made by an open transaction.
fn make_indexes(session: &Session, clock: &TestClock<'_>, open: &mut Open, relations: &[u32]) {
    let table = session.find_table(RELATIONS[0], clock).expect("exists");
    for relation in relations {
        let definition = index(*relation, 2, false);
        let xid = Xid(open.xid);
        let built = open
            .transaction
            .create_index(session, clock, table, &definition, xid);
        assert!(matches!(built, Ok(Build::Done(_))));
    }
}

/// The same of indexes that were logged, and whose making was rolled back then: the end of that
/// gave their places back. What the transaction has made that is being replayed is not among them.
#[test]
fn indexes_rolled_back_give_their_places_back() {
    let mut world = World::new(1);
    let key = RELATIONS[0];
    world.run(|session, clock, open| {
        let made = open.transaction.create_table(session, key, Xid(open.xid));
        open.storages.push((key, Some(made.expect("memory").id())));
        make_indexes(session, clock, open, &[1001]);
    });
    // Where the log was when a transaction was rolled back.
    let mut rolled_back = Vec::new();
    for _ in 0..INDEXES_PER_TABLE_MAX {
        let at = world.begin();
        let xid = world.open[at].xid;
        let clock = TestClock {
            outcomes: &world.outcomes,
            me: xid,
        };
        make_indexes(&world.session, &clock, &mut world.open[at], &[1002, 1003]);
        world.log(at);
        world.abort(at);
        rolled_back.push((world.wal.borrow().end, xid));
    }
    world.run(|session, clock, open| make_indexes(session, clock, open, &[1004, 1005]));

    let wal = world.wal.borrow().clone();
    let outcomes = Outcomes::default();
    let clock = TestClock {
        outcomes: &outcomes,
        me: 0,
    };
    let (_region, engine) = arena();
    let session = engine.join().expect("joins");
    engine.set_state(State::Replaying);
    let mut replayer = Replayer::new(1);
    // With one place taken and two for each of these, the second index of some transaction finds
    // none.
    let mut resolved = 0;
    for (lsn, entry) in &wal.entries {
        for (_, xid) in rolled_back.iter().filter(|(end, _)| end < lsn) {
            outcomes.running.borrow_mut().remove(xid);
        }
        let (xid, bytes) = match entry {
            Entry::Record { xid, bytes } => (Xid(*xid), bytes),
            Entry::Prepare { .. } | Entry::Abort { .. } => continue,
            Entry::Commit { xid } => {
                outcomes.running.borrow_mut().remove(xid);
                outcomes.committed.borrow_mut().insert(*xid);
                continue;
            }
        };
        outcomes.running.borrow_mut().insert(xid.0);
        let mut applied = replayer.apply(&session, bytes, Lsn(*lsn), xid);
        if let Err(EngineError::TooManyIndexes { .. }) = applied {
            resolved += resolve_gone_indexes(&session, &clock);
            applied = replayer.apply(&session, bytes, Lsn(*lsn), xid);
        }
        applied.expect("there was a place");
    }
    assert!(resolved > 0, "there were places for all");
    finish(&session, &clock, 1).expect("finishes");
    engine.set_state(State::Ready);
    let table = session.find_table(key, &clock).expect("exists");
    let mut relations: Vec<u32> = session
        .indexes(table, &clock)
        .into_iter()
        .map(|index| index.relation_oid())
        .collect();
    relations.sort_unstable();
    assert_eq!(relations, [1001, 1004, 1005]);
}

/// Tables and indexes that came and went between a checkpoint's redo position and the moment at
/// which it copied definitions are not made again: there would be no place for the one, and no
/// memory for the other, beside what came after them.
#[test]
fn what_was_gone_when_the_checkpoint_looked_is_not_made_again() {
    const GONE: u32 = 5000;
    let mut world = World::new(1);
    let disk = SimulatedDisk::new(1);
    let [key, other, ..] = RELATIONS;
    let relations: Vec<u32> = (1001..1000 + INDEXES_PER_TABLE_MAX as u32).collect();
    world.run(|session, clock, open| {
        let made = open.transaction.create_table(session, key, Xid(open.xid));
        open.storages.push((key, Some(made.expect("memory").id())));
        make_indexes(session, clock, open, &relations);
    });
    let redo = Lsn(world.wal.borrow().end);
    world.run(|session, clock, open| {
        make_indexes(session, clock, open, &[GONE]);
        let made = open.transaction.create_table(session, other, Xid(open.xid));
        open.storages
            .push((other, Some(made.expect("memory").id())));
    });
    world.run(|session, clock, open| {
        let xid = Xid(open.xid);
        let table = session.find_table(key, clock).expect("exists");
        let dropped = open
            .transaction
            .drop_index(session, clock, table, GONE, xid);
        assert!(dropped.expect("memory"));
        let table = session.find_table(other, clock).expect("exists");
        open.transaction
            .drop_table(session, table, xid)
            .expect("memory");
        open.storages.push((other, None));
    });
    world.sweep();
    world.run(|session, clock, open| make_indexes(session, clock, open, &[6000]));
    let wal = Rc::clone(&world.wal);
    let flush = &mut |_| Ok(Lsn(wal.borrow().end));
    world
        .checkpoint_from(redo, &disk, 0, flush)
        .expect("writes");
    // And what comes behind that is made.
    world.run(|session, _, open| {
        let made = open.transaction.create_table(session, other, Xid(open.xid));
        open.storages
            .push((other, Some(made.expect("memory").id())));
    });

    let (_region, engine) = arena();
    let manifest = newest(&disk, SYSTEM, |_, _| true).expect("reads");
    load(engine, &disk, &manifest.expect("is there"), 1).expect("loads");
    let session = engine.join().expect("joins");
    engine.set_state(State::Replaying);
    let mut replayer = Replayer::new(1);
    for (lsn, entry) in &wal.borrow().entries {
        if let Entry::Record { xid, bytes } = entry
            && *lsn > redo.0
        {
            let applied = replayer.apply(&session, bytes, Lsn(*lsn), Xid(*xid));
            applied.expect("there is a place");
            assert!(session.tables().len() <= 2, "a table that was gone");
        }
    }
    let clock = TestClock {
        outcomes: &world.outcomes,
        me: 0,
    };
    finish(&session, &clock, 1).expect("finishes");
    engine.set_state(State::Ready);
    assert_eq!(session.tables().len(), 2);
    let table = session.find_table(key, &clock).expect("exists");
    let mut found: Vec<u32> = session
        .indexes(table, &clock)
        .into_iter()
        .map(|index| index.relation_oid())
        .collect();
    found.sort_unstable();
    let expected: Vec<u32> = relations.into_iter().chain([6000]).collect();
    assert_eq!(found, expected);
}

impl World {
    /// A transaction that is logged and commits.
    fn run(&mut self, work: impl FnOnce(&Session, &TestClock<'_>, &mut Open)) {
        let at = self.begin();
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: self.open[at].xid,
        };
        work(&self.session, &clock, &mut self.open[at]);
        self.log(at);
        self.commit(at);
    }
}

/// (text), with a long header.
fn text_image(bytes: usize) -> Vec<u8> {
    let mut body = vec![0; 6];
    body[0] = 1;
    body[4] = 24;
    body.extend_from_slice(&((bytes as u32 + 4) << 2).to_le_bytes());
    body.resize(body.len() + bytes, b'x');
    body
}

/// A state whose key is too long for an index is none of its business if it was gone for all
/// before the index was made, or came when the index was dropped. Replay and a start may have both,
/// and one that makes an index before the sweeper has come by has the former.
#[test]
fn keys_too_long_for_an_index_of_another_time() {
    for (has_checkpoints, is_swept) in [(false, true), (true, true), (false, false), (true, false)]
    {
        let key = RELATIONS[0];
        let (long, short) = (text_image(KEY_BYTES_MAX + 1), text_image(10));
        let mut by_text = index(1000, 1, false);
        by_text.columns[0].kind = KeyKind::Text;
        by_text.layout[0] = AttributeLayout {
            len: -1,
            align: 4,
            by_value: false,
        };
        let insert = |session: &Session, clock: &TestClock<'_>, open: &mut Open, body: &[u8]| {
            let table = session.find_table(key, clock).expect("exists");
            let (xid, cid) = (Xid(open.xid), CommandId(1));
            let inserted = open.transaction.insert(session, table, body, xid, cid);
            let (id, version) = inserted.expect("memory");
            open.touched.insert((key, table.id(), id.0));
            let entered = open.transaction.enter(session, clock, table, id, version);
            assert_eq!(entered.expect("enters"), Entered::Done);
        };
        let update = |session: &Session, clock: &TestClock<'_>, open: &mut Open, body: &[u8]| {
            let table = session.find_table(key, clock).expect("exists");
            let (xid, cid, id) = (Xid(open.xid), CommandId(2), RowId(0));
            let Newest::Live(seen) = session.newest(clock, table, id) else {
                panic!("no row");
            };
            let updated = open
                .transaction
                .update(session, clock, table, id, seen, body, xid, cid);
            let Ok(Written::Done(version)) = updated else {
                panic!("{updated:?}");
            };
            open.touched.insert((key, table.id(), id.0));
            let entered = open.transaction.enter(session, clock, table, id, version);
            assert_eq!(entered.expect("enters"), Entered::Done);
        };
        let mut world = World::new(1);
        let disk = SimulatedDisk::new(1);
        world.run(|session, _, open| {
            let made = open.transaction.create_table(session, key, Xid(open.xid));
            open.storages.push((key, Some(made.expect("memory").id())));
        });
        world.run(|session, clock, open| insert(session, clock, open, &long));
        // The checkpoint cannot tell that no snapshot sees the long state any more.
        let oldest = world.begin();
        world.run(|session, clock, open| update(session, clock, open, &short));
        if has_checkpoints {
            world.checkpoint(&disk, 0);
        }
        world.abort(oldest);
        if is_swept {
            world.sweep();
        }
        world.run(|session, clock, open| {
            let table = session.find_table(key, clock).expect("exists");
            let xid = Xid(open.xid);
            let built = open
                .transaction
                .create_index(session, clock, table, &by_text, xid);
            // No session learns that the sweeper need not come by, so the index is kept from those
            // that would see the long state.
            let is_beside = matches!(built, Ok(Build::DoneBesideOlder(_)));
            assert!(is_beside != is_swept && built.is_ok(), "{built:?}");
        });
        if has_checkpoints {
            world.checkpoint(&disk, 0);
        }
        let drop_index = |session: &Session, clock: &TestClock<'_>, open: &mut Open| {
            let table = session.find_table(key, clock).expect("exists");
            let xid = Xid(open.xid);
            let dropped = open
                .transaction
                .drop_index(session, clock, table, 1000, xid);
            assert!(dropped.expect("memory"));
        };
        // Taken back: the index minds again what comes then, and has not got what came meanwhile.
        let at = world.begin();
        let clock = TestClock {
            outcomes: &world.outcomes,
            me: world.open[at].xid,
        };
        drop_index(&world.session, &clock, &mut world.open[at]);
        insert(&world.session, &clock, &mut world.open[at], &long);
        update(&world.session, &clock, &mut world.open[at], &long);
        world.log(at);
        world.abort(at);
        world.check();
        if has_checkpoints {
            world.checkpoint(&disk, 0);
        }
        world.run(|session, clock, open| {
            drop_index(session, clock, open);
            insert(session, clock, open, &long);
        });
        world.run(|session, clock, open| insert(session, clock, open, &long));
        world.run(|session, clock, open| update(session, clock, open, &long));
        if has_checkpoints {
            world.checkpoint(&disk, 0);
        }
        world.check();
        let at = world.wal.borrow().end;
        world.recover(&disk.restart(), at).check();
    }
}

/// What a standby's old snapshots see is gone on the server that made the index, to which they are
/// unknown: replay meets it, and keeps the index from them. There is nothing to keep it from where
/// every state has a key.
#[test]
fn an_index_over_states_that_only_a_standby_has() {
    const INDEX: u32 = 1000;
    let key = RELATIONS[0];
    for (length, is_kept) in [(KEY_BYTES_MAX + 1, true), (20, false)] {
        let mut world = World::new(1);
        let mut by_text = index(INDEX, 1, false);
        by_text.columns[0].kind = KeyKind::Text;
        by_text.layout[0] = AttributeLayout {
            len: -1,
            align: 4,
            by_value: false,
        };
        world.run(|session, _, open| {
            let made = open.transaction.create_table(session, key, Xid(open.xid));
            open.storages.push((key, Some(made.expect("memory").id())));
        });
        let (long, short) = (text_image(length), text_image(10));
        world.run(|session, clock, open| {
            let table = session.find_table(key, clock).expect("exists");
            let (xid, cid) = (Xid(open.xid), CommandId(1));
            let inserted = open.transaction.insert(session, table, &long, xid, cid);
            let (id, _) = inserted.expect("memory");
            open.touched.insert((key, table.id(), id.0));
        });
        world.run(|session, clock, open| {
            let table = session.find_table(key, clock).expect("exists");
            let (xid, cid, id) = (Xid(open.xid), CommandId(1), RowId(0));
            let Newest::Live(seen) = session.newest(clock, table, id) else {
                panic!("no row");
            };
            let updated = open
                .transaction
                .update(session, clock, table, id, seen, &short, xid, cid);
            assert!(matches!(updated, Ok(Written::Done(_))));
            open.touched.insert((key, table.id(), id.0));
        });
        world.sweep();
        let mut maker = 0;
        world.run(|session, clock, open| {
            maker = open.xid;
            let table = session.find_table(key, clock).expect("exists");
            let built = open
                .transaction
                .create_index(session, clock, table, &by_text, Xid(maker));
            assert!(matches!(built, Ok(Build::Done(_))));
            assert_eq!(session.indexes_kept_from_older(table), []);
        });
        for has_readers in [true, false] {
            let (_region, engine) = arena();
            let session = engine.join().expect("joins");
            engine.set_state(State::Replaying);
            let mut replayer = Replayer::new(1);
            replayer.set_has_readers(has_readers);
            for (lsn, entry) in &world.wal.borrow().entries {
                if let Entry::Record { xid, bytes } = entry {
                    let applied = replayer.apply(&session, bytes, Lsn(*lsn), Xid(*xid));
                    applied.expect("applies");
                }
            }
            let kept = session.indexes_kept_from_older(session.tables()[0].table());
            let expected: &[(u32, Xid)] = &[(INDEX, Xid(maker))];
            assert_eq!(kept, if is_kept { expected } else { &[] });
        }
    }
}

/// A log that makes and drops tables, as jobs do that make one each time: how many there are is no
/// matter to the next one.
#[cfg(debug_assertions)]
#[test]
fn many_tables_are_replayed_one_by_one() {
    use crate::steps::steps_taken;
    const TABLES: u32 = 300;
    let mut world = World::new(1);
    let key = |relation| RelationKey::of_file(1, 0, relation);
    for relation in 0..TABLES {
        world.run(|session, clock, open| {
            let xid = Xid(open.xid);
            let made = open.transaction.create_table(session, key(relation), xid);
            let table = made.expect("memory");
            if relation % 2 == 1 {
                let last = session
                    .find_table(key(relation - 1), clock)
                    .expect("exists");
                open.transaction
                    .drop_table(session, last, xid)
                    .expect("memory");
            }
            open.storages.push((key(relation), Some(table.id())));
        });
    }
    let (_region, engine) = arena();
    let session = engine.join().expect("joins");
    engine.set_state(State::Replaying);
    let mut replayer = Replayer::new(1);
    let mut most = 0;
    for (lsn, entry) in &world.wal.borrow().entries {
        if let Entry::Record { xid, bytes } = entry {
            let before = steps_taken();
            let applied = replayer.apply(&session, bytes, Lsn(*lsn), Xid(*xid));
            applied.expect("applies");
            most = most.max(steps_taken() - before);
        }
    }
    assert!(most < 50, "{most} steps for one record");
    assert_eq!(session.tables().len(), TABLES as usize);
}
