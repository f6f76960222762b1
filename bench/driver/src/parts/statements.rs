//! Single prepared statements through pgbench, beside what the protocol costs without a table.
//!
//! Writing statements run under asynchronous and synchronous commit. `select_1`, `xid` (a statement
//! that only takes a transaction id), `record` (one that also writes one WAL record, of no table)
//! and `record_asked` (the same with an INSERT's parameters) are the floors. A round is one run of
//! every statement by every side with one number of clients, the floors among them: what is
//! compared lies close together in time, and the rounds of one figure lie apart.

use super::Bench;
use crate::pgbench::{self, Load};
use crate::plan::{Length, Plan};
use crate::record::Place;
use crate::rig::Rig;
use crate::side::{Side, turns};
use postgres::Client;
use tpcc::failure::Result;
use tpcc::target::execute;

pub(crate) const PART: &str = "statements";

/// Clients' ids share out the rows of `rotated`: no two clients touch the same one.
const CLIENTS_MAX: i64 = 64;
/// Rows inserted by one client have ids of their own: this far apart.
const CLIENT_STRIDE: i64 = 1_000_000_000_000;
const BRANCHES: i64 = 10;
const TELLERS: i64 = 100;

/// One statement.
pub(crate) struct Work {
    pub name: &'static str,
    pub writes: bool,
    /// Compared with unlogged tables in the quick form, too.
    with_unlogged: bool,
    script: &'static str,
}

pub(crate) const WORKS: [Work; 8] = [
    Work {
        name: "point_select",
        writes: false,
        with_unlogged: false,
        script: "\\set id random(1, :rows)\nSELECT balance FROM account WHERE id = :id;\n",
    },
    Work {
        name: "secondary_select",
        writes: false,
        with_unlogged: false,
        script: "\\set code random(1, :rows)\nSELECT balance FROM account WHERE code = :code;\n",
    },
    Work {
        name: "range_100",
        writes: false,
        with_unlogged: false,
        script: "\\set first random(1, :rows - 99)\n\\set last :first + 99\n\
                 SELECT id, balance FROM account WHERE id BETWEEN :first AND :last;\n",
    },
    Work {
        name: "in_10",
        writes: false,
        with_unlogged: false,
        script: "\\set a random(1, :rows)\n\\set b random(1, :rows)\n\\set c random(1, :rows)\n\\set d \
            random(1, :rows)\n\
                 \\set e random(1, :rows)\n\\set f random(1, :rows)\n\\set g random(1, :rows)\n\\set h \
                 random(1, :rows)\n\
                 \\set i random(1, :rows)\n\\set j random(1, :rows)\n\
                 SELECT id, balance FROM account WHERE id IN (:a, :b, :c, :d, :e, :f, :g, :h, :i, :j);\n",
    },
    Work {
        name: "update",
        writes: true,
        with_unlogged: true,
        script: "\\set id random(1, :rows)\n\\set delta random(-5000, 5000)\n\
                 UPDATE account SET balance = balance + :delta WHERE id = :id;\n",
    },
    Work {
        name: "insert",
        writes: true,
        with_unlogged: true,
        script: "\\set n :n + 1\n\\set id :client_id * :stride + :n\n\
                 INSERT INTO journal (id, account, delta, filler) VALUES (:id, :n, 1, 'sixteen bytes ..');\n",
    },
    Work {
        name: "delete_insert",
        writes: true,
        with_unlogged: false,
        script: "\\set id random(0, :rows / :clients_max - 1) * :clients_max + :client_id + 1\n\
                 BEGIN;\nDELETE FROM rotated WHERE id = :id;\n\
                 INSERT INTO rotated (id, account, delta, filler) VALUES (:id, 1, 1, 'sixteen bytes ..');\nEND;\n",
    },
    Work {
        name: "tpc_b",
        writes: true,
        with_unlogged: false,
        script: "\\set id random(1, :rows)\n\\set branch random(1, :branches)\n\\set teller random(1, :tellers)\n\
                 \\set delta random(-5000, 5000)\nBEGIN;\n\
                 UPDATE account SET balance = balance + :delta WHERE id = :id;\n\
                 SELECT balance FROM account WHERE id = :id;\n\
                 UPDATE teller SET balance = balance + :delta WHERE id = :teller;\n\
                 UPDATE branch SET balance = balance + :delta WHERE id = :branch;\n\
                 INSERT INTO history (teller, branch, account, delta, at) \
                 VALUES (:teller, :branch, :id, :delta, CURRENT_TIMESTAMP);\nEND;\n",
    },
];

