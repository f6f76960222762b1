//! Goals of single statements: through the protocol, in PL/pgSQL, and on one row.

use super::{Asked, Judge, Wanted};
use crate::parts::statements::{PART, RECORD_ASKED, reading, writing};
use crate::parts::{hot_row, plpgsql};
use crate::record::{Figure, Place, quantity};
use crate::side::Side;

/// Clients that goals of asynchronous statements speak of.
pub(super) const CLIENTS: u32 = 8;
/// Clients that goals of synchronous statements speak of.
const CLIENTS_SYNCHRONOUS: u32 = 32;
/// The first version whose core does not wake the WAL writer at every page.
const NEW_VERSION: u32 = 17;

/// A goal of this part.
fn asked<'a>(name: &'a str, wanted: Wanted, of: &'a str) -> Asked<'a> {
    Asked {
        part: PART,
        name,
        wanted,
        of,
    }
}

impl Judge<'_> {
    fn of_floor(
        &self,
        work: &str,
        setting: &str,
        floor: &str,
        floor_setting: &str,
    ) -> Option<Figure> {
        let place = Place::new(PART, work, setting);
        let floor = Place::new(PART, floor, floor_setting);
        let per_second = quantity::PER_SECOND;
        self.record
            .relation((&place, Side::Mot), (&floor, Side::Floor), per_second)
    }

    fn of_heap(&self, work: &str, setting: &str) -> Option<Figure> {
        let place = Place::new(PART, work, setting);
        self.record
            .ratio(&place, Side::Mot, Side::Heap, quantity::PER_SECOND)
    }

    /// How the writing statements of no table lie to `SELECT 1`.
    fn floors(&self, write: &str, read: &str) -> Option<String> {
        let of_select = |floor: &str| {
            let (floor, select) = (
                Place::new(PART, floor, write),
                Place::new(PART, "select_1", read),
            );
            let per_second = quantity::PER_SECOND;
            self.record
                .relation((&floor, Side::Floor), (&select, Side::Floor), per_second)
        };
        Some(format!(
            "{CLIENTS} clients; `xid` {:.2}, `record` {:.2}",
            of_select("xid")?.value,
            of_select("record")?.value
        ))
    }

    /// What a writing statement could be at most: how the statements of no table that take an id,
    /// or also write a WAL record, the latter asked with as many parameters, lie to it.
    fn bounds(&self, work: &str, clients: u32, synchronous: bool) -> Option<String> {
        let write = writing(clients, synchronous);
        let of_xid = self.of_floor(work, &write, "xid", &write)?;
        let of_record = self.of_floor(work, &write, RECORD_ASKED, &write)?;
        let heap = self.of_heap(work, &write)?;
        Some(format!(
            "{clients} clients; {:.2} of `xid`, {:.2} of `record_asked`, which is {:.2} x heap",
            of_xid.value,
            of_record.value,
            heap.value / of_record.value
        ))
    }

    pub(super) fn statements(&mut self, version: u32) {
        let (read, write) = (reading(CLIENTS), writing(CLIENTS, false));
        let at = |found: Option<Figure>| found.map(|_| format!("{CLIENTS} clients"));
        let found = self.of_floor("point_select", &read, "select_1", &read);
        let goal = asked(
            "point SELECT, of the floor",
            Wanted::AtLeast(0.92),
            "of SELECT 1",
        );
        self.goal(&goal, found, at(found));
        let found = self.of_heap("point_select", &read);
        let goal = asked("point SELECT", Wanted::AtLeast(1.2), "x heap");
        self.goal(&goal, found, at(found));

        let is_new = version >= NEW_VERSION;
        let other = |wanted: &str| format!("run with PG={wanted}");
        for (work, times_heap) in [("update", 2.0), ("insert", 1.7)] {
            let title = work.to_uppercase();
            let floor = self.of_floor(work, &write, "select_1", &read);
            let heap = self.of_heap(work, &write);
            let bounds = self.bounds(work, CLIENTS, false);
            let xid = self.floors(&write, &read);
            for (of, wanted, unit, found, note) in [
                (
                    ", of the floor",
                    Wanted::AtLeast(0.75),
                    "of SELECT 1",
                    floor,
                    xid,
                ),
                (
                    "",
                    Wanted::AtLeast(times_heap),
                    "x heap",
                    heap,
                    bounds.clone(),
                ),
            ] {
                let name = format!("{title}, asynchronous, 17 or 18{of}");
                let note = if is_new { note } else { Some(other("17")) };
                self.goal(&asked(&name, wanted, unit), found.filter(|_| is_new), note);
            }
            let name = format!("{title}, asynchronous, 15");
            let goal = asked(&name, Wanted::AtLeast(1.5), "x heap");
            let note = if is_new { Some(other("15")) } else { bounds };
            self.goal(&goal, heap.filter(|_| !is_new), note);
        }
        for work in ["update", "insert"] {
            let found = self.of_heap(work, &writing(CLIENTS_SYNCHRONOUS, true));
            let name = format!(
                "{}, synchronous, {CLIENTS_SYNCHRONOUS} clients",
                work.to_uppercase()
            );
            let note = self.bounds(work, CLIENTS_SYNCHRONOUS, true);
            self.goal(&asked(&name, Wanted::AtLeast(1.3), "x heap"), found, note);
        }
    }

    pub(super) fn loops(&mut self) {
        for work in ["update", "select"] {
            let place = Place::new(plpgsql::PART, work, plpgsql::SETTING);
            let of = |side| self.record.figure(&place, side, quantity::MICROSECONDS);
            let (found, heap) = (of(Side::Mot), of(Side::Heap));
            let note = heap.map(|heap| format!("heap {:.2} µs", heap.value));
            let name = format!("{} in a PL/pgSQL loop", work.to_uppercase());
            let asked = Asked {
                part: plpgsql::PART,
                name: &name,
                wanted: Wanted::AtMost(0.6),
                of: "µs",
            };
            self.goal(&asked, found, note);
        }
    }

    pub(super) fn hot_row(&mut self) {
        let setting = writing(hot_row::CLIENTS, false);
        let place = Place::new(hot_row::PART, hot_row::WORK, setting);
        let per_second = quantity::PER_SECOND;
        let found = self.record.ratio(&place, Side::Mot, Side::Heap, per_second);
        let asked = Asked {
            part: hot_row::PART,
            name: "one hot row, 8 clients, asynchronous UPDATE",
            wanted: Wanted::AtLeast(1.5),
            of: "x heap",
        };
        self.goal(&asked, found, None);
    }
}
