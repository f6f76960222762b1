//! A row's entries in all indexes of its table.
//!
//! One index after the other, each descent would wait alone for what it misses. So all keys are
//! encoded first, all trees are gone down side by side, and each key is then entered at the spot
//! where its way ended: the same descents, no more of them, with their misses overlapping. Between
//! finding a spot and using it others may change the tree, and so may we (judging a candidate
//! prunes rows): the tree notices (`mot_index`).
//!
//! Which index stands in the way of a row is told as if it went in the order of their oids
//! (`table/by_oid.rs`). The first one does, and a key that cannot be encoded is told of after all
//! indexes before its own.

use super::append_slot;
use super::enter::{EntryOutcome, enter_at};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{Slot, Xid};
use crate::key::KeyBuffer;
use crate::memory::Urgency;
use crate::row::VersionRef;
use crate::session::Session;
use crate::table::{EntryForm, IndexRef, TableRef};
use mot_index::Tree;

/// Keys of a row that are entered together; further indexes come afterwards.
pub(crate) const KEYS_TOGETHER: usize = 8;

/// What stands in the way of a row's entries.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum Obstacle {
    /// Wait for this transaction, then enter the row again. It may have the key of the index with
    /// this oid, which may be gone by then.
    Busy(Xid, u32),
    /// Another live row has the key of this index.
    Duplicate(IndexRef),
}

/// A key on its way in.
#[derive(Copy, Clone)]
struct Coming {
    index: IndexRef,
    form: EntryForm,
}

/// Makes sure of a version's entries, but for those that `below`, the state it was put upon, has as
/// well. With `clock`, keys of unique indexes that exist for the caller are entered only if no
/// other live row has them. The caller is pinned.
pub(crate) fn enter_row<C: Clock>(
    session: &Session,
    table: TableRef,
    slot: Slot,
    version: VersionRef,
    below: Option<VersionRef>,
    clock: Option<&C>,
) -> Result<Option<Obstacle>, EngineError> {
    debug_assert!(session.local.is_pinned());
    session.with_keys(|keys| {
        let [scratch, old_key, keys @ ..] = keys;
        let mut indexes = table.indexes_by_oid();
        loop {
            let mut coming = [None; KEYS_TOGETHER];
            let mut count = 0;
            let mut end = None;
            while count < KEYS_TOGETHER && end.is_none() {
                let Some(index) = indexes.next() else {
                    end = Some(Ok(()));
                    break;
                };
                // One that this transaction dropped need not take the row: the drop is not taken
                // back without it. Nor need one that another is building: that looks at all rows
                // again. Nor, where the log is replayed, one that the server may have had no more.
                let is_optional = !clock.is_some_and(|clock| index.is_asked(clock));
                match encode(
                    session,
                    index,
                    is_optional,
                    slot,
                    version,
                    below,
                    &mut keys[count],
                    old_key,
                ) {
                    Ok(Some(form)) => {
                        coming[count] = Some(Coming { index, form });
                        count += 1;
                    }
                    Ok(None) => {}
                    Err(error) => end = Some(Err(error)),
                }
            }
            let (coming, keys) = (&coming[..count], &keys[..count]);
            let obstacle = enter_together(session, table, slot, coming, keys, scratch, clock)?;
            if obstacle.is_some() {
                return Ok(obstacle);
            }
            if let Some(end) = end {
                return end.map(|()| None);
            }
        }
    })
}

/// As `enter_row`, in one index.
pub(crate) fn enter_row_in<C: Clock>(
    session: &Session,
    (table, index): (TableRef, IndexRef),
    slot: Slot,
    version: VersionRef,
    below: Option<VersionRef>,
    clock: &C,
) -> Result<Option<Obstacle>, EngineError> {
    debug_assert!(session.local.is_pinned());
    session.with_keys(|keys| {
        let [scratch, old_key, keys @ ..] = keys;
        let is_optional = !index.is_asked(clock);
        let key = &mut keys[0];
        let form = encode(
            session,
            index,
            is_optional,
            slot,
            version,
            below,
            key,
            old_key,
        )?;
        let Some(form) = form else {
            return Ok(None);
        };
        let coming = [Some(Coming { index, form })];
        enter_together(
            session,
            table,
            slot,
            &coming,
            &keys[..1],
            scratch,
            Some(clock),
        )
    })
}