/// The floors: name, script, whether the kind of commit matters.
pub(crate) const FLOORS: [(&str, bool, &str); 4] = [
    ("select_1", false, "SELECT 1;\n"),
    ("xid", true, "SELECT pg_current_xact_id();\n"),
    // Without a record of its own a transaction is not flushed at its commit, whatever kind that
    // is.
    (
        "record",
        true,
        "SELECT pg_logical_emit_message(true, '', '');\n",
    ),
    // What pgbench does for an INSERT it does for this one: the same variables, two parameters,
    // nearly as long a record.
    (
        RECORD_ASKED,
        true,
        "\\set n :n + 1\n\\set id :client_id * :stride + :n\n\
         SELECT pg_logical_emit_message(true, :id, :n);\n",
    ),
];

/// The floor under writing statements that are asked with two parameters.
pub(crate) const RECORD_ASKED: &str = "record_asked";

/// How a reading statement's setting is called.
pub(crate) fn reading(clients: u32) -> String {
    format!("{clients} clients")
}

/// How a writing statement's setting is called.
pub(crate) fn writing(clients: u32, synchronous: bool) -> String {
    let commit = if synchronous {
        "synchronous"
    } else {
        "asynchronous"
    };
    format!("{clients} clients, {commit}")
}

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let plan = bench.rig.plan.clone();
    for side in Side::TABLES {
        fill(bench.rig, side)?;
    }
    bench.rig.checkpoint()?;
    write_scripts(bench.rig)?;
    let mut all_clients = [plan.clients, plan.clients_synchronous].concat();
    all_clients.sort_unstable();
    all_clients.dedup();
    for clients in all_clients {
        bench.say(&format!("statements, {clients} clients"));
        for round in 0..plan.rounds {
            bench.rig.make_room_for_wal()?;
            for (name, writes, _) in FLOORS.into_iter().filter(|floor| floor.0 != RECORD_ASKED) {
                for synchronous in commits(&plan, clients, writes) {
                    one(bench, name, writes, Side::Floor, clients, synchronous)?;
                }
            }
            for work in WORKS {
                if bench.wants(work.name) {
                    one_round(bench, &work, clients, round)?;
                }
            }
        }
    }
    Ok(())
}

/// Puts the scripts where pgbench finds them.
pub(crate) fn write_scripts(rig: &Rig) -> Result<()> {
    for (name, _, script) in FLOORS {
        rig.write_file(&script_name(name), script)?;
    }
    for work in WORKS {
        rig.write_file(&script_name(work.name), work.script)?;
    }
    Ok(())
}

/// One statement, everybody's turn, under every kind of commit.
fn one_round(bench: &mut Bench<'_>, work: &Work, clients: u32, round: usize) -> Result<()> {
    let plan = bench.rig.plan.clone();
    let unlogged = work.writes && (plan.unlogged_everywhere || work.with_unlogged);
    let sides = &Side::TABLES[..if unlogged { 3 } else { 2 }];
    for synchronous in commits(&plan, clients, work.writes) {
        for side in turns(sides, round) {
            refresh(&mut bench.rig.client(side)?, side)?;
            // What the one before has left behind, dirty pages to write, slows whoever comes next.
            if side == Side::Mot && work.name == "insert" {
                one(bench, RECORD_ASKED, true, Side::Floor, clients, synchronous)?;
            }
            one(bench, work.name, work.writes, side, clients, synchronous)?;
        }
    }
    Ok(())
}

