//! TPC-C for a long time, with checkpoints as they come: does the throughput stay, and how even is it?
//!
//! The measure of evenness follows the TPC's rule for steady state (throughput over any part of the measurement within two per cent of
//! the whole), scaled down from hours: over ten minutes, the means of all minutes, ten seconds apart, are compared with the whole's.

use super::Bench;
use super::tpcc::{load_both, options, run_watched, setting, target};
use crate::record::{Place, quantity};
use crate::side::Side;
use tpcc::cluster::Shutdown;
use tpcc::failure::Result;
use tpcc::run::RunOptions;
use tpcc::terminal::Mode;

pub(crate) const PART: &str = "endurance";
pub(crate) const WORK: &str = "procedures";
/// Seconds whose mean is looked at.
const WINDOW: usize = 60;
/// Distance of two windows.
const STEP: usize = 10;

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let plan = bench.rig.plan.clone();
    // The server's settings came on its command line; only a start changes them.
    bench
        .rig
        .cluster
        .set("checkpoint_timeout", plan.endurance_checkpoints);
    bench.rig.cluster.stop(Shutdown::Fast)?;
    bench.rig.cluster.start_and_wait()?;
    let at = plan.tpcc_main();
    load_both(bench, at.warehouses)?;
    let place = Place::new(PART, WORK, setting(at));
    for (side, duration) in [Side::Mot, Side::Heap].into_iter().zip(plan.endurance) {
        bench.say(&format!("{side} for {} s", duration.as_secs()));
        bench.rig.checkpoint()?;
        let options = RunOptions {
            duration,
            ..options(bench.rig, at, Mode::Procedures, 0, None)
        };
        let (measured, per_second) = run_watched(
            &bench.rig.cluster,
            &target(bench.rig, side)?,
            &options,
            false,
        )?;
        bench.record.add(
            &place,
            side,
            quantity::PER_SECOND,
            measured.report.tpm_total / 60.0,
        );
        bench.record.add_curve(&place, side, per_second);
    }
    bench.notes.push(format!(
        "checkpoint_timeout = {}; MOT for {} s, heap for {} s",
        plan.endurance_checkpoints,
        plan.endurance[0].as_secs(),
        plan.endurance[1].as_secs()
    ));
    Ok(())
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len().max(1) as f64
}

/// The largest distance of a minute's mean from the whole's, relative to it. `None` if there is less than a minute.
pub(crate) fn variation(per_second: &[u64]) -> Option<f64> {
    let whole = mean(per_second);
    let means = per_second.windows(WINDOW).step_by(STEP).map(mean);
    means
        .map(|mean| (mean - whole).abs() / whole)
        .reduce(f64::max)
}

/// Throughput of the last `seconds` over that of the first ones.
pub(crate) fn last_over_first(per_second: &[u64], seconds: usize) -> Option<f64> {
    let first = per_second.get(..seconds)?;
    let last = per_second.get(per_second.len() - seconds..)?;
    Some(mean(last) / mean(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_curve_has_no_variation_and_a_dip_is_seen() {
        let mut curve = vec![100; 600];
        assert_eq!(variation(&curve), Some(0.0));
        assert_eq!(variation(&curve[..59]), None);
        curve[300..330].fill(0);
        // Half of the worst minute is missing; the whole's mean is 95.
        let expected = (50.0f64 - 95.0).abs() / 95.0;
        assert!((variation(&curve).unwrap() - expected).abs() < 1e-9);
    }

    #[test]
    fn the_end_is_compared_with_the_begin() {
        let curve: Vec<u64> = (0..100)
            .map(|second| if second < 50 { 200 } else { 100 })
            .collect();
        assert_eq!(last_over_first(&curve, 10), Some(0.5));
        assert_eq!(last_over_first(&curve, 101), None);
    }
}
