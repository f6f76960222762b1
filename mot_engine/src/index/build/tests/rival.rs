//! Keys that are not unique here, and asked for.

use super::beside::{Beside, begin, filled, update, updating};
use super::*;
use crate::Rival;

/// Asks for a row's key.
fn rival(session: &Session, place: (TableRef, IndexRef), row_id: u64) -> Rival {
    let clock = Beside(Xid(9));
    session
        .find_rival(&clock, place, RowId(row_id))
        .expect("memory")
}

fn repeated(session: &Session, place: (TableRef, IndexRef)) -> Option<[RowId; 2]> {
    let found = session.find_duplicate(&Beside(Xid(9)), place, Xid(9), |_| false, || {});
    found.expect("memory")
}

#[test]
fn another_row_of_the_key_is_found_among_many() {
    with_table(0..ROWS, |session, table| {
        let mut work = Transaction::new();
        let index = begin(&mut work, session, table, false);
        filled(session, table, index);
        work.commit(session);
        let place = (table, index);
        assert_eq!(rival(session, place, 5), Rival::None);
        assert_eq!(repeated(session, place), None);
        // Entries that lead nowhere do not count.
        for row_id in 100..300 {
            update(session, table, RowId(row_id), &body(5), Xid(5));
            update(session, table, RowId(row_id), &body(row_id), Xid(6));
        }
        assert_eq!(rival(session, place, 5), Rival::None);
        assert_eq!(repeated(session, place), None);
        update(session, table, RowId(ROWS - 1), &body(5), Xid(7));
        assert_eq!(rival(session, place, 5), Rival::Live);
        assert_eq!(rival(session, place, ROWS - 1), Rival::Live);
        assert_eq!(rival(session, place, 6), Rival::None);
        assert_eq!(repeated(session, place), Some([RowId(5), RowId(ROWS - 1)]));
    });
}

/// Transaction 9 runs.
#[test]
fn who_has_not_ended_decides() {
    with_table([1, 2, 3].into_iter(), |session, table| {
        let mut work = Transaction::new();
        let index = begin(&mut work, session, table, false);
        filled(session, table, index);
        work.commit(session);
        let place = (table, index);
        let running = updating(session, table, RowId(1), &body(1), Xid(9));
        assert_eq!(rival(session, place, 0), Rival::Unfinished(Xid(9)));
        // The key that it gives up may come back.
        update(session, table, RowId(2), &body(2), Xid(7));
        assert_eq!(rival(session, place, 2), Rival::Unfinished(Xid(9)));
        let mut waits = 0;
        let found = session.find_duplicate(
            &Beside(Xid(9)),
            place,
            Xid(10),
            |xid| {
                assert_eq!(xid, Xid(9));
                waits += 1;
                waits < 3
            },
            || {},
        );
        assert!(matches!(found, Ok(None)), "{found:?}");
        assert_eq!(waits, 4, "each key is asked for, and passed over");
        let mut running = running;
        running.commit(session);
    });
}
