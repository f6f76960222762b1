//! Goals of what runs without SQL.

use super::{Asked, Judge, Wanted};
use crate::parts::engine;
use crate::record::{Figure, Place, quantity};
use crate::side::Side;

impl Judge<'_> {
    pub(super) fn engine(&mut self) {
        for (work, times) in [("get", 1.2), ("insert", 1.2), ("scan of 100", 3.0)] {
            let of_work = self.record.series.iter().filter(|series| {
                (series.part.as_str(), series.work.as_str()) == (engine::PART, work)
                    && series.side == Side::Mot
            });
            let found: Vec<(String, Figure)> = of_work
                .filter_map(|series| {
                    let place = Place::new(engine::PART, work, &series.setting);
                    let nanos = quantity::NANOSECONDS;
                    let ratio = self
                        .record
                        .ratio(&place, Side::Masstree, Side::Mot, nanos)?;
                    Some((series.setting.clone(), ratio))
                })
                .collect();
            let asked = Asked {
                part: engine::PART,
                name: &format!("index alone: {work}"),
                wanted: Wanted::AtLeast(times),
                of: "x masstree",
            };
            self.worst(&asked, &found, || None);
        }
        let place = Place::new(engine::PART, engine::TPCC, engine::TPCC_SETTING);
        let found = self.record.figure(&place, Side::Mot, quantity::PER_SECOND);
        let asked = Asked {
            part: engine::PART,
            name: "engine TPC-C without SQL",
            wanted: Wanted::AtLeast(60_000.0),
            of: "transactions/s per core",
        };
        self.goal(&asked, found, None);
    }
}