/// Puts the entry's key into `key`; `None` if the version needs no entry of its own in the index.
#[allow(clippy::too_many_arguments)]
fn encode(
    session: &Session,
    index: IndexRef,
    is_optional: bool,
    slot: Slot,
    version: VersionRef,
    below: Option<VersionRef>,
    key: &mut KeyBuffer,
    old_key: &mut KeyBuffer,
) -> Result<Option<EntryForm>, EngineError> {
    let has_null = if is_optional {
        session.encode_key_if_any(index, version.body(), key)?.0
    } else {
        session.encode_key(index, version.body(), key)?.0
    };
    if key.is_empty() && !session.is_outside(index, version.body())? {
        index.leave_out();
    }
    if let Some(below) = below {
        session.encode_key_if_any(index, below.body(), old_key)?;
        if old_key.as_slice() == key.as_slice() {
            return Ok(None);
        }
    }
    if key.is_empty() {
        return Ok(None);
    }
    let form = index.form(has_null);
    if form == EntryForm::Suffixed {
        append_slot(key, slot)?;
    }
    Ok(Some(form))
}

/// Enters keys, each of an index.
fn enter_together<C: Clock>(
    session: &Session,
    table: TableRef,
    slot: Slot,
    coming: &[Option<Coming>],
    keys: &[KeyBuffer],
    scratch: &mut KeyBuffer,
    clock: Option<&C>,
) -> Result<Option<Obstacle>, EngineError> {
    let memory = &session.tree_memory(Urgency::Ordinary);
    let tree = |index: IndexRef| {
        // SAFETY: the caller is pinned for the whole call.
        unsafe { Tree::new(&index.storage().root, memory) }
    };
    let mut enter = |coming: &Coming, key: &KeyBuffer, spot| {
        let Coming { index, form } = *coming;
        let tree = tree(index);
        let clock = clock.filter(|clock| index.is_asked(*clock));
        // SAFETY: no spot, or it was found below for this key in this tree, and the caller is
        // pinned since.
        let outcome = unsafe {
            enter_at(
                session, table, index, form, &tree, spot, key, scratch, slot, clock,
            )
        };
        outcome.map(|outcome| match outcome {
            EntryOutcome::Done => None,
            EntryOutcome::Busy(xid) => Some(Obstacle::Busy(xid, index.relation_oid())),
            EntryOutcome::Duplicate => Some(Obstacle::Duplicate(index)),
        })
    };
    // One way down would overlap with nothing.
    if let ([Some(coming)], [key]) = (coming, keys) {
        return enter(coming, key, None);
    }
    let mut spots = [None; KEYS_TOGETHER];
    let coming = coming.iter().flatten().zip(keys);
    let pairs = coming
        .clone()
        .map(|(coming, key)| (tree(coming.index), key.as_slice()));
    Tree::find_spots(pairs, |number, spot| spots[number] = Some(spot));
    for ((coming, key), spot) in coming.zip(spots) {
        let obstacle = enter(coming, key, spot)?;
        if obstacle.is_some() {
            return Ok(obstacle);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::enter_key;
    use super::*;
    use crate::Transaction;
    use crate::all_committed::AllCommitted;
    use crate::engine::Engine;
    use crate::ids::{CommandId, FileKey, RelationKey, Xid};
    use crate::index::Build;
    use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind, encode_row};
    use crate::memory::{ArenaOptions, HugePages, Memory, Region};
    use crate::scan::{Direction, IndexScan, KeyRange};

    const ROWS: u32 = 4000;
    const COLUMNS: usize = 3;

    fn body(values: [u32; COLUMNS]) -> Vec<u8> {
        let mut body = vec![0; 6];
        body[0] = COLUMNS as u8;
        body[4] = 24;
        values
            .iter()
            .for_each(|value| body.extend_from_slice(&value.to_le_bytes()));
        body
    }

    fn definition(relation: u32, unique: bool, columns: &[u16]) -> IndexDefinition {
        let column = |attnum: &u16| KeyColumn {
            attnum: *attnum,
            kind: KeyKind::Int4,
            descending: false,
            nulls_first: false,
            nullable: false,
            collation: None,
        };
        let layout = AttributeLayout {
            len: 4,
            align: 4,
            by_value: true,
        };
        IndexDefinition {
            relation,
            file: FileKey::NONE,
            unique,
            nulls_not_distinct: false,
            columns: columns.iter().map(column).collect(),
            layout: vec![layout; COLUMNS],
            missing: Vec::new(),
            computed: None,
        }
    }

    /// More indexes than are entered together; one of the first and one of the last may refuse a
    /// row.
    fn definitions() -> Vec<IndexDefinition> {
        (0..KEYS_TOGETHER as u32 + 3)
            .map(|number| match number {
                2 => definition(number, true, &[1]),
                9 => definition(number, true, &[3]),
                _ if number % 2 == 0 => definition(number, false, &[2]),
                _ => definition(number, false, &[1, 2, 3]),
            })
            .collect()
    }

    /// What stands in the way, and at the index of which oid.
    fn enter_alone(session: &Session, table: TableRef, slot: Slot, new: VersionRef) -> Option<u32> {
        let _pin = session.local.pin();
        for index in table.all_indexes() {
            let outcome = session.with_keys(|[key, scratch, ..]| {
                let definition = session.definition(index).expect("decodes");
                let has_null = encode_row(definition, new.body(), key).expect("encodes").0;
                let clock = Some(&AllCommitted);
                enter_key(session, table, index, has_null, key, scratch, slot, clock)
            });
            match outcome.expect("memory") {
                EntryOutcome::Done => {}
                EntryOutcome::Duplicate => return Some(index.relation_oid()),
                EntryOutcome::Busy(xid) => panic!("{xid:?} has ended"),
            }
        }
        None
    }

    #[test]
    fn a_row_is_refused_by_the_index_of_the_lowest_oid() {
        let region = Region::create(64 << 20, HugePages::Off).expect("memory");
        // SAFETY: the region is fresh and outlives the engine.
        let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
        let session = &Engine::format(memory)
            .and_then(Engine::join)
            .expect("formats");
        let mut work = Transaction::new();
        let key = RelationKey::of_foreign_table(1, 1);
        let table = work.create_table(session, key, Xid(3)).expect("memory");
        let make = |work: &mut Transaction, relation: u32| {
            let definition = definition(relation, true, &[1]);
            let built = work.create_index(session, &AllCommitted, table, &definition, Xid(3));
            assert!(matches!(built, Ok(Build::Done(_))));
        };
        let by_oid = || -> Vec<u32> {
            let _pin = session.local.pin();
            let oids = table.indexes_by_oid().map(IndexRef::relation_oid);
            oids.collect()
        };
        // More than are entered together.
        let mut made = vec![];
        for relation in [50, 7, 30, 90, 20, 60, 80, 10, 70, 40, 1] {
            make(&mut work, relation);
            made.push(relation);
            made.sort_unstable();
            assert_eq!(by_oid(), made);
        }
        let mut put = || {
            let body = body([1, 2, 3]);
            let made = work.insert(session, table, &body, Xid(3), CommandId(0));
            let (slot, version) = made.expect("memory");
            enter_all(session, table, slot, version)
        };
        assert_eq!(put(), None);
        assert_eq!(put(), Some(1));
    }

    fn enter_all(session: &Session, table: TableRef, slot: Slot, new: VersionRef) -> Option<u32> {
        let _pin = session.local.pin();
        let clock = Some(&AllCommitted);
        match enter_row(session, table, slot, new, None, clock).expect("memory") {
            None => None,
            Some(Obstacle::Duplicate(index)) => Some(index.relation_oid()),
            Some(Obstacle::Busy(xid, _)) => panic!("{xid:?} has ended"),
        }
    }

    fn entries(session: &Session, table: TableRef) -> Vec<Vec<u64>> {
        let slots = |index: IndexRef| {
            let mut scan = IndexScan::new();
            scan.start(table, index, &KeyRange::new(), Direction::Forward);
            std::iter::from_fn(|| scan.next(session, &AllCommitted).expect("scans"))
                .map(|(slot, _)| slot.0)
                .collect()
        };
        table.all_indexes().map(slots).collect()
    }

    #[test]
    fn keys_entered_together_lie_where_they_lie_entered_alone() {
        let region = Region::create(64 << 20, HugePages::Off).expect("memory");
        // SAFETY: the region is fresh and outlives the engine.
        let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
        let session = &Engine::format(memory)
            .and_then(Engine::join)
            .expect("formats");
        let mut work = Transaction::new();
        let tables = [1, 2].map(|relation| {
            let key = RelationKey::of_foreign_table(1, relation);
            let table = work.create_table(session, key, Xid(3)).expect("memory");
            for definition in definitions() {
                let built = work.create_index(session, &AllCommitted, table, &definition, Xid(3));
                assert!(matches!(built, Ok(Build::Done(_))));
            }
            table
        });
        let mut refused = [0; 2];
        for number in 0..ROWS {
            // In no order, and now and then a value that was there.
            let first = number * 7919 % (ROWS - ROWS / 10);
            let last = number * 104_729 % (ROWS - ROWS / 4);
            let body = body([first, number % 7, last]);
            let obstacles = tables.map(|table| {
                let (slot, version) = work
                    .insert(session, table, &body, Xid(3), CommandId(0))
                    .expect("memory");
                let obstacle = if table == tables[0] {
                    enter_all(session, table, slot, version)
                } else {
                    enter_alone(session, table, slot, version)
                };
                if obstacle.is_some() {
                    work.retract(session);
                }
                obstacle
            });
            assert_eq!(obstacles[0], obstacles[1], "row {number}");
            match obstacles[0] {
                Some(2) => refused[0] += 1,
                Some(9) => refused[1] += 1,
                other => assert_eq!(other, None),
            }
        }
        assert!(refused.iter().all(|times| *times > 100), "{refused:?}");
        work.commit(session);
        assert_eq!(entries(session, tables[0]), entries(session, tables[1]));
        for table in tables {
            let checked = session.check(table, &AllCommitted, |problem| panic!("{problem:?}"));
            checked.expect("looks at all");
        }
    }
}
