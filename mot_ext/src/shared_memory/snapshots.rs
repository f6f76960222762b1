//! A published snapshot: a backend's line in the control block (`transaction/horizon/README.md`).
use mot_engine::{OldSnapshot, Xid};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A process's line in the control block. Written by its process alone.
#[repr(C)]
pub struct PublishedSnapshot {
    /// The local transaction id that the bounds belong to; 0 while they are written, and before.
    lxid: AtomicU32,
    xmin: AtomicU64,
    xmax: AtomicU64,
}

impl PublishedSnapshot {
    /// Publishes a local transaction's only snapshot.
    pub fn write(&self, lxid: u32, bounds: OldSnapshot) {
        self.lxid.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        self.xmin.store(bounds.xmin.0, Ordering::Relaxed);
        self.xmax.store(bounds.xmax.0, Ordering::Relaxed);
        self.lxid.store(lxid, Ordering::Release);
    }

    /// What is published of a local transaction whose process has this `xmin` in its PGPROC. Local
    /// ids come again, after 2^32 transactions of a process, and only transactions that publish
    /// write a line; but the only snapshot of one that has published has the `xmin` that its
    /// process shows.
    pub fn read(&self, lxid: u32, xmin: Xid) -> Option<OldSnapshot> {
        if lxid == 0 || self.lxid.load(Ordering::Acquire) != lxid {
            return None;
        }
        let bounds = OldSnapshot {
            xmin: Xid(self.xmin.load(Ordering::Relaxed)),
            xmax: Xid(self.xmax.load(Ordering::Relaxed)),
        };
        fence(Ordering::Acquire);
        (self.lxid.load(Ordering::Relaxed) == lxid && bounds.xmin == xmin).then_some(bounds)
    }

    /// Takes the snapshot back: the next process at this place may get the same local
    /// transaction id.
    pub fn clear(&self) {
        self.lxid.store(0, Ordering::Release);
    }
}
