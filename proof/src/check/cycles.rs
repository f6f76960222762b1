//! The search for cycles that no serial order, or no snapshot, explains.
//!
//! Each promise is a rule about which edge may follow which, so that a forbidden cycle is a cycle
//! in the graph of (transaction, kind of edge that led to it). An anti-dependency out of a
//! transaction may be taken
//! - under READ COMMITTED only after an edge of time: each statement has a snapshot of its own, all
//!   taken after the transaction began;
//! - under REPEATABLE READ after anything but another anti-dependency: the snapshot is as old as
//!   the transaction;
//! - under SERIALIZABLE always.
//!
//! With c(X) the moment X commits and s(X) that of its snapshot, every edge that may be taken leads
//! to a later c: a dependency X -> Y means c(X) < c(Y), and c(X) < s(Y) if Y has one snapshot; time
//! means c(X) < s(Y); an anti-dependency means s(X) < c(Y). So a cycle under these rules cannot
//! happen if the level keeps its word. For SERIALIZABLE the rule is the definition; why real time
//! counts as well is in the README.
//!
//! Searched from few kinds of edges to all, so that what is found first is the worst; components
//! that hold something found are left out later.

use super::graph::{Edge, Graph, Why};
use crate::history::record::Level;
use std::collections::{HashSet, VecDeque};

/// Transactions from which the shortest cycle of a component is looked for.
const STARTS: usize = 48;

/// A cycle: each edge leads to where the next begins, the last to where the first begins.
#[derive(Debug)]
pub struct Cycle {
    /// Its edges.
    pub edges: Vec<Edge>,
    /// Whether the levels of its transactions forbid it.
    pub is_forbidden: bool,
}

/// Which edges count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Writes,
    Dependencies,
    DependenciesAndTime,
    /// And anti-dependencies as the levels have it.
    Promised,
    /// Any.
    All,
}

const PASSES: [Pass; 5] = [
    Pass::Writes,
    Pass::Dependencies,
    Pass::DependenciesAndTime,
    Pass::Promised,
    Pass::All,
];

/// The kind of edge that led to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Dependency = 0,
    Time = 1,
    AntiDependency = 2,
}

const AFTERS: usize = 3;

fn step(pass: Pass, level: Level, after: usize, why: &Why) -> Option<After> {
    match why {
        Why::Overwritten { .. } => Some(After::Dependency),
        Why::WasRead { .. } => (pass != Pass::Writes).then_some(After::Dependency),
        Why::Session | Why::Time => {
            (!matches!(pass, Pass::Writes | Pass::Dependencies)).then_some(After::Time)
        }
        Why::ReadBefore { .. } => {
            let may = match pass {
                Pass::All => true,
                Pass::Promised => match level {
                    Level::ReadCommitted => after == After::Time as usize,
                    Level::RepeatableRead => after != After::AntiDependency as usize,
                    Level::Serializable => true,
                },
                _ => false,
            };
            may.then_some(After::AntiDependency)
        }
    }
}

/// The product of transactions and kinds.
struct Product<'a> {
    graph: &'a Graph,
    pass: Pass,
    /// Edges by where they begin: those of transaction t are `order[start[t]..start[t + 1]]`.
    start: Vec<usize>,
    order: Vec<u32>,
}

