//! Instructions of a process and of every process it starts from now on, where the machine has
//! counters for them.
//!
//! Virtual machines often have none; then there is nothing to count and the report says so.

use std::ffi::{c_int, c_long};
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

/// `perf_event_attr` as its first version had it; the kernel takes everything later as zero.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config_more: u64,
}

/// PERF_TYPE_HARDWARE and its PERF_COUNT_HW_INSTRUCTIONS.
const INSTRUCTIONS: (u32, u64) = (0, 1);
/// Of `flags`: processes started later count, too.
const INHERIT: u64 = 1 << 1;

/// A counter under way.
pub(crate) struct Counter(File);

impl Counter {
    /// Counts the instructions of process `pid`; `None` if the machine cannot or will not.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Self::open(INSTRUCTIONS, pid)
    }

    fn open((kind, config): (u32, u64), pid: i32) -> Option<Self> {
        let attributes = Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: INHERIT,
            wakeup_events: 0,
            breakpoint: 0,
            config_more: 0,
        };
        let (any_cpu, no_group, no_flags): (c_int, c_int, c_long) = (-1, -1, 0);
        // SAFETY: the structure has the size it says and outlives the call; the kernel only reads
        // it.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                pid,
                any_cpu,
                no_group,
                no_flags,
            )
        };
        let descriptor = c_int::try_from(opened)
            .ok()
            .filter(|descriptor| *descriptor >= 0)?;
        // SAFETY: the kernel has just made this descriptor for us; nobody else owns it.
        Some(Counter(unsafe { File::from_raw_fd(descriptor) }))
    }

    /// The count so far, processes that have ended included.
    pub(crate) fn read(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        (&self.0).read_exact(&mut bytes).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PERF_TYPE_SOFTWARE and its PERF_COUNT_SW_TASK_CLOCK, which every machine has.
    const TASK_CLOCK: (u32, u64) = (1, 1);

    #[test]
    fn what_a_child_does_is_counted() {
        // Where the kernel gives nobody a counter there is nothing to try.
        let Some(counter) = Counter::open(TASK_CLOCK, 0) else {
            eprintln!("no counters here");
            return;
        };
        let before = counter.read().unwrap();
        let status = std::process::Command::new("true").status().unwrap();
        assert!(status.success());
        assert!(counter.read().unwrap() > before);
    }
}
