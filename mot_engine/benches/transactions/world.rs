//! What the engine asks of PostgreSQL, as small as it can be: transaction ids, snapshots, outcomes,
//! a log that goes nowhere.

use mot_engine::{Clock, CommandId, Log, Lsn, Snapshot, Xid};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Threads at most.
pub const THREADS_MAX: usize = 8;
const FIRST_XID: u64 = 3;
/// Bytes of a log record's header, as PostgreSQL's.
const RECORD_HEADER_BYTES: u64 = 24;

/// By thread; 0 for none.
#[derive(Default)]
struct Processes {
    next: u64,
    running: [u64; THREADS_MAX],
    registered: [u64; THREADS_MAX],
    aborted: HashSet<u64>,
}

pub struct World {
    processes: Mutex<Processes>,
    log_end: AtomicU64,
}

impl World {
    pub fn new() -> World {
        let processes = Processes {
            next: FIRST_XID,
            ..Processes::default()
        };
        World {
            processes: Mutex::new(processes),
            log_end: AtomicU64::new(0),
        }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Processes) -> R) -> R {
        work(&mut self.processes.lock().expect("no thread panicked"))
    }

    /// A transaction id (for a writer) and a registered snapshot, in one visit.
    pub fn begin(&self, thread: usize, writes: bool) -> (Xid, Snap<'_>) {
        self.with(|processes| {
            let xid = if writes { processes.next } else { 0 };
            processes.next += u64::from(writes);
            processes.running[thread] = xid;
            let xmax = processes.next;
            let running = processes.running;
            let xmin = running
                .into_iter()
                .filter(|xid| *xid != 0)
                .min()
                .unwrap_or(xmax);
            processes.registered[thread] = xmin;
            (
                Xid(xid),
                Snap {
                    world: self,
                    xid,
                    xmin,
                    xmax,
                    running,
                },
            )
        })
    }

    pub fn end(&self, thread: usize, committed: bool) {
        self.with(|processes| {
            let xid = std::mem::take(&mut processes.running[thread]);
            if !committed && xid != 0 {
                processes.aborted.insert(xid);
            }
            processes.registered[thread] = 0;
        });
    }

    pub fn horizon(&self) -> Xid {
        self.with(|processes| {
            let held = processes.running.iter().chain(&processes.registered);
            Xid(held
                .copied()
                .filter(|xid| *xid != 0)
                .min()
                .unwrap_or(processes.next))
        })
    }

    pub fn is_running(&self, xid: Xid) -> bool {
        self.with(|processes| processes.running.contains(&xid.0))
    }

    fn committed(&self, xid: Xid) -> bool {
        self.with(|processes| !processes.aborted.contains(&xid.0))
    }

    pub fn log_bytes(&self) -> u64 {
        self.log_end.load(Ordering::Relaxed)
    }
}

/// A snapshot; of its own work a transaction sees all.
pub struct Snap<'a> {
    world: &'a World,
    xid: u64,
    xmin: u64,
    xmax: u64,
    running: [u64; THREADS_MAX],
}

impl Snapshot for Snap<'_> {
    fn xmin(&self) -> Xid {
        Xid(self.xmin)
    }
    fn own(&self, xid: Xid, _: CommandId) -> Option<bool> {
        (xid.0 == self.xid).then_some(true)
    }
    fn running(&self, xid: Xid) -> bool {
        xid.0 >= self.xmax || self.running.contains(&xid.0)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.world.committed(xid)
    }
}

impl Clock for Snap<'_> {
    fn is_current(&self, xid: Xid) -> bool {
        xid.0 == self.xid
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        self.world.is_running(xid)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.world.committed(xid)
    }
}

/// A log buffer that is written over and over.
pub struct Buffer<'a> {
    pub world: &'a World,
    pub bytes: Vec<u8>,
    at: usize,
}

impl<'a> Buffer<'a> {
    pub fn new(world: &'a World) -> Buffer<'a> {
        Buffer {
            world,
            bytes: vec![0; 16 << 20],
            at: 0,
        }
    }
}

impl Log for Buffer<'_> {
    fn append(&mut self, record: &[u8]) -> Lsn {
        if self.at + record.len() > self.bytes.len() {
            self.at = 0;
        }
        self.bytes[self.at..][..record.len()].copy_from_slice(record);
        self.at += record.len();
        let bytes = RECORD_HEADER_BYTES + record.len() as u64;
        Lsn(self.world.log_end.fetch_add(bytes, Ordering::Relaxed) + bytes)
    }
}
