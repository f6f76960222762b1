//! Which NUMA nodes have memory.
//!
//! Contract: read once, when the arena is formatted, and kept in its header as kernel node numbers.
//! A kernel that says nothing (no NUMA, no sysfs) counts as one node. Tests make up their own.

use super::placement::NODES_MAX;
use std::fs;
use std::path::Path;

/// Where Linux describes its nodes.
const NODE_DIRECTORY: &str = "/sys/devices/system/node";

/// The nodes that have memory, by their kernel numbers, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    nodes: Vec<u32>,
}

impl Topology {
    /// What the kernel says.
    pub fn from_kernel() -> Topology {
        Topology::read(Path::new(NODE_DIRECTORY))
    }

    /// What a directory laid out like the kernel's says: its list of nodes with memory, else of
    /// nodes online.
    pub fn read(directory: &Path) -> Topology {
        ["has_memory", "online"]
            .iter()
            .filter_map(|file| fs::read_to_string(directory.join(file)).ok())
            .find_map(|list| parse_list(&list))
            .map_or_else(
                || Topology::made_up(&[0]),
                |nodes| Topology::made_up(&nodes),
            )
    }

    /// A topology of one's own. No node counts as node 0 alone; nodes beyond [`NODES_MAX`] are left
    /// out, memory is then only not placed there on purpose.
    pub fn made_up(nodes: &[u32]) -> Topology {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.truncate(NODES_MAX);
        if nodes.is_empty() {
            nodes.push(0);
        }
        Topology { nodes }
    }

    /// Kernel numbers of the nodes, ascending, at least one.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }
}

/// Parses the kernel's list format, `0-2,5`. None if it is empty or not such a list.
fn parse_list(list: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if last.checked_sub(first)? > u32::from(u16::MAX) {
            return None; // no kernel has so many nodes
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel() {
        assert_eq!(parse_list("0\n"), Some(vec![0]));
        assert_eq!(parse_list("0-2,5,7-8\n"), Some(vec![0, 1, 2, 5, 7, 8]));
        for bad in ["", "\n", "a", "3-1", "0-", "0-4294967295"] {
            assert_eq!(parse_list(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn directories() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Topology::read(directory.path()).nodes(), [0]);
        fs::write(directory.path().join("online"), "0-3\n").unwrap();
        assert_eq!(Topology::read(directory.path()).nodes(), [0, 1, 2, 3]);
        fs::write(directory.path().join("has_memory"), "1,3\n").unwrap();
        assert_eq!(Topology::read(directory.path()).nodes(), [1, 3]);
        assert!(!Topology::from_kernel().nodes().is_empty());
        assert_eq!(Topology::made_up(&[4, 2, 4]).nodes(), [2, 4]);
        assert_eq!(
            Topology::made_up(&(0..1000).collect::<Vec<_>>())
                .nodes()
                .len(),
            NODES_MAX
        );
    }
}
