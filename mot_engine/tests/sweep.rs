//! What a sweep must not forget, and what it must not give away.

mod common;

use common::{Asked, Me, Row, World, body};
use mot_engine::key::{AttributeLayout, IndexDefinition, KeyKind};
#[cfg(debug_assertions)]
use mot_engine::pause::{Point, set_hook};
use mot_engine::{CommandId, Entered, RowId, Session, Sweep, TableRef, Transaction, Written, Xid};
use std::cell::Cell;

struct Place {
    session: Session,
    world: World,
    table: TableRef,
}

impl Place {
    /// An empty table with an index.
    fn new(session: Session, definition: &IndexDefinition) -> Place {
        let world = World::new();
        let table = common::table(&session, &world, std::slice::from_ref(definition));
        Place {
            session,
            world,
            table,
        }
    }

    /// A transaction of its own.
    fn transact<T>(&self, work: impl FnOnce(&mut Transaction, &Me, Xid) -> T) -> T {
        common::transact(&self.session, &self.world, work)
    }

    fn add(&self, row: Row) -> RowId {
        self.add_image(&body(row))
    }

    fn add_image(&self, new: &[u8]) -> RowId {
        self.transact(|work, me, xid| {
            let (row_id, version) = work
                .insert(&self.session, self.table, new, xid, CommandId(1))
                .unwrap();
            let entered = work.enter(&self.session, me, self.table, row_id, version);
            assert_eq!(entered.unwrap(), Entered::Done);
            row_id
        })
    }

    fn change(&self, row_id: RowId, row: Row) {
        self.transact(|work, me, xid| {
            let (session, table) = (&self.session, self.table);
            let seen = session.visible(table, row_id, &me.snapshot(1)).unwrap();
            let (new, cid) = (body(row), CommandId(1));
            let written = work.update(session, me, table, row_id, seen, &new, xid, cid);
            let Ok(Written::Done(version)) = written else {
                panic!("{written:?}")
            };
            let entered = work.enter(session, me, table, row_id, version);
            assert_eq!(entered.unwrap(), Entered::Done);
        });
    }

    fn delete(&self, row_id: RowId) {
        self.transact(|work, me, xid| {
            let (session, table) = (&self.session, self.table);
            let seen = session.visible(table, row_id, &me.snapshot(1)).unwrap();
            let cid = CommandId(1);
            let written = work.delete(session, me, table, row_id, seen, xid, cid);
            assert!(matches!(written, Ok(Written::Done(_))), "{written:?}");
        });
    }

    fn sweep(&self, all: bool, pause: impl FnMut()) -> Sweep {
        let engine = self.session.engine();
        engine.raise_horizon(self.world.horizon());
        let clock = common::reader(&self.world);
        self.session.sweep(&clock, self.table, all, pause)
    }

    fn versions(&self) -> u64 {
        common::check(&self.session, self.table, &common::reader(&self.world)).versions
    }
}

fn on_a() -> IndexDefinition {
    common::definition(101, true, &[(1, false)])
}

fn numbered(a: i32, b: i32) -> Row {
    Row { a, b, c: None }
}

/// Allocations of this thread fail while it is set.
mod no_memory {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;

    thread_local! {
        static REFUSED: Cell<bool> = const { Cell::new(false) };
    }

    struct Refusing;

    #[global_allocator]
    static ALLOCATOR: Refusing = Refusing;

    // SAFETY: the system's allocator, which may refuse.
    unsafe impl GlobalAlloc for Refusing {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            match REFUSED.get() {
                true => std::ptr::null_mut(),
                // SAFETY: the caller's.
                false => unsafe { System.alloc(layout) },
            }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: the caller's.
            unsafe { System.dealloc(block, layout) }
        }
    }

    pub fn refuse(refused: bool) {
        REFUSED.set(refused);
    }
}

/// A sweep notes which rows have nothing to do, and passes them over. What is put on them later is
/// swept all the same.
#[test]
fn rows_found_quiescent_are_swept_again_after_a_change() {
    const ROWS: i32 = 100;
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine.join().unwrap(), &on_a());
    let mut row_ids: Vec<RowId> = (0..ROWS).map(|a| place.add(numbered(a, 0))).collect();
    for round in 1..=4 {
        assert_eq!(place.sweep(true, || {}).versions_removed, 0);
        let changed: Vec<usize> = (0..row_ids.len()).step_by(round).collect();
        for at in &changed {
            place.change(row_ids[*at], numbered(*at as i32 + round as i32 * ROWS, 1));
        }
        // A change that is taken back leaves the state below on top, which was quiescent before.
        let me = place.world.begin();
        let mut work = Transaction::new();
        let (session, table, row_id) = (&place.session, place.table, row_ids[1]);
        let seen = session.visible(table, row_id, &me.snapshot(1)).unwrap();
        let new = body(numbered(-1, 0));
        let written = work.update(
            session,
            &me,
            table,
            row_id,
            seen,
            &new,
            Xid(me.top),
            CommandId(1),
        );
        assert!(matches!(written, Ok(Written::Done(_))), "{written:?}");
        me.end(common::Fate::Aborted);
        work.abort(session);
        let swept = place.sweep(false, || {});
        assert_eq!(swept.versions_removed, changed.len() as u64);
        assert_eq!(swept.groups_waiting, 0);
        assert_eq!(place.versions(), row_ids.len() as u64);
    }
    for row_id in row_ids.drain(1..) {
        place.delete(row_id);
    }
    while place.sweep(false, || {}).versions_removed > 0 {}
    assert_eq!(place.versions(), 1);
}

