//! The figures of one size that `summary.json` begins with.

use super::{SizeReport, Start};
use crate::engine::Engine;
use crate::rto::cost;
use crate::rto::steady::Condition;
use serde_json::{Map, Value, json};

impl SizeReport {
    /// The figures a reader compares, by the names of `summary.json`.
    pub(super) fn figures(&self) -> Map<String, Value> {
        let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        let per_core = |name: &str| {
            let start = self.cold_start.as_ref()?;
            let seconds = start.load_seconds();
            (seconds > 0.0).then(|| start.number(name) / seconds / cores)
        };
        let first = |start: &Start| start.first_query_seconds;
        let conditions = [
            Condition::Checkpoints,
            Condition::Asynchronous,
            Condition::Synchronous,
        ];
        let tpmc_kept: Vec<Value> = conditions
            .into_iter()
            .filter_map(|condition| {
                let cost = |engine| cost::of(&self.steady, condition, engine);
                let (mot, heap) = (cost(Engine::Mot)?, cost(Engine::Heap)?);
                Some(json!({
                    "condition": condition,
                    "mot": mot.tpmc.median,
                    "heap": heap.tpmc.median,
                    "mot_cost": mot,
                    "heap_cost": heap,
                }))
            })
            .collect();
        let Value::Object(figures) = json!({
            "warehouses": self.warehouses,
            "mot_bytes": self.mot_bytes,
            "cold_start_seconds": self.cold_start.as_ref().map(first),
            "heap_start_and_prewarm_seconds":
                self.heap.as_ref().map(|heap| heap.up_seconds + heap.prewarm_seconds),
            "warm_restart_seconds": self.warm_restart.as_ref().map(first),
            "crash_recovery_seconds": self.crash.as_ref().map(|it| first(&it.start)),
            "crash_recovery_load_seconds": self.crash.as_ref().map(|it| it.start.load_seconds()),
            "failover_seconds": self.failover.as_ref().map(|it| it.seconds),
            "load_rows_per_second_per_core": per_core("rows_loaded"),
            "load_bytes_per_second_per_core": per_core("bytes_loaded"),
            "replay_changes_per_second":
                self.crash.as_ref().and_then(|it| it.start.changes_per_second()),
            "acknowledged_lost": self.lost(),
            "tpmc_kept": tpmc_kept,
        }) else {
            unreachable!("an object was written above")
        };
        figures
    }
}
