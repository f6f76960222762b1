//! What the server spends on a run: WAL and CPU time, read where the measurement begins and ends.

use crate::cluster::Cluster;
use crate::failure::{Failure, Result};
use crate::report::RunReport;
use crate::run::Observer;
use crate::target::from_client;
use postgres::NoTls;
use std::time::Duration;

/// One reading of the server's counters.
#[derive(Clone, Debug)]
struct Reading {
    /// Position up to which WAL has been inserted, in bytes.
    insert_bytes: i64,
    /// Position up to which it has been flushed, as pg_waldump takes it.
    flush_lsn: String,
    cpu: Duration,
}

/// A run together with what it cost the server.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The driver's report.
    pub report: RunReport,
    /// WAL the whole server wrote during the measurement.
    pub wal_bytes: i64,
    /// Of `wal_bytes`, the part that is full-page images; only of runs that were looked into.
    pub full_page_share: Option<f64>,
    /// CPU time of all server processes during the measurement.
    pub server_cpu: Duration,
    /// CPU time of the driver over the whole run, warm-up included.
    pub client_cpu: Duration,
}

/// Reads the counters when the measurement begins and when it ends.
pub struct ServerMeter<'a> {
    cluster: &'a Cluster,
    client: postgres::Client,
    begin: Option<Result<Reading>>,
    end: Option<Result<Reading>>,
}

impl<'a> ServerMeter<'a> {
    /// A meter on a running server.
    pub fn new(cluster: &'a Cluster) -> Result<Self> {
        let client = postgres::Client::connect(&cluster.url(), NoTls).map_err(from_client)?;
        Ok(ServerMeter {
            cluster,
            client,
            begin: None,
            end: None,
        })
    }

    fn read(&mut self) -> Result<Reading> {
        let query = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, \
                     pg_current_wal_flush_lsn()::text";
        let row = self.client.query_one(query, &[]).map_err(from_client)?;
        let cpu = self.cluster.cpu_time()?;
        Ok(Reading {
            insert_bytes: row.get(0),
            flush_lsn: row.get(1),
            cpu,
        })
    }

    /// Puts the readings beside the run's report. `look_into_wal` asks pg_waldump what the WAL
    /// consists of, which takes a second per gigabyte or two.
    pub fn finish(
        self,
        report: RunReport,
        client_cpu: Duration,
        look_into_wal: bool,
    ) -> Result<Measured> {
        let missing = || Failure::unexpected("the measurement was not bracketed");
        let begin = self.begin.ok_or_else(missing)??;
        let end = self.end.ok_or_else(missing)??;
        let full_page_share = look_into_wal
            .then(|| full_page_share(self.cluster, &begin, &end))
            .transpose()?;
        Ok(Measured {
            report,
            wal_bytes: end.insert_bytes - begin.insert_bytes,
            full_page_share,
            server_cpu: end.cpu.saturating_sub(begin.cpu),
            client_cpu,
        })
    }
}

impl Observer for ServerMeter<'_> {
    fn measurement_begins(&mut self) {
        self.begin = Some(self.read());
    }

    fn measurement_ended(&mut self) {
        self.end = Some(self.read());
    }
}

/// The share of full-page images in the WAL between two readings.
fn full_page_share(cluster: &Cluster, begin: &Reading, end: &Reading) -> Result<f64> {
    let output = cluster
        .program("pg_waldump")
        .args(["--stats", "-p"])
        .arg(cluster.data().join("pg_wal"))
        .args(["-s", &begin.flush_lsn, "-e", &end.flush_lsn])
        .output()
        .map_err(|error| Failure::unexpected(format!("pg_waldump: {error}")))?;
    parse_full_page_share(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        Failure::unexpected(format!("pg_waldump printed no total: {errors}"))
    })
}

/// Out of pg_waldump's last line: count, record bytes, full-page bytes, all bytes, each of the
/// last three followed by a share in brackets.
fn parse_full_page_share(output: &str) -> Option<f64> {
    let line = output
        .lines()
        .find(|line| line.trim_start().starts_with("Total"))?;
    let numbers: Vec<f64> = line
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [_count, _records, full_pages, all] = numbers[..] else {
        return None;
    };
    Some(full_pages / all.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_pg_waldump_is_read() {
        let output = "WAL statistics between 0/1 and 0/2:\nType N (%)\n----\n\
            Heap    10 ( 50.00)   1000 (50.0)  0 (0.0)  1000 (10.0)\n\
            Total                 20           2000 [20.00%]        8000 [80.00%]   10000 [100%]\n";
        assert_eq!(parse_full_page_share(output), Some(0.8));
        assert_eq!(parse_full_page_share("nothing"), None);
    }
}
