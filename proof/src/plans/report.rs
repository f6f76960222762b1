//! What was found, summed up.
use super::explore::{Finding, Timed};

/// The chosen plan takes more of the best one's time than this: it counts as bad.
const BAD: f64 = 1.2;
/// Queries that are told as the worst.
const WORST: usize = 10;

/// The findings of some queries.
pub struct Report {
    findings: Vec<Finding>,
    differences: usize,
    /// Failed, or did not end.
    pub skipped: usize,
    /// Each plan was executed often enough to tell its time.
    is_timed: bool,
    is_traced: bool,
}

impl Report {
    pub fn new(is_timed: bool, is_traced: bool) -> Report {
        Report {
            findings: Vec::new(),
            differences: 0,
            skipped: 0,
            is_timed,
            is_traced,
        }
    }

    pub fn found(&mut self, finding: Finding) {
        if self.is_traced {
            println!("{}: {}", finding.query.form, finding.query.text);
            println!("  heap {}", timed(&finding.heap));
            for plan in &finding.plans {
                println!("  {} [{}]", timed(plan), plan.settings);
            }
        }
        self.findings.push(finding);
    }

    pub fn differs(&mut self, words: String) {
        println!("DIFFERS: {words}\n");
        self.differences += 1;
    }

    /// No plan gave another answer.
    pub fn holds(&self) -> bool {
        self.differences == 0
    }

    /// Each query by its form: heap's plan and the chosen one.
    pub fn print_forms(&self) {
        if !self.is_timed {
            return;
        }
        let mut form = "";
        for finding in &self.findings {
            if finding.query.form != form {
                form = &finding.query.form;
                println!("\n{form}");
                println!("   MOT/heap  chosen/best");
            }
            let (heap, chosen) = (&finding.heap, finding.chosen());
            println!(
                "  {:8.2} {:8.2}      {}",
                chosen.seconds / heap.seconds,
                finding.ratio(),
                finding.query.text
            );
            println!("                         heap {}", timed(heap));
            println!("                         MOT  {}", timed(chosen));
        }
    }

    /// The ratios, and the worst.
    pub fn print(&self, of: &str) {
        let mut ratios: Vec<f64> = self.findings.iter().map(Finding::ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let last = ratios.len().saturating_sub(1) as f64;
            ratios
                .get((last * part).round() as usize)
                .copied()
                .unwrap_or(1.0)
        };
        let bad = ratios.iter().filter(|ratio| **ratio > BAD).count();
        let plans: usize = self
            .findings
            .iter()
            .map(|finding| finding.plans.len())
            .sum();
        let endless: usize = self.findings.iter().map(|finding| finding.endless).sum();
        println!(
            "\n{of}: {} queries, {} skipped, {plans} plans, {endless} more that took too long, {} differences",
            self.findings.len(),
            self.skipped,
            self.differences
        );
        if !self.is_timed {
            return;
        }
        println!(
            "chosen plan / best plan: median {:.2}, 90th percentile {:.2}, above {BAD}: {:.1} %",
            at(0.5),
            at(0.9),
            100.0 * bad as f64 / ratios.len().max(1) as f64
        );
        let mut worst: Vec<&Finding> = self.findings.iter().collect();
        worst.sort_by(|left, right| right.ratio().total_cmp(&left.ratio()));
        println!("the worst:");
        for finding in worst
            .into_iter()
            .take(WORST)
            .filter(|one| one.ratio() > BAD)
        {
            let best = finding.best();
            println!("  {:.2}  {}", finding.ratio(), finding.query.text);
            println!("        chosen {}", timed(finding.chosen()));
            println!("        best   {} [{}]", timed(best), best.settings);
        }
    }
}

fn timed(plan: &Timed) -> String {
    format!("{:9.3} ms {}", plan.seconds * 1000.0, plan.plan.told())
}
