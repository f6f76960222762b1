//! Everything measured, as it goes into `latest.json` and comes back from it.
//!
//! A *series* is one quantity of one kind of work under one setting by one side: a value per round.
//! The first value that a run adds to a series replaces what an earlier run left there, so a part
//! can be measured again without the others.

use crate::side::Side;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tpcc::stats::median;

/// Names of quantities. All but those of time, memory and spending are better when larger.
pub(crate) mod quantity {
    /// Transactions (or statements) per second.
    pub(crate) const PER_SECOND: &str = "per second";
    /// Rows per second.
    pub(crate) const ROWS_PER_SECOND: &str = "rows per second";
    /// CPU time of all server processes per transaction, microseconds.
    pub(crate) const SERVER_CPU: &str = "server CPU µs";
    /// WAL per transaction, bytes, full-page images included.
    pub(crate) const WAL_BYTES: &str = "WAL bytes";
    /// The same without full-page images.
    pub(crate) const WAL_RECORD_BYTES: &str = "WAL bytes without page images";
    /// Instructions of all server processes per transaction.
    pub(crate) const INSTRUCTIONS: &str = "instructions";
    /// Time of one statement, microseconds.
    pub(crate) const MICROSECONDS: &str = "µs";
    /// Time of one statement, milliseconds.
    pub(crate) const MILLISECONDS: &str = "ms";
    /// Time of one operation, nanoseconds of a thread's processor time.
    pub(crate) const NANOSECONDS: &str = "ns";
    /// Bytes for each row or entry.
    pub(crate) const BYTES: &str = "bytes";
    /// Millions of bytes.
    pub(crate) const MEGABYTES: &str = "MB";
}

/// One quantity, by one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Series {
    pub part: String,
    pub work: String,
    pub setting: String,
    pub quantity: String,
    pub side: Side,
    /// Of every round.
    pub values: Vec<f64>,
    pub median: f64,
    /// Added to by this run.
    #[serde(skip)]
    is_fresh: bool,
}

impl Series {
    /// Its median and spread.
    pub(crate) fn figure(&self) -> Figure {
        Figure {
            value: self.median,
            spread: spread(&self.values, self.median),
        }
    }
}

/// What a series, or two beside each other, come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub value: f64,
    /// Half the distance of the rounds' extremes, relative to the value; of more rounds than one.
    pub spread: Option<f64>,
}

impl Figure {
    /// A figure that has no rounds.
    pub(crate) fn single(value: f64) -> Self {
        Figure {
            value,
            spread: None,
        }
    }
}

/// Half the distance of the extremes, relative to `middle`.
fn spread(values: &[f64], middle: f64) -> Option<f64> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let spread = (most - least) / 2.0 / middle;
    (values.len() > 1 && spread.is_finite()).then_some(spread)
}

/// Something over time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Curve {
    pub part: String,
    pub work: String,
    pub setting: String,
    pub side: Side,
    /// Transactions that ended in each second.
    pub per_second: Vec<u64>,
}

/// How a part went.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartRun {
    /// full, quick or smoke.
    pub form: String,
    /// Commit of the tree it was measured with.
    pub commit: String,
    /// Seconds since 1970 at its end.
    pub ended_at: u64,
    pub seconds: f64,
    /// Why it did not come to its end.
    pub failure: Option<String>,
    /// What a reader should know of its figures.
    pub notes: Vec<String>,
}

/// Where in the record something belongs.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub part: &'static str,
    pub work: String,
    pub setting: String,
}

impl Place {
    pub(crate) fn new(
        part: &'static str,
        work: impl Into<String>,
        setting: impl Into<String>,
    ) -> Self {
        Place {
            part,
            work: work.into(),
            setting: setting.into(),
        }
    }
}

/// All of it.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Record {
    pub parts: BTreeMap<String, PartRun>,
    pub series: Vec<Series>,
    pub curves: Vec<Curve>,
}

impl Record {
    /// Adds a round's value.
    pub(crate) fn add(&mut self, place: &Place, side: Side, quantity: &str, value: f64) {
        let at = self.position(place, side, quantity).unwrap_or_else(|| {
            self.series.push(Series {
                part: place.part.to_owned(),
                work: place.work.clone(),
                setting: place.setting.clone(),
                quantity: quantity.to_owned(),
                side,
                values: Vec::new(),
                median: f64::NAN,
                is_fresh: true,
            });
            self.series.len() - 1
        });
        let series = &mut self.series[at];
        if !series.is_fresh {
            series.values.clear();
            series.is_fresh = true;
        }
        series.values.push(value);
        series.median = median(series.values.clone());
    }

    /// Adds, or replaces, a curve.
    pub(crate) fn add_curve(&mut self, place: &Place, side: Side, per_second: Vec<u64>) {
        self.curves.retain(|curve| {
            (curve.part.as_str(), &curve.work, &curve.setting, curve.side)
                != (place.part, &place.work, &place.setting, side)
        });
        self.curves.push(Curve {
            part: place.part.to_owned(),
            work: place.work.clone(),
            setting: place.setting.clone(),
            side,
            per_second,
        });
    }

