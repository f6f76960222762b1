//! What standbys and checkpoints cost, from the steady runs.

use super::steady::{Condition, CpuMicros, Steady};
use crate::engine::Engine;
use serde::Serialize;

/// A ratio over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Ratio {
    pub median: f64,
    least: f64,
    most: f64,
}

impl Ratio {
    /// None without rounds.
    fn of(rounds: impl Iterator<Item = f64>) -> Option<Self> {
        let mut ratios: Vec<f64> = rounds.collect();
        ratios.sort_by(f64::total_cmp);
        let middle = ratios.len() / 2;
        let median = match ratios.len() {
            0 => return None,
            odd if odd % 2 == 1 => ratios[middle],
            _ => (ratios[middle - 1] + ratios[middle]) / 2.0,
        };
        Some(Ratio {
            median,
            least: ratios[0],
            most: *ratios.last()?,
        })
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ratio {
            median,
            least,
            most,
        } = self;
        write!(f, "{median:.2} ({least:.2} to {most:.2})")
    }
}

/// What a condition costs.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Cost {
    pub tpmc: Ratio,
    pub p99: Ratio,
    /// CPU time of the primary's processes per transaction: what is left of the cost where standby
    /// and client have machines of their own.
    pub primary_cpu: Ratio,
    /// The median of the rounds, in microseconds per transaction.
    pub primary_cpu_us: CpuMicros,
    /// Of the standby, likewise.
    pub standby_cpu_us: Option<CpuMicros>,
    /// Checkpoints completed in all rounds.
    pub checkpoints: Option<u32>,
    pub lag_bytes_max: Option<i64>,
    pub catch_up_seconds_max: Option<f64>,
}

/// Each figure's median.
fn middle(rounds: impl Iterator<Item = CpuMicros> + Clone) -> Option<CpuMicros> {
    Some(CpuMicros {
        all: Ratio::of(rounds.clone().map(|round| round.all))?.median,
        log: Ratio::of(rounds.map(|round| round.log))?.median,
    })
}

/// What a condition leaves of tpmC and does to the 99th percentile, beside the same round's runs
/// without standby and checkpoints.
pub(super) fn of(steady: &[Steady], condition: Condition, engine: Engine) -> Option<Cost> {
    let find = |wanted, round| {
        steady
            .iter()
            .find(move |run| run.condition == wanted && run.engine == engine && run.round == round)
    };
    let rounds =
        || (0..).map_while(|round| find(condition, round).zip(find(Condition::Alone, round)));
    Some(Cost {
        tpmc: Ratio::of(rounds().map(|(with, without)| with.tpmc / without.tpmc))?,
        p99: Ratio::of(rounds().map(|(with, without)| with.p99_ms / without.p99_ms))?,
        primary_cpu: Ratio::of(
            rounds().map(|(with, without)| with.primary_cpu_us.all / without.primary_cpu_us.all),
        )?,
        primary_cpu_us: middle(rounds().map(|(with, _)| with.primary_cpu_us))?,
        standby_cpu_us: middle(rounds().filter_map(|(with, _)| with.standby_cpu_us)),
        checkpoints: rounds()
            .filter_map(|(with, _)| with.checkpoints)
            .reduce(|a, b| a + b),
        lag_bytes_max: rounds().filter_map(|(with, _)| with.lag_bytes_max).max(),
        catch_up_seconds_max: rounds()
            .filter_map(|(with, _)| with.catch_up_seconds)
            .reduce(f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_compared_with_its_own_round() {
        let mut steady = Vec::new();
        // The machine is twice as fast in each round; the standby takes a tenth, a fifth, a tenth.
        for (round, kept) in [0.9, 0.8, 0.9].into_iter().enumerate() {
            let alone = 1000.0 * f64::from(1 << round);
            for (condition, tpmc) in [
                (Condition::Alone, alone),
                (Condition::Asynchronous, alone * kept),
            ] {
                let has_standby = condition == Condition::Asynchronous;
                steady.push(Steady {
                    round,
                    condition,
                    engine: Engine::Mot,
                    tpmc,
                    p99_ms: 5.0,
                    primary_cpu_us: CpuMicros {
                        all: if has_standby { 210.0 } else { 200.0 },
                        log: if has_standby { 4.0 } else { 0.0 },
                    },
                    standby_cpu_us: has_standby.then_some(CpuMicros {
                        all: 60.0 + round as f64,
                        log: 50.0,
                    }),
                    checkpoints: None,
                    lag_bytes_max: has_standby.then_some(round as i64),
                    catch_up_seconds: has_standby.then_some(0.5),
                });
            }
        }
        let cost = of(&steady, Condition::Asynchronous, Engine::Mot).unwrap();
        assert!((cost.tpmc.median - 0.9).abs() < 1e-9 && (cost.tpmc.least - 0.8).abs() < 1e-9);
        assert_eq!((cost.p99.most, cost.lag_bytes_max), (1.0, Some(2)));
        assert!((cost.primary_cpu.median - 1.05).abs() < 1e-9);
        assert_eq!(
            (cost.primary_cpu_us.all, cost.primary_cpu_us.log),
            (210.0, 4.0)
        );
        assert_eq!(cost.standby_cpu_us.map(|cpu| cpu.all), Some(61.0));
        assert_eq!(cost.checkpoints, None);
        assert!(of(&steady, Condition::Synchronous, Engine::Mot).is_none());
        assert!(of(&steady, Condition::Asynchronous, Engine::Heap).is_none());
    }
}
