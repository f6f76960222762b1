//! How much is measured, by form: full, quick, smoke. Every size and length of every part is here.

use std::fmt;
use std::time::Duration;
use tpcc::scale::Scale;

/// Rows whose memory is taken: so many that the arena's unit, 2 MiB, is a byte a row.
const MEMORY_ROWS: i64 = 2_000_000;

/// The forms of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Everything, for hours.
    Full,
    /// What fits into 30 minutes.
    Quick,
    /// Some seconds; figures mean nothing.
    Smoke,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Form::Full => "full",
            Form::Quick => "quick",
            Form::Smoke => "smoke",
        })
    }
}

/// How long one pgbench or sysbench run lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    /// That many seconds.
    Seconds(u32),
    /// That many transactions of each client.
    Transactions(u32),
}

/// One TPC-C setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TpccSetting {
    pub warehouses: i32,
    pub terminals: u32,
    /// Whether the interactive mode runs, too; procedures always do.
    pub interactive: bool,
    /// Whether the tables have the foreign keys of BenchmarkSQL's schema, of both kinds.
    pub foreign_keys: bool,
}

/// Sizes and lengths.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub form: Form,
    /// Rounds of everything that is compared.
    pub rounds: usize,
    /// Rows of the tables that statements work on.
    pub rows: i64,
    /// One run of one statement.
    pub statement: Length,
    /// Clients of reading statements, and of writing ones with asynchronous commit.
    pub clients: &'static [u32],
    /// Clients of writing statements with synchronous commit.
    pub clients_synchronous: &'static [u32],
    /// Whether unlogged heap tables take part in every writing statement, or only in UPDATE and
    /// INSERT at one setting.
    pub unlogged_everywhere: bool,
    /// Statements of one PL/pgSQL loop.
    pub loop_length: i32,
    /// Statements of many rows in one round.
    pub many_rows_times: u32,
    /// Statements of the short and of the long session whose instructions are counted.
    pub counted_statements: [u32; 2],
    pub sysbench_tables: u32,
    pub sysbench_rows: u32,
    pub sysbench_threads: &'static [u32],
    pub sysbench_tests: &'static [&'static str],
    pub sysbench: Length,
    /// InnoDB's buffer pool: all of its tables fit.
    pub innodb_pool: &'static str,
    pub tpcc: &'static [TpccSetting],
    /// Sizes other than those that the number of warehouses gives.
    pub tpcc_scale: fn(i32) -> Scale,
    pub tpcc_duration: Duration,
    pub tpcc_warmup: Duration,
    /// The long run: of MOT, and of heap beside it.
    pub endurance: [Duration; 2],
    /// Time between two checkpoints of the long run, as `checkpoint_timeout` takes it.
    pub endurance_checkpoints: &'static str,
    /// Rows of one COPY.
    pub ingest_rows: i64,
    pub ingest_clients: &'static [u32],
    pub scan_rows: i64,
    pub memory_rows: i64,
    /// Rows that are replaced by others again and again, and how often.
    pub churn_rows: i32,
    pub churn_times: i32,
    pub shared_buffers: &'static str,
    /// Time after which a part has failed.
    pub part_limit: Duration,
}

fn tiny(warehouses: i32) -> Scale {
    Scale {
        warehouses,
        items: 1000,
        customers: 30,
    }
}

impl Plan {
    pub(crate) fn new(form: Form) -> Self {
        match form {
            Form::Full => Self::full(),
            Form::Quick => Self::quick(),
            Form::Smoke => Self::smoke(),
        }
    }

