//! Looking many keys up at once, so that their misses overlap.
//!
//! Each key goes down as `Tree::get` does, hand over hand and with the same validations; but a child that was chosen is only asked for,
//! and visited when the turn comes to the key again. What a key holds meanwhile, a node and its version or an address read under a
//! validated version, stays good as long as the caller's epoch is pinned, however long the others take.

use crate::descend::{Found, look_up};
use crate::memory::Memory;
use crate::node::Node;
use crate::slice::{SLICE_BYTES, cut};
use crate::tree::Tree;
use crate::version::{Seen, is_deleted, is_inner, same_range};

/// Keys on their way at once. A processor has ten to a dozen misses outstanding, and a node is five lines.
const KEYS_AT_ONCE: usize = 8;

/// Where a key is.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// At the root of a layer, which is to be read.
    Root,
    /// At a node whose version is known.
    Node(&'a Node, Seen),
    /// Between a node and its child, which was asked for.
    Above(&'a Node, Seen, u64),
}

/// One key on its way.
#[derive(Clone, Copy)]
struct Way<'a, 'k> {
    number: usize,
    key: &'k [u8],
    rest: &'k [u8],
    /// Of the layer of `rest`.
    root: &'a Node,
    place: Place<'a>,
}

impl<'a> Way<'a, '_> {
    /// Goes on until the next node is asked for; the outcome once it is known.
    #[inline]
    fn go_on<M: Memory>(&mut self, tree: &Tree<'a, M>) -> Option<Option<u64>> {
        loop {
            match self.place {
                Place::Root => {
                    let seen = self.root.version.stable();
                    if is_deleted(seen) {
                        // The layer is gone.
                        let Some(root) = tree.first_layer() else {
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
                    // SAFETY: read under a validated version in the epoch that is still pinned (`Tree::new`).
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
                    Some(Found::Nothing) => return Some(None),
                    Some(Found::Value(value)) => return Some(Some(value)),
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

impl<'a, M: Memory> Tree<'a, M> {
    /// The values of `count` keys, in no order: `found` is given a key's number and its value as soon as it is known. Each
    /// is what [`Tree::get`] would say at some moment of the call.
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
        let begin = |number: usize| {
            let key = key(number);
            Way {
                number,
                key,
                rest: key,
                root,
                place: Place::Root,
            }
        };
        if count == 0 {
            return;
        }
        let mut ways = [begin(0); KEYS_AT_ONCE];
        let mut going = count.min(KEYS_AT_ONCE);
        for (number, way) in ways.iter_mut().enumerate().take(going).skip(1) {
            *way = begin(number);
        }
        let mut next = going;
        let mut turn = 0;
        while going > 0 {
            if turn >= going {
                turn = 0;
            }
            let way = &mut ways[turn];
            let Some(value) = way.go_on(self) else {
                turn += 1;
                continue;
            };
            found(way.number, value);
            if next < count {
                *way = begin(next);
                next += 1;
            } else {
                going -= 1;
                ways[turn] = ways[going];
            }
        }
    }
}
