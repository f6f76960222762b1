//! Looking many keys up at once, in one tree or in several, so that their misses overlap.
//!
//! Each key descends as in `Tree::get`, hand over hand and with the same validations. But a chosen
//! child is only prefetched, and visited at the key's next turn. In between, a key holds a node and
//! its version, or an address read under a validated version. These stay good as long as the
//! caller's epoch is pinned, however long the other keys take.

use crate::descend::{Found, look_up};
use crate::memory::Memory;
use crate::node::Node;
use crate::slice::{SLICE_BYTES, cut};
use crate::tree::{Tree, TreeRoot};
use crate::version::{Seen, is_deleted, is_inner, same_range};

/// Keys that descend at once. A processor has ten to a dozen misses outstanding, and a node is five
/// lines.
const KEYS_AT_ONCE: usize = 8;

/// Where a key is.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// At the root of a layer, which is to be read.
    Root,
    /// At a node whose version is known.
    Node(&'a Node, Seen),
    /// Above a child of a node, which was prefetched.
    Above(&'a Node, Seen, u64),
}

/// The descent of one key.
#[derive(Clone, Copy)]
pub(crate) struct Descent<'a, 'k> {
    pub(crate) number: usize,
    pub(crate) key: &'k [u8],
    rest: &'k [u8],
    tree: &'a TreeRoot,
    /// The root of the layer of `rest`.
    root: &'a Node,
    place: Place<'a>,
}

/// Where a descent ends: the leaf that covers the key in the deepest layer that exists for it.
pub(crate) struct End<'a, 'k> {
    pub(crate) leaf: &'a Node,
    /// A version under which the leaf covers the key.
    pub(crate) seen: Seen,
    /// The root of the leaf's layer, and the rest of the key for that layer and those below.
    pub(crate) root: &'a Node,
    pub(crate) rest: &'k [u8],
    pub(crate) value: Option<u64>,
}

impl<'a, 'k> Descent<'a, 'k> {
    /// `root` is the root of the tree's first layer.
    pub(crate) fn new(number: usize, key: &'k [u8], tree: &'a TreeRoot, root: &'a Node) -> Self {
        Descent {
            number,
            key,
            rest: key,
            tree,
            root,
            place: Place::Root,
        }
    }

    /// Continues until the next node is prefetched, or returns the end once it is reached. The end
    /// is `None` for a tree that has become empty.
    #[inline]
    fn advance(&mut self) -> Option<Option<End<'a, 'k>>> {
        loop {
            match self.place {
                Place::Root => {
                    let seen = self.root.version.stable();
                    if is_deleted(seen) {
                        // The layer is gone.
                        let Some(root) = self.tree.first_layer() else {
                            return Some(None);
                        };
                        self.root = root;
                        self.rest = self.key;
                        continue;
                    }
                    self.place = Place::Node(self.root, seen);
                }
                Place::Node(node, seen) if is_inner(seen) => {
                    let child = node.child(node.route(cut(self.rest).0));
                    if node.is_still(seen) {
                        Node::prefetch(child);
                        self.place = Place::Above(node, seen, child);
                        return None;
                    }
                    self.look_again(node, seen);
                }
                Place::Above(node, seen, address) => {
                    // SAFETY: read under a validated version in the epoch that is still pinned
                    // (`Tree::new`).
                    let child = unsafe { Node::at(address) }.expect("an inner node has children");
                    let child_seen = child.version.stable();
                    if !node.is_still(seen) {
                        self.look_again(node, seen);
                    } else if is_deleted(child_seen) {
                        self.place = Place::Root;
                    } else {
                        self.place = Place::Node(child, child_seen);
                    }
                }
                Place::Node(leaf, mut seen) => match look_up(leaf, &mut seen, self.rest) {
                    None => self.place = Place::Root,
                    Some(Found::Nothing) => return Some(Some(self.end(leaf, seen, None))),
                    Some(Found::Value(value)) => {
                        return Some(Some(self.end(leaf, seen, Some(value))));
                    }
                    Some(Found::Layer(layer)) => {
                        Node::prefetch(layer.address());
                        self.root = layer;
                        self.rest = &self.rest[SLICE_BYTES..];
                        self.place = Place::Root;
                        return None;
                    }
                },
            }
        }
    }

    #[inline]
    fn end(&self, leaf: &'a Node, seen: Seen, value: Option<u64>) -> End<'a, 'k> {
        End {
            leaf,
            seen,
            root: self.root,
            rest: self.rest,
            value,
        }
    }

    /// An inner node has changed.
    fn look_again(&mut self, node: &'a Node, seen: Seen) {
        let now = node.version.stable();
        self.place = if same_range(seen, now) {
            Place::Node(node, now)
        } else {
            Place::Root
        };
    }
}

/// Runs the descents to their ends, some of them at once, and reports where each ended.
#[inline]
pub(crate) fn run_descents<'a, 'k>(
    mut to_come: impl Iterator<Item = Descent<'a, 'k>>,
    mut ended: impl FnMut(&Descent<'a, 'k>, Option<End<'a, 'k>>),
) {
    let Some(first) = to_come.next() else {
        return;
    };
    let mut descents = [first; KEYS_AT_ONCE];
    let mut running = 1;
    while running < KEYS_AT_ONCE
        && let Some(descent) = to_come.next()
    {
        descents[running] = descent;
        running += 1;
    }
    let mut turn = 0;
    while running > 0 {
        if turn >= running {
            turn = 0;
        }
        let descent = &mut descents[turn];
        let Some(end) = descent.advance() else {
            turn += 1;
            continue;
        };
        ended(descent, end);
        if let Some(next) = to_come.next() {
            *descent = next;
        } else {
            running -= 1;
            descents[turn] = descents[running];
        }
    }
}

impl<'a, M: Memory> Tree<'a, M> {
    /// The values of `count` keys, in no order. `found` gets a key's number and its value as soon
    /// as the value is known. Each value is what [`Tree::get`] would return at some moment of the
    /// call.
    pub fn get_many<'k>(
        &self,
        count: usize,
        key: impl Fn(usize) -> &'k [u8],
        mut found: impl FnMut(usize, Option<u64>),
    ) {
        let Some(root) = self.first_layer() else {
            (0..count).for_each(|number| found(number, None));
            return;
        };
        let descents = (0..count).map(|number| Descent::new(number, key(number), self.root, root));
        run_descents(descents, |descent, end| {
            found(descent.number, end.and_then(|end| end.value));
        });
    }
}