impl<'a> Product<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut start = vec![0; graph.levels.len() + 1];
        for edge in &graph.edges {
            start[edge.from + 1] += 1;
        }
        for index in 1..start.len() {
            start[index] += start[index - 1];
        }
        let mut next = start.clone();
        let mut order = vec![0; graph.edges.len()];
        for (number, edge) in graph.edges.iter().enumerate() {
            order[next[edge.from]] = number as u32;
            next[edge.from] += 1;
        }
        Product {
            graph,
            pass: Pass::Writes,
            start,
            order,
        }
    }

    /// The `place`th edge out of a node, and where it leads; `None` inside: not to be taken.
    /// `None`: there are no more.
    fn edge(&self, node: usize, place: usize) -> Option<Option<(usize, usize)>> {
        let transaction = node / AFTERS;
        let at = self.start[transaction] + place;
        if at >= self.start[transaction + 1] {
            return None;
        }
        let number = self.order[at] as usize;
        let edge = &self.graph.edges[number];
        let level = self.graph.levels[transaction];
        let taken = step(self.pass, level, node % AFTERS, &edge.why);
        Some(taken.map(|after| (number, edge.to * AFTERS + after as usize)))
    }

    /// Strongly connected components of more than one node (Tarjan, without recursion).
    fn components(&self) -> Vec<Vec<usize>> {
        const UNSEEN: u32 = u32::MAX;
        let nodes = self.graph.levels.len() * AFTERS;
        let mut number = vec![UNSEEN; nodes];
        let mut low = vec![0u32; nodes];
        let mut is_open = vec![false; nodes];
        let mut open: Vec<usize> = Vec::new();
        let mut found = Vec::new();
        let mut count = 0;
        for root in 0..nodes {
            if number[root] != UNSEEN {
                continue;
            }
            let mut path: Vec<(usize, usize)> = vec![(root, 0)];
            while let Some((node, place)) = path.last_mut() {
                let node = *node;
                if *place == 0 {
                    number[node] = count;
                    low[node] = count;
                    count += 1;
                    open.push(node);
                    is_open[node] = true;
                }
                let next = self.edge(node, *place);
                *place += 1;
                match next {
                    Some(None) => {}
                    Some(Some((_, to))) if number[to] == UNSEEN => path.push((to, 0)),
                    Some(Some((_, to))) => {
                        if is_open[to] {
                            low[node] = low[node].min(number[to]);
                        }
                    }
                    None => {
                        path.pop();
                        if let Some((parent, _)) = path.last() {
                            low[*parent] = low[*parent].min(low[node]);
                        }
                        if low[node] == number[node] {
                            let from = open.iter().rposition(|one| *one == node).unwrap_or(0);
                            let component = open.split_off(from);
                            for member in &component {
                                is_open[*member] = false;
                            }
                            if component.len() > 1 {
                                found.push(component);
                            }
                        }
                    }
                }
            }
        }
        found
    }

    /// A shortest cycle within a component, from the first of its nodes.
    fn shortest(&self, component: &[usize]) -> Option<Vec<Edge>> {
        let members: HashSet<usize> = component.iter().copied().collect();
        let mut best: Option<Vec<Edge>> = None;
        for start in component.iter().take(STARTS) {
            let mut came: std::collections::HashMap<usize, (usize, usize)> = Default::default();
            let mut queue = VecDeque::from([*start]);
            'search: while let Some(node) = queue.pop_front() {
                let mut place = 0;
                while let Some(edge) = self.edge(node, place) {
                    place += 1;
                    let Some((number, to)) = edge else { continue };
                    if !members.contains(&to) || came.contains_key(&to) {
                        continue;
                    }
                    came.insert(to, (node, number));
                    if to == *start {
                        break 'search;
                    }
                    queue.push_back(to);
                }
            }
            let mut edges = Vec::new();
            let mut at = *start;
            while let Some((from, number)) = came.get(&at) {
                edges.push(self.graph.edges[*number]);
                at = *from;
                if at == *start {
                    break;
                }
            }
            edges.reverse();
            if !edges.is_empty() && best.as_ref().is_none_or(|best| edges.len() < best.len()) {
                best = Some(edges);
            }
        }
        best
    }
}

/// A cycle from each component that has one.
pub fn search(graph: &Graph) -> Vec<Cycle> {
    let mut product = Product::new(graph);
    let mut found: Vec<Cycle> = Vec::new();
    let mut told: HashSet<usize> = HashSet::new();
    for pass in PASSES {
        product.pass = pass;
        for component in product.components() {
            if component.iter().any(|node| told.contains(&(node / AFTERS))) {
                continue;
            }
            if let Some(edges) = product.shortest(&component) {
                told.extend(edges.iter().map(|edge| edge.from));
                found.push(Cycle {
                    edges,
                    is_forbidden: pass != Pass::All,
                });
            }
        }
    }
    found
}
