//! Where tests stop processes (`transaction/pauses.rs`): a part of the control block.
use mot_engine::pause::Point;
use std::sync::atomic::AtomicU32;

/// Places for points.
pub const POINTS_MAX: usize = 64;
const _: () = assert!(Point::ALL.len() <= POINTS_MAX);

/// What happens at each point; zero at server start.
#[repr(C)]
pub struct Pauses {
    pub points: [Armed; POINTS_MAX],
    pub flushes: Flushes,
}

/// How often the reclaimer was asked to give back what it holds of memory, and how many of these
/// times it has.
#[repr(C)]
pub struct Flushes {
    pub asked: AtomicU32,
    pub done: AtomicU32,
}

/// A point.
#[repr(C)]
pub struct Armed {
    /// Arrivals still to be stopped, and to be failed.
    pub pauses: AtomicU32,
    pub failures: AtomicU32,
    /// Processes that stand here.
    pub waiting: AtomicU32,
    /// Raised at each resume.
    pub resumes: AtomicU32,
}
