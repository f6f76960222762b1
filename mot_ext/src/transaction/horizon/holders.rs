//! The view `mot.stat_horizon`: what holds row versions back, and which.
use super::{line, local_xid, processes};
use crate::shared_memory;
use crate::transaction::clock::widen;
use pgrx::prelude::*;

/// Backends whose only snapshot is known exactly: they hold back what it sees, and nothing newer.
#[pg_extern(stable, parallel_safe)]
fn published_snapshots() -> SetOfIterator<'static, i32> {
    if shared_memory::engine().is_none() {
        crate::errors::not_preloaded();
    }
    let mut pids = Vec::new();
    for (place, process) in processes().iter().enumerate() {
        // SAFETY: words that their process writes; an old answer is good enough here.
        let (pid, xid, xmin) = unsafe {
            (
                (&raw const process.pid).read_volatile(),
                (&raw const process.xid).read_volatile(),
                widen((&raw const process.xmin).read_volatile()),
            )
        };
        let is_published =
            line(place).is_some_and(|line| line.read(local_xid(process), xmin).is_some());
        if pid != 0 && xid == pg_sys::InvalidTransactionId && is_published {
            pids.push(pid);
        }
    }
    SetOfIterator::new(pids)
}

// PostgreSQL's own views know which process has which snapshot; a transaction's own id holds back
// as a snapshot does.
extension_sql!(
    r#"
CREATE VIEW mot.stat_horizon AS
  SELECT CASE WHEN a.backend_type = 'walsender' THEN 'standby' ELSE 'session' END AS kind,
         a.application_name AS name, a.pid, a.datname, a.usename, a.state, a.xact_start AS since,
         CASE WHEN a.backend_xmin IS NULL OR age(a.backend_xid) > age(a.backend_xmin)
              THEN a.backend_xid ELSE a.backend_xmin END AS xmin,
         greatest(age(a.backend_xid), age(a.backend_xmin)) AS age,
         CASE WHEN a.backend_xmin IS NOT NULL AND t.pid IS NOT NULL THEN 'what it sees' ELSE 'all since' END AS keeps
  FROM pg_stat_activity a LEFT JOIN mot.published_snapshots() t(pid) USING (pid)
  WHERE a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL
  UNION ALL
  SELECT 'prepared transaction', p.gid, NULL, p.database, p.owner, NULL, p.prepared, p.transaction,
         age(p.transaction), 'all since'
  FROM pg_prepared_xacts p
  UNION ALL
  SELECT 'replication slot', s.slot_name, s.active_pid, s.database, NULL,
         CASE WHEN s.active THEN 'active' ELSE 'inactive' END, NULL,
         s.xmin, age(s.xmin), 'all since'
  FROM pg_replication_slots s WHERE s.xmin IS NOT NULL;
REVOKE EXECUTE ON FUNCTION mot.published_snapshots() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mot.published_snapshots() TO pg_monitor;
GRANT SELECT ON mot.stat_horizon TO pg_monitor;
"#,
    name = "stat_horizon",
    requires = [published_snapshots, "views"]
);
