//! Times as PostgreSQL sends and takes them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds from 1970-01-01 to 2000-01-01, PostgreSQL's first moment.
const POSTGRES_EPOCH_SECONDS: u64 = 946_684_800;

/// Now, in microseconds since 2000-01-01, in UTC.
pub fn now_micros() -> i64 {
    let epoch = UNIX_EPOCH + Duration::from_secs(POSTGRES_EPOCH_SECONDS);
    match SystemTime::now().duration_since(epoch) {
        Ok(since) => since.as_micros() as i64,
        Err(before) => -(before.duration().as_micros() as i64),
    }
}
