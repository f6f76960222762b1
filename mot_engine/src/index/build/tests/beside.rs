//! An index that is filled beside writers: the work grows with the rows and their versions,
//! whatever keys they share, and states that are left out are remembered.

use super::*;
use crate::Entered;
use crate::VersionRef;

const CID: CommandId = CommandId(0);
/// Steps for a row, or a version: a few places of a posting block, and the levels of a sort.
#[cfg(debug_assertions)]
const STEPS: u64 = 100;

/// A session that asks while one transaction runs; all others have committed.
pub(super) struct Beside(pub(super) Xid);

impl Clock for Beside {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        xid == self.0
    }
    fn did_commit(&self, _xid: Xid) -> bool {
        true
    }
}

pub(super) fn begin(
    work: &mut Transaction,
    session: &Session,
    table: TableRef,
    unique: bool,
) -> IndexRef {
    work.begin_index(session, table, &definition(10, unique), Xid(4))
        .expect("memory")
}

fn fill(session: &Session, table: TableRef, index: IndexRef) -> Result<u64, EngineError> {
    session.fill_index(&Beside(Xid(4)), table, index, || {})
}

pub(super) fn filled(session: &Session, table: TableRef, index: IndexRef) -> u64 {
    fill(session, table, index).expect("no key is too long")
}

fn current(session: &Session, table: TableRef, row_id: RowId) -> VersionRef {
    match session.newest(&AllCommitted, table, row_id) {
        Newest::Live(version) => version,
        other => panic!("{other:?}"),
    }
}

/// A text of this length.
fn long_body(length: usize) -> Vec<u8> {
    let mut body = vec![0; 6];
    body[0] = 1;
    body[4] = 24;
    body.extend_from_slice(&((length as u32 + 4) << 2).to_le_bytes());
    body.resize(body.len() + length, b'x');
    body
}

/// Puts a state on a row, as a writer of transaction `xid` beside the build of transaction 4.
pub(super) fn update(session: &Session, table: TableRef, row_id: RowId, body: &[u8], xid: Xid) {
    updating(session, table, row_id, body, xid).commit(session);
}

/// The same, not committed.
pub(super) fn updating(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    body: &[u8],
    xid: Xid,
) -> Transaction {
    let clock = Beside(Xid(4));
    let mut work = Transaction::new();
    let seen = current(session, table, row_id);
    let written = work.update(session, &clock, table, row_id, seen, body, xid, CID);
    let Ok(Written::Done(version)) = written else {
        panic!("{written:?}")
    };
    let entered = work.enter(session, &clock, table, row_id, version);
    assert!(matches!(entered, Ok(Entered::Done)), "{entered:?}");
    work
}

#[cfg(debug_assertions)]
fn steps(work: impl FnOnce()) -> u64 {
    let before = crate::steps::steps_taken();
    work();
    crate::steps::steps_taken() - before
}

#[cfg(debug_assertions)]
#[test]
fn a_key_that_all_rows_share_is_filled_row_by_row() {
    for rows in [ROWS, 4 * ROWS] {
        with_table((0..rows).map(|_| 7), |session, table| {
            let mut work = Transaction::new();
            let index = begin(&mut work, session, table, true);
            for missing in [rows, 0] {
                let taken = steps(|| assert_eq!(filled(session, table, index), missing));
                assert!(taken < rows * STEPS, "{taken} steps for {rows} rows");
            }
            let taken = steps(|| {
                let place = (table, index);
                let found = session.find_duplicate(&AllCommitted, place, Xid(5), |_| true, || {});
                assert!(matches!(found, Ok(Some(_))), "{found:?}");
            });
            assert!(taken < rows * STEPS, "{taken} steps for {rows} rows");
            work.commit(session);
        });
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_row_with_many_keys_is_filled_version_by_version() {
    for versions in [ROWS / 3, ROWS] {
        with_table(0..1, |session, table| {
            for number in 1..versions {
                update(session, table, RowId(0), &body(number), Xid(5 + number));
            }
            let mut work = Transaction::new();
            let index = begin(&mut work, session, table, false);
            for missing in [versions, 0] {
                let taken = steps(|| assert_eq!(filled(session, table, index), missing));
                assert!(
                    taken < versions * STEPS,
                    "{taken} steps for {versions} versions"
                );
            }
            work.commit(session);
        });
    }
}

/// A writer may leave a long key out while the index is built. It is refused while it is the row's,
/// and remembered when another state has replaced it.
#[test]
fn a_state_that_is_left_out_is_remembered() {
    for length in [KEY_BYTES_MAX, 20] {
        let is_long = length == KEY_BYTES_MAX;
        with_table(0..2, |session, table| {
            let mut work = Transaction::new();
            let index = begin(&mut work, session, table, false);
            assert_eq!(filled(session, table, index), 2);
            update(session, table, RowId(1), &long_body(length), Xid(5));
            assert_eq!(index.has_left_out(), is_long);
            let refused = fill(session, table, index);
            assert_eq!(
                matches!(refused, Err(EngineError::KeyTooLong { .. })),
                is_long
            );
            update(session, table, RowId(1), &body(3), Xid(6));
            assert_eq!(filled(session, table, index), 0);
            assert_eq!(index.has_left_out(), is_long);
            work.commit(session);
        });
    }
}

/// As long as a snapshot may see it.
#[test]
fn a_state_that_the_fill_passes_over_is_remembered() {
    for (horizon, is_seen) in [(Xid(5), true), (Xid(7), false)] {
        with_table(0..1, |session, table| {
            update(session, table, RowId(0), &long_body(KEY_BYTES_MAX), Xid(5));
            update(session, table, RowId(0), &body(3), Xid(6));
            session.engine().raise_horizon(horizon);
            let mut work = Transaction::new();
            let index = begin(&mut work, session, table, false);
            assert_eq!(filled(session, table, index), 2);
            assert_eq!(index.has_left_out(), is_seen);
            work.commit(session);
        });
    }
}
