//! Processes as `/proc` shows them: who belongs to a postmaster, and the CPU time it all took.

use std::time::Duration;

/// One process; the start time tells it from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Process number.
    pub pid: i32,
    /// Start time in clock ticks since boot.
    start_ticks: u64,
}

/// The fields of `/proc/PID/stat` used here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: i32,
    /// utime + stime.
    own_ticks: u64,
    /// cutime + cstime: children that ended and were waited for.
    reaped_ticks: u64,
    start_ticks: u64,
    is_zombie: bool,
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The command name may hold blanks and parentheses; everything after its end is numbers.
    let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_whitespace().collect();
    // Field 3 of proc(5) is place 0 here.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own_ticks: number(14)? + number(15)?,
        reaped_ticks: number(16)? + number(17)?,
        start_ticks: number(22)?,
        is_zombie: *fields.first()? == "Z",
    })
}

fn read_stat(pid: i32) -> Option<Stat> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The children of `parent` that are alive now.
pub fn children(parent: i32) -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = read_stat(pid)?;
        (stat.parent == parent).then_some(Process {
            pid,
            start_ticks: stat.start_ticks,
        })
    })
    .collect()
}

impl Process {
    /// True while this very process runs.
    pub fn is_alive(&self) -> bool {
        read_stat(self.pid)
            .is_some_and(|stat| stat.start_ticks == self.start_ticks && !stat.is_zombie)
    }

    /// What it calls itself; empty once it is gone.
    pub fn title(&self) -> String {
        let bytes = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Looks at a tree of processes that children leave meanwhile.
const LOOKS_MAX: usize = 50;

/// CPU time of `root`, of the children it has waited for, and of those alive with theirs. Children
/// of a postmaster have none of their own that live long, so two levels are the whole tree.
pub fn tree_cpu_time(root: i32) -> Duration {
    let of = |pid| read_stat(pid).map_or((0, 0), |stat| (stat.own_ticks, stat.reaped_ticks));
    // A child that is waited for between the look at the root and that at the children would be
    // missing from both.
    let mut ticks = 0;
    for _ in 0..LOOKS_MAX {
        let (own, reaped) = of(root);
        let alive = children(root).into_iter().map(|child| of(child.pid));
        let of_children: u64 = alive.map(|(own, reaped)| own + reaped).sum();
        ticks = own + reaped + of_children;
        if of(root).1 == reaped {
            break;
        }
    }
    // SAFETY: sysconf reads a constant of the system and takes no pointer.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Duration::from_secs_f64(ticks as f64 / per_second.max(1) as f64)
}

/// CPU time of this process.
pub fn own_cpu_time() -> Duration {
    tree_cpu_time(std::process::id() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_with_odd_names_are_read() {
        let line =
            "77 (postgres: a) b (c) S 12 77 77 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 555 1 2";
        let expected = Stat {
            parent: 12,
            own_ticks: 120,
            reaped_ticks: 7,
            start_ticks: 555,
            is_zombie: false,
        };
        assert_eq!(parse_stat(line), Some(expected));
        assert_eq!(parse_stat("77 (x) S 12"), None);
    }

    #[test]
    fn a_child_is_seen_and_then_gone() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let me = std::process::id() as i32;
        let found = children(me)
            .into_iter()
            .find(|process| process.pid == child.id() as i32);
        let found = found.expect("the child is listed");
        assert!(found.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!found.is_alive());
    }
}
