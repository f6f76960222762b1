//! Goals of statements of many rows, and of foreign keys.

use super::{Asked, Judge, Wanted};
use crate::parts::statements::writing;
use crate::parts::tables::{CLIENTS, HOT_PARENT, KEY_CHECK, ONE_SESSION, PART};
use crate::record::{Place, quantity};
use crate::side::Side;

impl Judge<'_> {
    pub(super) fn tables(&mut self) {
        for (work, name, times) in [
            ("update_1000", "UPDATE of 1,000 rows by a range", 2.0),
            ("delete_1000", "DELETE of 1,000 rows by a range", 2.0),
            ("merge_1000", "MERGE of 1,000 rows", 1.5),
        ] {
            let place = Place::new(PART, work, ONE_SESSION);
            let time = quantity::MILLISECONDS;
            // Times: heap's over ours says how many times as fast.
            let found = self.record.ratio(&place, Side::Heap, Side::Mot, time);
            let of = |side| self.record.median(&place, side, time);
            let note = of(Side::Mot).zip(of(Side::Heap));
            let note = note.map(|(mot, heap)| format!("{mot:.2} ms, heap {heap:.2} ms"));
            let wanted = Wanted::AtLeast(times);
            self.goal(&asked(name, wanted, "x heap"), found, note);
        }
        let place = Place::new(PART, KEY_CHECK, ONE_SESSION);
        let time = quantity::MICROSECONDS;
        let found = self.record.ratio(&place, Side::Mot, Side::Heap, time);
        let heap = self.record.median(&place, Side::Heap, time);
        let note = heap.map(|heap| format!("heap {heap:.2} µs"));
        let name = "check of a foreign key, INSERT in a PL/pgSQL loop";
        self.goal(&asked(name, Wanted::AtMost(0.33), "x heap"), found, note);
        let place = Place::new(PART, HOT_PARENT, writing(CLIENTS, false));
        let per_second = quantity::PER_SECOND;
        let found = self.record.ratio(&place, Side::Mot, Side::Heap, per_second);
        let name = "children of one parent, 8 sessions";
        self.goal(&asked(name, Wanted::AtLeast(1.0), "x heap"), found, None);
    }
}

/// A goal of this part.
fn asked<'a>(name: &'a str, wanted: Wanted, of: &'a str) -> Asked<'a> {
    Asked {
        part: PART,
        name,
        wanted,
        of,
    }
}
