//! TPC-C for a long time, with checkpoints as they come: does the throughput stay, and how even is
//! it?
//!
//! The measure of evenness follows the TPC's rule for steady state (throughput over any part of the
//! measurement within two per cent of the whole), scaled down from hours: over ten minutes, the
//! means of all minutes, ten seconds apart, are compared with the whole's.

use super::Bench;
use super::tpcc::{load_both, options, run_watched, setting, target};
use crate::probe::{self, Probe, Sample};
use crate::record::{Place, quantity};
use crate::rig::memory_mb;
use crate::side::Side;
use tpcc::cluster::Shutdown;
use tpcc::failure::Result;
use tpcc::run::RunOptions;
use tpcc::terminal::Mode;

pub(crate) const PART: &str = "endurance";
pub(crate) const WORK: &str = "procedures";
/// What the machine gave beside it ([`crate::probe`]), as works of this part.
pub(crate) const BESIDE: [(&str, FromSample); 3] = [
    (READS, |sample| sample.reads),
    ("arithmetic in a millisecond", |sample| sample.arithmetic),
    ("flushes in a second", |sample| sample.flushes),
];
/// What the servers' processor time gave, as a work of this part
/// ([`super::tpcc::Curves::per_cpu_second`]).
pub(crate) const PER_CPU_SECOND: &str = "transactions for a second of the servers' processor time";
/// One of a sample's values.
type FromSample = fn(&Sample) -> u64;
/// The one of them that says most: data of an hour are in memory and in no cache.
pub(crate) const READS: &str = "memory reads in a millisecond";
/// Share of the machine's memory that MOT tables may take. An hour as fast as it goes fills more
/// than what the other parts have: their rows are 15 GB then.
const ARENA_SHARE: f64 = 0.75;
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
    let arena = format!("{:.0}MB", memory_mb() * ARENA_SHARE);
    bench.rig.cluster.set("mot.max_memory", &arena);
    bench.rig.cluster.stop(Shutdown::Fast)?;
    bench.rig.cluster.start_and_wait()?;
    let at = plan.tpcc_main();
    load_both(bench, at)?;
    let place = Place::new(PART, WORK, setting(at));
    for (side, duration) in [Side::Mot, Side::Heap].into_iter().zip(plan.endurance) {
        bench.say(&format!("{side} for {} s", duration.as_secs()));
        bench.rig.checkpoint()?;
        let options = RunOptions {
            duration,
            ..options(bench.rig, at, Mode::Procedures, 0, None)
        };
        let target = target(bench.rig, side)?;
        let probe = Probe::begin(bench.rig.cluster.directory())?;
        let ran = run_watched(&bench.rig.cluster, &target, &options, false);
        let beside = probe.end()?;
        let (measured, curves) = ran?;
        bench.record.add(
            &place,
            side,
            quantity::PER_SECOND,
            measured.report.tpm_total / 60.0,
        );
        for (work, of) in BESIDE {
            let curve = in_seconds(beside.iter().map(of), curves.per_second.len());
            let place = Place::new(PART, work, setting(at));
            bench.record.add_curve(&place, side, curve);
        }
        let cpu_place = Place::new(PART, PER_CPU_SECOND, setting(at));
        bench
            .record
            .add_curve(&cpu_place, side, curves.per_cpu_second);
        bench.record.add_curve(&place, side, curves.per_second);
    }
    bench.notes.push(format!(
        "checkpoint_timeout = {}; MOT for {} s, heap for {} s",
        plan.endurance_checkpoints,
        plan.endurance[0].as_secs(),
        plan.endurance[1].as_secs()
    ));
    Ok(())
}

/// A value for each second: the newest sample's.
fn in_seconds(samples: impl Iterator<Item = u64>, seconds: usize) -> Vec<u64> {
    let each = probe::INTERVAL.as_secs() as usize;
    samples
        .flat_map(|sample| std::iter::repeat_n(sample, each))
        .take(seconds)
        .collect()
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len().max(1) as f64
}

/// The largest distance of a minute's mean from the whole's, relative to it. `None` if there is
/// less than a minute.
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
    fn a_sample_stands_for_the_seconds_after_it() {
        let curve = in_seconds([7, 9].into_iter(), 12);
        assert_eq!(curve, [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 9, 9]);
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