/// The sweep takes the bits of a whole word of groups at once, and the table may have grown into
/// that word since the sweep began.
#[test]
fn rows_added_and_changed_while_a_sweep_is_under_way_are_swept() {
    /// Row ids that share a word of dirty bits.
    const WORD: u64 = 512;
    const ADDED: i32 = 1500;
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine.join().unwrap(), &on_a());
    let first = place.add(numbered(1, 0));
    for a in 2..=600 {
        place.add(numbered(a, 0));
    }
    place.change(first, numbered(1, 1));
    let end = place.table.row_ids_end().0;
    assert_ne!(end % WORD, 0, "the end lies inside a word of bits");
    let old = common::reader(&place.world).snapshot(0);
    let mut added = false;
    place.sweep(false, || {
        if !std::mem::replace(&mut added, true) {
            for a in 1001..=1000 + ADDED {
                let row_id = place.add(numbered(a, 0));
                place.change(row_id, numbered(a, 1));
            }
        }
    });
    assert!(added, "the sweep pauses after its first word of bits");
    assert!(place.table.row_ids_end().0 / WORD > end / WORD);
    drop(old);
    place.sweep(false, || {});
    assert_eq!(place.versions(), 600 + ADDED as u64);
}

/// As `on_a`, of rows whose third column is a text, which is the key.
#[cfg(debug_assertions)]
fn on_text() -> IndexDefinition {
    let mut definition = common::definition(101, true, &[(3, false)]);
    definition.columns[0].kind = KeyKind::Text;
    definition.layout[2] = AttributeLayout {
        len: -1,
        align: 4,
        by_value: false,
    };
    definition
}

/// A row whose key takes memory of the process: more than a key buffer holds itself.
#[cfg(debug_assertions)]
fn long(a: i32) -> Vec<u8> {
    const LENGTH: u32 = 1000;
    let mut long = body(Row {
        a,
        b: 0,
        c: Some(0),
    });
    long.truncate(long.len() - 4);
    // A varlena with a header of four bytes, which it counts.
    long.extend_from_slice(&((LENGTH + 4) << 2).to_le_bytes());
    long.extend(format!("{a:0width$}", width = LENGTH as usize).bytes());
    long
}

/// No memory for the keys of what was taken out of chains; again there before row ids are given
/// back.
#[cfg(debug_assertions)]
fn refuse_keys(point: Point) {
    match point {
        Point::UnlinkBeforeEntries => no_memory::refuse(true),
        Point::UnlinkBeforeRowId => no_memory::refuse(false),
        _ => {}
    }
}

/// Else another row would be found by a key that is not its own. Only the tombstone is left in the
/// chain when the entry stays, or another row's whole chain is.
#[cfg(debug_assertions)]
#[test]
fn a_row_id_is_never_given_away_while_an_entry_leads_to_it() {
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine.join().unwrap(), &on_text());
    let row_ids: Vec<RowId> = (0..100).map(|a| place.add_image(&long(a))).collect();
    let [gone, swept] = [row_ids[10], row_ids[20]];
    place.delete(gone);
    set_hook(Some(refuse_keys));
    let removed = place.sweep(true, || {}).versions_removed;
    set_hook(None);
    assert_eq!(removed, 2, "the state and the tombstone");
    place.delete(swept);
    assert_eq!(place.sweep(false, || {}).versions_removed, 2);
    let added: Vec<RowId> = (1000..4000).map(|a| place.add_image(&long(a))).collect();
    assert!(
        added.contains(&swept),
        "a row id without entries is used again"
    );
    assert!(
        !added.contains(&gone),
        "an entry leads to the row of another key"
    );
}

/// Else the reclaimer, which sweeps a few times after the horizon has come to stand, would take
/// them for done.
#[test]
fn a_sweep_says_what_it_was_kept_out_of() {
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine.join().unwrap(), &on_a());
    let row_ids: Vec<RowId> = (0..300).map(|a| place.add(numbered(a, 0))).collect();
    row_ids.iter().for_each(|row_id| place.delete(*row_id));
    let (me, met) = (common::reader(&place.world), Cell::default());
    // Who checks a table is asked in the midst of it.
    let clock = Asked {
        me: &me,
        is_cancelled: || {
            met.set(place.sweep(false, || {}));
            false
        },
    };
    place
        .session
        .check(place.table, &clock, |problem| panic!("{problem:?}"))
        .unwrap();
    let met: Sweep = met.get();
    assert!(met.groups_kept_out > 0, "{met:?}");
    assert_eq!((met.versions_removed, met.rows_visited), (0, 0));
    let done = place.sweep(false, || {});
    assert_eq!((done.groups_kept_out, done.versions_removed), (0, 600));
}
