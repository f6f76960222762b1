//! Loads a database: tables, rows by COPY, keys, procedures, statistics (clause 4.3.3).
//!
//! The warehouses are shared out among a few threads; a warehouse is one transaction. All rows
//! follow from the seed, whatever the number of threads.

use crate::failure::{Failure, Result};
use crate::procedures;
use crate::random::TpccRng;
use crate::rows;
use crate::scale::{LoadedConfig, Scale};
use crate::schema::{
    ATTACH_HISTORY_SEQUENCE, CREATE_HISTORY_SEQUENCE, TABLES, analyze, foreign_keys, prologue,
};
use crate::target::{Target, execute, from_client};
use std::io::Write as _;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Rows are handed to COPY in pieces of about this many bytes.
const COPY_CHUNK_BYTES: usize = 128 * 1024;

/// Memory for sorting while indexes are built on heap tables.
const MAINTENANCE_WORK_MEM: &str = "256MB";

/// What to load.
pub struct LoadOptions {
    /// Sizes of the tables.
    pub scale: Scale,
    /// Seed of all random data.
    pub seed: u64,
    /// Threads that load.
    pub workers: usize,
    /// Keys and indexes before the rows, so that COPY maintains them.
    pub keys_first: bool,
    /// BenchmarkSQL's foreign keys, after the rows.
    pub foreign_keys: bool,
    /// Say what is being done.
    pub verbose: bool,
}

/// How long the load's parts took.
#[derive(Debug)]
pub struct LoadTimes {
    /// COPY of all rows.
    pub rows: Duration,
    /// Keys and indexes, foreign keys with them.
    pub keys: Duration,
}

/// Drops what the target's schema holds and loads it anew.
pub fn load(target: &Target, options: &LoadOptions) -> Result<LoadTimes> {
    let mut client = target.client()?;
    for statement in prologue(target.engine, &target.schema) {
        execute(&mut client, &statement)?;
    }
    for table in &TABLES {
        execute(&mut client, &table.create(target.engine))?;
    }
    execute(&mut client, CREATE_HISTORY_SEQUENCE)?;

    let constants = TpccRng::new(options.seed, 0).load_constants();
    let config = LoadedConfig {
        scale: options.scale,
        constants,
        first_delivery_count: 0,
    };
    let mut keys = Duration::ZERO;
    if options.keys_first {
        keys = add_keys(&mut client)?;
    }
    let start = Instant::now();
    for (name, value) in config.entries() {
        let value = value.to_string();
        client
            .execute(
                "INSERT INTO bmsql_config (cfg_name, cfg_value) VALUES ($1, $2)",
                &[&name, &value],
            )
            .map_err(from_client)?;
    }
    load_rows(target, &config, options)?;
    let rows = start.elapsed();
    say(
        options,
        &format!("rows loaded in {:.1} s", rows.as_secs_f64()),
    );
    if !options.keys_first {
        keys = add_keys(&mut client)?;
        say(
            options,
            &format!("keys and indexes built in {:.1} s", keys.as_secs_f64()),
        );
    }
    if options.foreign_keys {
        let start = Instant::now();
        for statement in foreign_keys() {
            execute(&mut client, &statement)?;
        }
        keys += start.elapsed();
    }
    for statement in ATTACH_HISTORY_SEQUENCE {
        execute(&mut client, statement)?;
    }
    execute(&mut client, procedures::DEFINITIONS)?;
    for table in &TABLES {
        execute(&mut client, &analyze(table))?;
    }
    Ok(LoadTimes { rows, keys })
}

fn add_keys(client: &mut postgres::Client) -> Result<Duration> {
    let start = Instant::now();
    execute(
        client,
        &format!("SET maintenance_work_mem = '{MAINTENANCE_WORK_MEM}'"),
    )?;
    for statement in TABLES.iter().flat_map(|table| table.keys()) {
        execute(client, &statement)?;
    }
    Ok(start.elapsed())
}

/// Job 0 is the item table, job `w` is warehouse `w`; threads take the next one until none is left.
fn load_rows(target: &Target, config: &LoadedConfig, options: &LoadOptions) -> Result<()> {
    let next_job = AtomicI32::new(0);
    let workers = options
        .workers
        .clamp(1, config.scale.warehouses as usize + 1);
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            let mut client = target.client()?;
            loop {
                let job = next_job.fetch_add(1, Ordering::Relaxed);
                if job > config.scale.warehouses {
                    return Ok(());
                }
                // Stream 0 made the constants.
                let mut rng = TpccRng::new(options.seed, 1 + job as u64);
                if job == 0 {
                    load_items(&mut client, &mut rng, config.scale.items)?;
                } else {
                    load_warehouse(&mut client, &mut rng, config, job)?;
                    say(
                        options,
                        &format!("warehouse {job} of {}", config.scale.warehouses),
                    );
                }
            }
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(Failure::unexpected("a loading thread panicked")))
        })
    })
}