    /// A curve.
    pub(crate) fn curve(&self, place: &Place, side: Side) -> Option<&Curve> {
        self.curves.iter().find(|curve| {
            (curve.part.as_str(), &curve.work, &curve.setting, curve.side)
                == (place.part, &place.work, &place.setting, side)
        })
    }

    fn position(&self, place: &Place, side: Side, quantity: &str) -> Option<usize> {
        self.series.iter().position(|series| {
            series.part == place.part
                && series.work == place.work
                && series.setting == place.setting
                && series.quantity == quantity
                && series.side == side
        })
    }

    /// The median of a series.
    pub(crate) fn median(&self, place: &Place, side: Side, quantity: &str) -> Option<f64> {
        Some(self.series[self.position(place, side, quantity)?].median)
    }

    /// The newest value of a series.
    pub(crate) fn last(&self, place: &Place, side: Side, quantity: &str) -> Option<f64> {
        self.series[self.position(place, side, quantity)?]
            .values
            .last()
            .copied()
    }

    /// A series' median and spread.
    pub(crate) fn figure(&self, place: &Place, side: Side, quantity: &str) -> Option<Figure> {
        Some(self.series[self.position(place, side, quantity)?].figure())
    }

    /// The median of `side` over that of `base`, measured at the same place.
    pub(crate) fn ratio(
        &self,
        place: &Place,
        side: Side,
        base: Side,
        quantity: &str,
    ) -> Option<Figure> {
        self.relation((place, side), (place, base), quantity)
    }

    /// The median of one series over that of another; the spread is that of the rounds' own ratios,
    /// since what takes turns in a round meets the same noise.
    pub(crate) fn relation(
        &self,
        (place, side): (&Place, Side),
        (base_place, base): (&Place, Side),
        quantity: &str,
    ) -> Option<Figure> {
        let one = &self.series[self.position(place, side, quantity)?];
        let other = &self.series[self.position(base_place, base, quantity)?];
        let value = one.median / other.median;
        let pairs = one.values.iter().zip(&other.values);
        let of_rounds: Vec<f64> = pairs.map(|(one, other)| one / other).collect();
        let spread = (one.values.len() == other.values.len())
            .then(|| spread(&of_rounds, value))
            .flatten();
        Some(Figure { value, spread })
    }

    /// Forgets everything of a part that is about to be measured whole.
    pub(crate) fn forget(&mut self, part: &str) {
        self.series.retain(|series| series.part != part);
        self.curves.retain(|curve| curve.part != part);
        self.parts.remove(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place::new("statements", "update", "8 clients")
    }

    #[test]
    fn a_later_run_replaces_what_it_measures_and_nothing_else() {
        let mut record = Record::default();
        for value in [1.0, 3.0, 2.0] {
            record.add(&place(), Side::Mot, quantity::PER_SECOND, value);
        }
        record.add(&place(), Side::Heap, quantity::PER_SECOND, 1.0);
        assert_eq!(
            record.ratio(&place(), Side::Mot, Side::Heap, quantity::PER_SECOND),
            Some(Figure::single(2.0))
        );
        assert_eq!(record.series[0].figure().spread, Some(0.5));
        let text = serde_json::to_string(&record).unwrap();
        let mut later: Record = serde_json::from_str(&text).unwrap();
        later.add(&place(), Side::Mot, quantity::PER_SECOND, 8.0);
        later.add(&place(), Side::Mot, quantity::PER_SECOND, 10.0);
        assert_eq!(
            later.median(&place(), Side::Mot, quantity::PER_SECOND),
            Some(9.0)
        );
        assert_eq!(
            later.median(&place(), Side::Heap, quantity::PER_SECOND),
            Some(1.0)
        );
        later.forget("statements");
        assert!(later.series.is_empty());
    }

    #[test]
    fn the_spread_of_a_ratio_is_that_of_its_rounds() {
        let mut record = Record::default();
        // Both get slower from round to round; their ratio is 2, 2 and 3.
        for (mot, heap) in [(8.0, 4.0), (4.0, 2.0), (3.0, 1.0)] {
            record.add(&place(), Side::Mot, quantity::PER_SECOND, mot);
            record.add(&place(), Side::Heap, quantity::PER_SECOND, heap);
        }
        let found = record.ratio(&place(), Side::Mot, Side::Heap, quantity::PER_SECOND);
        let expected = Figure {
            value: 2.0,
            spread: Some(0.25),
        };
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn a_curve_is_kept_once() {
        let mut record = Record::default();
        record.add_curve(&place(), Side::Mot, vec![1]);
        record.add_curve(&place(), Side::Mot, vec![2, 3]);
        assert_eq!(record.curves.len(), 1);
        assert_eq!(
            record.curve(&place(), Side::Mot).unwrap().per_second,
            [2, 3]
        );
        assert!(record.curve(&place(), Side::Heap).is_none());
    }
}
