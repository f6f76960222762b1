//! Tuple ids, which name a state by its row id and ordinal: each names what it was given with, for
//! as long as its holder may use it.

use super::Test;
use super::common::{self, Fate, Row, Snap, body, row};
use super::looks::OldSnap;
use super::transactions::Running;
use mot_engine::{Ordinal, RowId, StateAt, VersionRef};

/// A tuple id that a transaction has.
pub(super) struct Named {
    row_id: RowId,
    ordinal: Ordinal,
    /// What it names; `None` is the row's end.
    row: Option<Row>,
    /// Who made the state.
    maker: u64,
    /// The level of whose work the transaction has it: a change, or a lock. Of a scan's result,
    /// none.
    holder: Option<u64>,
    /// The state can neither be replaced nor be swept while the holder stands.
    stays: bool,
}

impl Running {
    /// The transaction made a state.
    pub(super) fn note_made(
        &mut self,
        row_id: RowId,
        version: VersionRef,
        row: Option<Row>,
        by: u64,
    ) {
        self.named.push(Named {
            row_id,
            ordinal: version.ordinal(),
            row,
            maker: version.xid().0,
            holder: Some(by),
            stays: true,
        });
    }

    /// The transaction replaced a state or locked it.
    pub(super) fn note_seen(&mut self, row_id: RowId, version: VersionRef, by: u64, stays: bool) {
        self.named.push(Named {
            row_id,
            ordinal: version.ordinal(),
            row: Some(row(version.body())),
            maker: version.xid().0,
            holder: Some(by),
            stays,
        });
    }
}

impl Test {
    /// A statement was given a row. Only REPEATABLE READ goes on seeing it.
    pub(super) fn note_picked(&mut self, t: usize, row_id: RowId, version: VersionRef) {
        let running = self.running[t].as_mut().unwrap();
        if running.first.is_some() {
            running.named.push(Named {
                row_id,
                ordinal: version.ordinal(),
                row: Some(row(version.body())),
                maker: version.xid().0,
                holder: None,
                stays: true,
            });
        }
    }

    /// A new state's body as a caller may give it: as copied from a state with another ordinal.
    pub(super) fn given(new: Row) -> Vec<u8> {
        let mut body = body(new);
        body[1] |= 0xE0;
        body[2] |= 0xF0;
        body[3] = new.b as u8;
        body
    }

    /// A state just put on its row has the ordinal that follows what lies below.
    pub(super) fn assert_counted(&self, row_id: RowId, version: VersionRef) {
        let _pin = self.session.memory().pin();
        let mut chain = std::iter::successors(version.next(), VersionRef::next);
        let below = chain.find(|below| !below.is_lock());
        let expected = below.map_or(Ordinal(0), |below| below.ordinal().next());
        assert_eq!(version.ordinal(), expected, "{row_id:?}");
    }

    /// What a snapshot sees is what its tuple id names to it.
    pub(super) fn assert_named(&self, row_id: RowId, version: VersionRef, snap: &Snap) {
        let clock = common::reader(&self.world);
        let ordinal = version.ordinal();
        let named = self
            .session
            .state_at(&clock, self.table, row_id, ordinal, None, &[Some(snap)]);
        assert_eq!(named, StateAt::One(version), "{row_id:?}");
    }

    /// Every tuple id that the transaction has names what it was given with.
    pub(super) fn compare_named(&self, running: &Running) {
        if running.decided.is_some() {
            return;
        }
        let old = running.first.as_ref().map(|first| OldSnap {
            first,
            cid: running.cid + 1,
        });
        for named in &running.named {
            let holds = named
                .holder
                .is_none_or(|by| self.world.fate(by) == Fate::Running);
            if !holds || self.world.fate(named.maker) == Fate::Aborted {
                continue;
            }
            let _pin = self.session.memory().pin();
            let (clock, table) = (&running.me, self.table);
            let (row_id, ordinal) = (named.row_id, named.ordinal);
            let without =
                self.session
                    .state_at(clock, table, row_id, ordinal, None, &[None::<&Snap>]);
            let found = match (named.holder, &old) {
                // What a scan gave is asked for with the scan's snapshot.
                (None, Some(old)) => {
                    self.session
                        .state_at(clock, table, row_id, ordinal, None, &[Some(old)])
                }
                _ => without,
            };
            match found {
                StateAt::One(version) => assert_eq!(Some(row(version.body())), named.row),
                StateAt::None => assert!(named.row.is_none() || !named.stays, "{row_id:?}"),
                StateAt::Overtaken => {
                    panic!("{row_id:?} was not changed so often")
                }
            }
        }
    }
}