fn load_items(client: &mut postgres::Client, rng: &mut TpccRng, items: i32) -> Result<()> {
    let mut transaction = client.transaction().map_err(from_client)?;
    copy(&mut transaction, rows::ITEM_COLUMNS, |chunk| {
        (1..=items).try_for_each(|item| {
            rows::push_item(chunk.rows(), rng, item);
            chunk.send_if_full()
        })
    })?;
    transaction.commit().map_err(from_client)
}

fn load_warehouse(
    client: &mut postgres::Client,
    rng: &mut TpccRng,
    config: &LoadedConfig,
    w: i32,
) -> Result<()> {
    let mut transaction = client.transaction().map_err(from_client)?;
    let now: String = transaction
        .query_one("SELECT localtimestamp::text", &[])
        .map_err(from_client)?
        .get(0);
    let maker = rows::WarehouseRows {
        w,
        scale: config.scale,
        c_last: config.constants.c_last,
        now: &now,
    };

    copy(&mut transaction, rows::WAREHOUSE_COLUMNS, |chunk| {
        maker.push_warehouse(chunk.rows(), rng);
        Ok(())
    })?;
    copy(&mut transaction, rows::STOCK_COLUMNS, |chunk| {
        (1..=config.scale.items).try_for_each(|item| {
            maker.push_stock(chunk.rows(), rng, item);
            chunk.send_if_full()
        })
    })?;
    let districts = || 1..=crate::scale::DISTRICTS;
    copy(&mut transaction, rows::DISTRICT_COLUMNS, |chunk| {
        districts().for_each(|d| maker.push_district(chunk.rows(), rng, d));
        Ok(())
    })?;
    let customers = || districts().flat_map(|d| (1..=config.scale.customers).map(move |c| (d, c)));
    copy(&mut transaction, rows::CUSTOMER_COLUMNS, |chunk| {
        customers().try_for_each(|(d, c)| {
            maker.push_customer(chunk.rows(), rng, d, c);
            chunk.send_if_full()
        })
    })?;
    copy(&mut transaction, rows::HISTORY_COLUMNS, |chunk| {
        customers().try_for_each(|(d, c)| {
            maker.push_history(chunk.rows(), rng, d, c);
            chunk.send_if_full()
        })
    })?;
    // An order's row and its lines are drawn together; the few bytes of the orders wait.
    let (mut orders, mut new_orders) = (Vec::new(), Vec::new());
    copy(&mut transaction, rows::ORDER_LINE_COLUMNS, |chunk| {
        for d in districts() {
            for (o, c) in (1..).zip(rng.permutation(config.scale.customers)) {
                let lines = maker.push_order(&mut orders, &mut new_orders, rng, d, o, c);
                maker.push_order_lines(chunk.rows(), rng, d, o, lines);
                chunk.send_if_full()?;
            }
        }
        Ok(())
    })?;
    for (columns, rows) in [
        (rows::ORDER_COLUMNS, orders),
        (rows::NEW_ORDER_COLUMNS, new_orders),
    ] {
        copy(&mut transaction, columns, |chunk| {
            chunk.rows().extend_from_slice(&rows);
            Ok(())
        })?;
    }
    transaction.commit().map_err(from_client)
}

/// Rows on their way into one COPY.
struct Chunk<'a> {
    writer: postgres::CopyInWriter<'a>,
    rows: Vec<u8>,
}

impl Chunk<'_> {
    fn rows(&mut self) -> &mut Vec<u8> {
        &mut self.rows
    }

    fn send_if_full(&mut self) -> Result<()> {
        if self.rows.len() >= COPY_CHUNK_BYTES {
            self.send()
        } else {
            Ok(())
        }
    }

    fn send(&mut self) -> Result<()> {
        self.writer
            .write_all(&self.rows)
            .map_err(|error| Failure::unexpected(error.to_string()))?;
        self.rows.clear();
        Ok(())
    }
}

/// One COPY into `columns` ("table (columns)") of the rows that `fill` produces.
fn copy(
    transaction: &mut postgres::Transaction<'_>,
    columns: &str,
    fill: impl FnOnce(&mut Chunk<'_>) -> Result<()>,
) -> Result<()> {
    let statement = format!("COPY {columns} FROM STDIN");
    let writer = transaction.copy_in(&statement).map_err(from_client)?;
    let mut chunk = Chunk {
        writer,
        rows: Vec::with_capacity(COPY_CHUNK_BYTES + 4096),
    };
    fill(&mut chunk)?;
    chunk.send()?;
    chunk.writer.finish().map_err(from_client)?;
    Ok(())
}

fn say(options: &LoadOptions, what: &str) {
    if options.verbose {
        eprintln!("load: {what}");
    }
}