    fn full() -> Self {
        Plan {
            form: Form::Full,
            rounds: 5,
            rows: 1_000_000,
            statement: Length::Seconds(5),
            clients: &[1, 2, 8, 32, 64],
            clients_synchronous: &[1, 2, 8, 32, 64],
            unlogged_everywhere: true,
            loop_length: 500_000,
            many_rows_times: 100,
            counted_statements: [200, 2200],
            sysbench_tables: 10,
            sysbench_rows: 1_000_000,
            sysbench_threads: &[1, 2, 4, 16],
            sysbench_tests: &[
                "oltp_point_select",
                "oltp_read_only",
                "oltp_read_write",
                "oltp_write_only",
                "oltp_update_index",
            ],
            sysbench: Length::Seconds(15),
            innodb_pool: "4G",
            tpcc: &[
                TpccSetting {
                    warehouses: 10,
                    terminals: 10,
                    interactive: true,
                    foreign_keys: false,
                },
                TpccSetting {
                    warehouses: 10,
                    terminals: 50,
                    interactive: true,
                    foreign_keys: false,
                },
                TpccSetting {
                    warehouses: 20,
                    terminals: 50,
                    interactive: true,
                    foreign_keys: false,
                },
                TpccSetting {
                    warehouses: 10,
                    terminals: 10,
                    interactive: true,
                    foreign_keys: true,
                },
            ],
            tpcc_scale: Scale::full,
            tpcc_duration: Duration::from_secs(60),
            tpcc_warmup: Duration::from_secs(5),
            endurance: [Duration::from_secs(3600), Duration::from_secs(900)],
            endurance_checkpoints: "5min",
            ingest_rows: 1_000_000,
            ingest_clients: &[1, 2, 8],
            scan_rows: 2_000_000,
            memory_rows: MEMORY_ROWS,
            churn_rows: 300_000,
            churn_times: 100,
            shared_buffers: "4GB",
            part_limit: Duration::from_secs(4 * 3600),
        }
    }

    fn quick() -> Self {
        Plan {
            form: Form::Quick,
            rounds: 3,
            rows: 100_000,
            statement: Length::Seconds(2),
            clients: &[8],
            clients_synchronous: &[32],
            unlogged_everywhere: false,
            loop_length: 200_000,
            many_rows_times: 40,
            counted_statements: [200, 1200],
            sysbench_rows: 50_000,
            sysbench_tests: &["oltp_read_only", "oltp_read_write"],
            sysbench: Length::Seconds(2),
            innodb_pool: "1G",
            tpcc: &[
                TpccSetting {
                    warehouses: 10,
                    terminals: 10,
                    interactive: true,
                    foreign_keys: false,
                },
                TpccSetting {
                    warehouses: 10,
                    terminals: 50,
                    interactive: false,
                    foreign_keys: false,
                },
                TpccSetting {
                    warehouses: 10,
                    terminals: 10,
                    interactive: true,
                    foreign_keys: true,
                },
            ],
            tpcc_duration: Duration::from_secs(8),
            tpcc_warmup: Duration::from_secs(1),
            endurance: [Duration::from_secs(120), Duration::from_secs(60)],
            endurance_checkpoints: "30s",
            ingest_rows: 300_000,
            ingest_clients: &[8],
            scan_rows: 500_000,
            memory_rows: MEMORY_ROWS,
            churn_rows: 50_000,
            churn_times: 20,
            shared_buffers: "2GB",
            part_limit: Duration::from_secs(20 * 60),
            ..Self::full()
        }
    }

    fn smoke() -> Self {
        Plan {
            form: Form::Smoke,
            rounds: 1,
            rows: 1000,
            statement: Length::Transactions(5),
            clients: &[2, 8],
            clients_synchronous: &[32],
            loop_length: 100,
            many_rows_times: 2,
            counted_statements: [20, 420],
            sysbench_tables: 2,
            sysbench_rows: 100,
            sysbench_threads: &[2],
            sysbench: Length::Transactions(5),
            innodb_pool: "64M",
            tpcc: &[
                TpccSetting {
                    warehouses: 1,
                    terminals: 2,
                    interactive: true,
                    foreign_keys: false,
                },
                TpccSetting {
                    warehouses: 1,
                    terminals: 2,
                    interactive: true,
                    foreign_keys: true,
                },
            ],
            tpcc_scale: tiny,
            tpcc_duration: Duration::from_millis(200),
            tpcc_warmup: Duration::from_millis(50),
            endurance: [Duration::from_millis(1200), Duration::from_millis(1200)],
            ingest_rows: 1000,
            ingest_clients: &[2],
            scan_rows: 1000,
            memory_rows: 2000,
            churn_rows: 1000,
            churn_times: 2,
            shared_buffers: "128MB",
            part_limit: Duration::from_secs(5 * 60),
            ..Self::quick()
        }
    }

    /// The setting that the goals of TPC-C speak of.
    pub(crate) fn tpcc_main(&self) -> TpccSetting {
        self.tpcc[0]
    }
}
