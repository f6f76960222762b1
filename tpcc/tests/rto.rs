//! The drills of `make rto`, tiny: every one runs, in two rounds where it has rounds, and every
//! figure that is promised is there.

use serde_json::Value;
use tpcc::cli::RtoArgs;
use tpcc::cluster::scratch_directory;

/// Numbers that every size and the whole must have.
const FIGURES: [&str; 7] = [
    "failover_seconds",
    "crash_recovery_seconds",
    "cold_start_seconds",
    "warm_restart_seconds",
    "load_rows_per_second_per_core",
    "load_bytes_per_second_per_core",
    "replay_changes_per_second",
];

#[test]
fn every_drill_answers() {
    let out = scratch_directory("mot-rto-report");
    let args = RtoArgs {
        quick: true,
        warehouses: vec![1],
        seconds: Some(1),
        // The second begins as the first ended: without the standby.
        rounds: Some(2),
        terminals: 4,
        seed: 1,
        out: out.clone(),
        bindir: None,
    };
    assert!(tpcc::rto::rto(&args).unwrap(), "a drill lost something");
    let text = std::fs::read_to_string(out.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&text).unwrap();
    let size = &summary["sizes"][0];
    for name in FIGURES {
        for figures in [&summary, size] {
            let figure = figures[name].as_f64();
            assert!(figure.is_some_and(|it| it > 0.0), "{name}: {figure:?}");
        }
    }
    for kept in size["tpmc_kept"].as_array().expect("conditions") {
        let has_standby = kept["condition"] != "checkpoints";
        for cost in [&kept["mot_cost"], &kept["heap_cost"]] {
            // How much it is says nothing after a second: the kernel counts in hundredths.
            assert!(cost["primary_cpu_us"]["all"].is_number(), "{kept}");
            assert_eq!(
                cost["standby_cpu_us"]["all"].is_number(),
                has_standby,
                "{kept}"
            );
            assert_eq!(cost["checkpoints"].is_number(), !has_standby, "{kept}");
        }
    }
    assert_eq!(size["tpmc_kept"].as_array().map(Vec::len), Some(3));
    assert_eq!(summary["acknowledged_lost"], 0);
    assert_eq!(summary["good"], true);
    let chart = std::fs::read_to_string(out.join("rto.svg")).unwrap();
    assert!(chart.contains("<svg") && chart.trim_end().ends_with("</svg>"));
    assert!(out.join("report.txt").metadata().unwrap().len() > 0);
    std::fs::remove_dir_all(&out).unwrap();
}