/// Kinds of commit (whether synchronous) under which a statement runs with that many clients.
fn commits(plan: &Plan, clients: u32, writes: bool) -> Vec<bool> {
    let mut commits = Vec::new();
    if plan.clients.contains(&clients) {
        commits.push(false);
    }
    if writes && plan.clients_synchronous.contains(&clients) {
        commits.push(true);
    }
    commits
}

fn script_name(work: &str) -> String {
    format!("{work}.sql")
}

fn one(
    bench: &mut Bench<'_>,
    name: &str,
    writes: bool,
    side: Side,
    clients: u32,
    synchronous: bool,
) -> Result<()> {
    let setting = if writes {
        writing(clients, synchronous)
    } else {
        reading(clients)
    };
    let length = bench.rig.plan.statement;
    let load = load(bench.rig, name, writes, clients, synchronous, length);
    pgbench::measure(
        bench.rig,
        bench.record,
        &Place::new(PART, name, setting),
        side,
        &load,
    )
}

/// A run of one of the scripts.
pub(crate) fn load(
    rig: &Rig,
    name: &str,
    writes: bool,
    clients: u32,
    synchronous: bool,
    length: Length,
) -> Load {
    Load {
        script: rig.cluster.directory().join(script_name(name)),
        clients,
        writes,
        synchronous,
        length,
        variables: vec![
            ("rows", rig.plan.rows),
            ("n", 0),
            ("stride", CLIENT_STRIDE),
            ("clients_max", CLIENTS_MAX),
            ("branches", BRANCHES),
            ("tellers", TELLERS),
        ],
    }
}

/// Makes and fills the tables. `code` is a permutation of the ids; the multiplier shares no factor
/// with any number of rows used here.
pub(crate) fn fill(rig: &Rig, side: Side) -> Result<()> {
    let mut client = rig.client(side)?;
    let rows = rig.plan.rows;
    let plain = "id bigint PRIMARY KEY, account bigint NOT NULL, delta bigint NOT NULL, filler text NOT NULL";
    for (table, columns) in [
        (
            "account",
            "id bigint PRIMARY KEY, code int NOT NULL, balance bigint NOT NULL, filler char(84) NOT NULL",
        ),
        ("journal", plain),
        ("rotated", plain),
        (
            "teller",
            "id int PRIMARY KEY, balance bigint NOT NULL, filler char(84) NOT NULL",
        ),
        (
            "branch",
            "id int PRIMARY KEY, balance bigint NOT NULL, filler char(84) NOT NULL",
        ),
        (
            "history",
            "teller int, branch int, account bigint, delta bigint, at timestamp, filler char(22)",
        ),
    ] {
        execute(&mut client, &side.create(&format!("{table} ({columns})")))?;
    }
    for statement in [
        format!(
            "INSERT INTO account SELECT n, n * 7919 % {rows} + 1, 0, '' FROM generate_series(1::bigint, {rows}) n"
        ),
        "CREATE INDEX ON account (code)".to_owned(),
        format!(
            "INSERT INTO rotated SELECT n, 1, 1, 'sixteen bytes ..' FROM generate_series(1, {rows}) n"
        ),
        format!("INSERT INTO teller SELECT n, 0, '' FROM generate_series(1, {TELLERS}) n"),
        format!("INSERT INTO branch SELECT n, 0, '' FROM generate_series(1, {BRANCHES}) n"),
    ] {
        execute(&mut client, &statement)?;
    }
    for table in [
        "account", "journal", "rotated", "teller", "branch", "history",
    ] {
        execute(&mut client, &side.settle(table))?;
    }
    Ok(())
}

/// Before each run: tables that only grow are empty again, and heap tables have been vacuumed, so
/// that no run pays for another's rows.
pub(crate) fn refresh(client: &mut Client, side: Side) -> Result<()> {
    execute(client, "TRUNCATE journal")?;
    execute(client, "TRUNCATE history")?;
    if side != Side::Mot {
        for table in ["account", "rotated", "teller", "branch"] {
            execute(client, &format!("VACUUM {table}"))?;
        }
    }
    Ok(())
}
