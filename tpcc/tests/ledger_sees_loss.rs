//! The ledger's comparison must see what it is for: a database is damaged on purpose, one way after
//! the other, and each damage must show.

mod support;

use clap::ValueEnum;
use std::time::Duration;
use tpcc::check;
use tpcc::cluster::{Cluster, scratch_directory};
use tpcc::effect::Effect;
use tpcc::engine::Engine;
use tpcc::ledger::{Entry, Ledger};
use tpcc::ledger_check::{self, Verdict};
use tpcc::run::{RunOptions, run};
use tpcc::target::Target;
use tpcc::terminal::Mode;

const SEED: u64 = 4711;

fn engine() -> Engine {
    let name = std::env::var("MOT_TEST_ENGINE").unwrap_or_else(|_| "mot".to_owned());
    Engine::from_str(&name, true).expect("MOT_TEST_ENGINE is mot or heap")
}

/// The last entry whose effect `wanted` picks.
fn last(ledger: &Ledger, wanted: fn(&Effect) -> bool) -> &Entry {
    let found = ledger
        .acknowledged
        .iter()
        .rev()
        .find(|entry| wanted(&entry.effect));
    found.expect("half a second of TPC-C has every kind of effect")
}

struct Damage<'a> {
    target: &'a Target,
    ledger: &'a Ledger,
}

impl Damage<'_> {
    /// Runs `statement`, compares, runs `repair`; the database is then as before.
    fn of(&self, statement: &str, repair: &str) -> Verdict {
        let mut client = self.target.client().unwrap();
        let touched = client.execute(statement, &[]).unwrap();
        assert!(touched > 0, "{statement} did nothing");
        let verdict = ledger_check::check(self.target, self.ledger).unwrap();
        client.batch_execute(repair).unwrap();
        let after = ledger_check::check(self.target, self.ledger).unwrap();
        assert!(after.holds(), "after {repair}: {after}");
        verdict
    }
}

#[test]
fn every_damage_shows() {
    println!("seed {SEED}, engine {}", engine());
    let settings = support::settings(engine());
    let mut cluster = Cluster::create(&scratch_directory("mot-ledger"), None, &settings).unwrap();
    cluster.start_and_wait().unwrap();
    let target = cluster.target(engine(), None).unwrap();
    support::small_load(&target, SEED, false).unwrap();
    for mode in [Mode::Interactive, Mode::Procedures] {
        damage_all(&cluster, &target, mode);
    }
}

fn damage_all(cluster: &Cluster, target: &Target, mode: Mode) {
    let path = cluster.directory().join(format!("ledger-{mode}"));
    let options = RunOptions {
        terminals: 3,
        duration: Duration::from_millis(1500),
        warmup: Duration::ZERO,
        mode,
        seed: SEED,
        ledger: Some(path.clone()),
        fixed_warehouse: false,
        rate: None,
        progress: false,
    };
    let report = run(target, &options, &mut ()).unwrap();
    assert_eq!((report.troubles(), report.disconnects), (0, 0), "{report}");
    let ledger = Ledger::read(&path).unwrap();
    let whole = ledger_check::check(target, &ledger).unwrap();
    assert!(whole.holds() && whole.acknowledged > 0, "{whole}");
    assert_eq!(check::violations(&check::check(target).unwrap()), 0);
    assert_eq!(
        check::table_complaints(target).unwrap(),
        Vec::<String>::new()
    );
    let damage = Damage {
        target,
        ledger: &ledger,
    };

    // An order without one of its lines.
    let order = last(&ledger, |effect| matches!(effect, Effect::NewOrder { .. }));
    let Effect::NewOrder { w, d, o, .. } = order.effect else {
        unreachable!()
    };
    let line = format!("ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {o} AND ol_number = 1");
    let verdict = damage.of(
        &format!("UPDATE bmsql_order_line SET ol_o_id = ol_o_id + 1000000 WHERE {line}"),
        &format!(
            "UPDATE bmsql_order_line SET ol_o_id = {o} WHERE {}",
            line.replace(&format!("= {o} "), &format!("= {} ", o + 1_000_000))
        ),
    );
    assert_eq!(
        (verdict.lost.len(), verdict.extra.len()),
        (1, 0),
        "{verdict}"
    );

    // The order itself, as if its commit had been lost.
    let verdict = damage.of(
        &format!(
            "UPDATE bmsql_oorder SET o_id = -1 WHERE o_w_id = {w} AND o_d_id = {d} AND o_id = {o}"
        ),
        &format!(
            "UPDATE bmsql_oorder SET o_id = {o} WHERE o_w_id = {w} AND o_d_id = {d} AND o_id = -1"
        ),
    );
    assert_eq!(verdict.lost.len(), 1, "{verdict}");

    // A payment.
    let payment = last(&ledger, |effect| matches!(effect, Effect::Payment { .. }));
    let tag = format!("{}:{}:{}", ledger.run, payment.terminal, payment.seq);
    let (first, rest) = tag.split_at(1);
    let rename = |from: &str, to: &str| {
        format!(
            "UPDATE bmsql_history SET h_data = '{to}' || substr(h_data, 2) \
             WHERE h_data LIKE '{from}{rest} %'"
        )
    };
    let verdict = damage.of(&rename(first, "-"), &rename("-", first));
    assert_eq!(
        (verdict.lost.len(), verdict.extra.len()),
        (1, 0),
        "{verdict}"
    );

    // A payment nobody made.
    let extra_tag = format!(
        "{}:{}:{}",
        ledger.run,
        payment.terminal,
        payment.seq + 1_000
    );
    let columns = "h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount";
    let verdict = damage.of(
        &format!(
            "INSERT INTO bmsql_history ({columns}, h_data) SELECT {columns}, '{extra_tag}' \
             FROM bmsql_history WHERE h_data LIKE '{tag} %'"
        ),
        &format!("DELETE FROM bmsql_history WHERE h_data = '{extra_tag}'"),
    );
    assert_eq!(
        (verdict.lost.len(), verdict.extra.len()),
        (0, 1),
        "{verdict}"
    );

    // A delivery undone for one of its orders.
    let delivery = last(&ledger, |effect| matches!(effect, Effect::Delivery { .. }));
    let Effect::Delivery { w, carrier, orders } = &delivery.effect else {
        unreachable!()
    };
    let (d, o) = (orders[0].d, orders[0].o);
    let key = format!("o_w_id = {w} AND o_d_id = {d} AND o_id = {o}");
    let verdict = damage.of(
        &format!("UPDATE bmsql_oorder SET o_carrier_id = NULL WHERE {key}"),
        &format!("UPDATE bmsql_oorder SET o_carrier_id = {carrier} WHERE {key}"),
    );
    assert_eq!(
        (verdict.lost.len(), verdict.extra.len()),
        (1, 0),
        "{verdict}"
    );

    // An order nobody placed.
    let next = format!(
        "bmsql_district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = {w} AND d_id = {d}"
    );
    let verdict = damage.of(
        &format!("UPDATE {next}"),
        &format!("UPDATE {}", next.replace("+ 1 ", "- 1 ")),
    );
    assert_eq!(
        (verdict.lost.len(), verdict.extra.len()),
        (0, 1),
        "{verdict}"
    );
}
