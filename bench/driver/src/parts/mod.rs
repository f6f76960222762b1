//! The parts of the benchmark, each a kind of work.

pub(crate) mod churn;
pub(crate) mod endurance;
pub(crate) mod engine;
pub(crate) mod hot_row;
pub(crate) mod ingest;
pub(crate) mod instructions;
pub(crate) mod memory;
pub(crate) mod plpgsql;
pub(crate) mod queue;
pub(crate) mod scan;
pub(crate) mod statements;
pub(crate) mod sysbench;
pub(crate) mod tables;
pub(crate) mod tpcc;

use crate::record::Record;
use crate::rig::Rig;
use ::tpcc::failure::Result;

/// What a part has at hand.
pub(crate) struct Bench<'a> {
    pub rig: &'a mut Rig,
    pub record: &'a mut Record,
    /// What a reader should know of the part's figures.
    pub notes: &'a mut Vec<String>,
    /// Works of the part to measure; all if empty.
    pub works: &'a [String],
}

impl Bench<'_> {
    /// Whether `work` was asked for.
    pub(crate) fn wants(&self, work: &str) -> bool {
        self.works.is_empty() || self.works.iter().any(|wanted| wanted == work)
    }

    /// Says what is going on.
    pub(crate) fn say(&self, what: &str) {
        eprintln!("bench: {what}");
    }
}

/// One part.
pub(crate) struct Part {
    pub name: &'static str,
    /// What it measures, for the report.
    pub title: &'static str,
    pub measure: fn(&mut Bench<'_>) -> Result<()>,
}

/// All parts, in the order in which they run: first what runs without the server, while that holds
/// no memory; the long run is the last. Each begins with empty schemas.
pub(crate) const PARTS: [Part; 14] = [
    Part {
        name: engine::PART,
        title: "The engine without SQL",
        measure: engine::measure,
    },
    Part {
        name: statements::PART,
        title: "Single prepared statements",
        measure: statements::measure,
    },
    Part {
        name: instructions::PART,
        title: "Instructions",
        measure: instructions::measure,
    },
    Part {
        name: hot_row::PART,
        title: "One hot row",
        measure: hot_row::measure,
    },
    Part {
        name: queue::PART,
        title: "A work queue",
        measure: queue::measure,
    },
    Part {
        name: plpgsql::PART,
        title: "Loops in PL/pgSQL",
        measure: plpgsql::measure,
    },
    Part {
        name: tables::PART,
        title: "Statements of many rows, and foreign keys",
        measure: tables::measure,
    },
    Part {
        name: ingest::PART,
        title: "Ingest",
        measure: ingest::measure,
    },
    Part {
        name: scan::PART,
        title: "Full scans and aggregates",
        measure: scan::measure,
    },
    Part {
        name: memory::PART,
        title: "Memory",
        measure: memory::measure,
    },
    Part {
        name: churn::PART,
        title: "Memory of a table that changes",
        measure: churn::measure,
    },
    Part {
        name: sysbench::PART,
        title: "sysbench",
        measure: sysbench::measure,
    },
    Part {
        name: tpcc::PART,
        title: "TPC-C",
        measure: tpcc::measure,
    },
    Part {
        name: endurance::PART,
        title: "TPC-C over a long time",
        measure: endurance::measure,
    },
];
