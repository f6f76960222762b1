//! Goals of ingest, scans and memory.

use super::{Asked, Judge, Wanted};
use crate::parts::{ingest, memory, scan};
use crate::record::{Place, quantity};
use crate::side::Side;

impl Judge<'_> {
    pub(super) fn ingest_and_scan(&mut self) {
        let record = self.record;
        let place = Place::new(ingest::PART, ingest::COPY, ingest::COPY_SETTING);
        let rows = quantity::ROWS_PER_SECOND;
        let found = record.ratio(&place, Side::Mot, Side::Heap, rows);
        let note = record
            .median(&place, Side::Mot, rows)
            .map(|rows| format!("{rows:.0} rows/s"));
        let asked = Asked {
            part: ingest::PART,
            name: "COPY of 200-byte rows, 3 indexes",
            wanted: Wanted::AtLeast(2.0),
            of: "x heap",
        };
        self.goal(&asked, found, note);

        let ten_rows = record.series.iter().filter(|series| {
            (series.part.as_str(), series.work.as_str()) == (ingest::PART, ingest::TEN_ROWS)
                && (series.side, series.quantity.as_str()) == (Side::Mot, rows)
        });
        let best = ten_rows.max_by(|a, b| a.median.total_cmp(&b.median));
        let asked = Asked {
            part: ingest::PART,
            name: "inserts of ten 200-byte rows, 3 indexes",
            wanted: Wanted::AtLeast(200_000.0),
            of: "rows/s",
        };
        let note = best.map(|best| format!("the best, with {}", best.setting));
        self.goal(&asked, best.map(|best| best.figure()), note);

        let one = Place::new(scan::PART, scan::FILTER, scan::ONE_PROCESS);
        let parallel = Place::new(scan::PART, scan::FILTER, scan::PARALLEL);
        let faster =
            |place: &Place| record.ratio(place, Side::Heap, Side::Mot, quantity::MILLISECONDS);
        let note = faster(&parallel).map(|ratio| {
            format!(
                "one process each; {:.2} where heap tables may use parallel workers",
                ratio.value
            )
        });
        let asked = Asked {
            part: scan::PART,
            name: "full scan with filter",
            wanted: Wanted::AtLeast(1.5),
            of: "x heap",
        };
        self.goal(&asked, faster(&one), note);
    }

    pub(super) fn memory(&mut self) {
        for (work, wanted) in [(memory::ROW_OVERHEAD, 24.0), (memory::ENTRY, 20.0)] {
            let place = Place::new(memory::PART, work, memory::SETTING);
            let of = |side| self.record.figure(&place, side, quantity::BYTES);
            let note = of(Side::Heap).map(|heap| format!("heap {:.1} bytes", heap.value));
            let asked = Asked {
                part: memory::PART,
                name: &format!("memory: {work}"),
                wanted: Wanted::AtMost(wanted),
                of: "bytes",
            };
            self.goal(&asked, of(Side::Mot), note);
        }
    }
}
