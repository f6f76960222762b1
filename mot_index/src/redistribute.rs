//! Redistribution: a full leaf moves entries to a neighbour instead of being split.
//!
//! A leaf that would be halved first looks at the leaves beside it below the same parent, as in a
//! B*-tree. If one of them has room, it takes as many of the entries next to it as make both leaves
//! about equally full. The separator between the two leaves moves along. Leaves that are filled in
//! no order are therefore four fifths full instead of seven tenths. A run is cut where it is, as
//! without redistribution: the leaf that it leaves behind is full.
//!
//! The writer owns the full leaf, the *donor*, and latches the parent, as for a split. While it
//! owns that latch, no two children of the parent can be unlinked or get another between them. All
//! of that is done under the parent's latch. So the children beside the leaf are the leaves that it
//! is linked with, and they stay that. The writer only tries to latch either neighbour, since the
//! order has children before their parent, which it owns already. A writer that gets no
//! latch or finds no room splits the leaf.
//!
//! What the bag of the neighbour, the *taker*, needs is allocated before anything changes. The
//! donor's bag stays, and is rebuilt when it has no room. If no suffix is left in it, it is
//! retired. Then parent, donor and taker are made dirty, *all three before the first store*. The
//! move is counted when they are made clean, in any order:
//!
//! - A descent takes the child's clean version before it validates the parent's. If the child's
//!   version is from after the move, the parent was dirty before that version existed, and the
//!   validation fails. If the parent's version is from after the move, the child was dirty before
//!   that, and the descent waits for the child's version. So no descent combines an old separator
//!   with a new leaf, or a new separator with an old leaf. The parent counts a *change*: it covers
//!   the same range as before. But a reader that read the old separator and validates only later
//!   must notice.
//! - The donor counts a *split*: its range has become smaller. A reader, a waiting writer or an
//!   insert position that holds its old version descends again.
//! - The taker counts a *split* as well. Look-ups do not need that count. The taker still has its
//!   old entries, and the new ones are in slots that were free, as after an insert. But a scan that
//!   has read the taker and continues to the donor would miss the entries that moved past it.
//!
//! That is why a scan, once it has opened the next leaf, validates the leaf that it comes from
//! (`Frame::advance`), in both directions. Suppose that `k` exists all the time, and that the scan
//! goes forward from the leaf `a`, which it has read, to `b`. `k` was not in `a`, so it was in a
//! leaf right of `a`. If `k` is now in `b` or right of it, the scan will read it. `k` came to the
//! left of `b` only if `b` moved it to its left neighbour of that time. There are three cases:
//!
//! - The left neighbour was `a`. Then `a` was dirty during the move and counted it.
//! - `a` had another right neighbour, because `a` was split. Then `a` counted the split.
//! - `a` was unlinked. Then `a` is dirty from before the release of its parent's latch, and without
//!   that latch no leaf can redistribute past `a` (`unlink.rs`).
//!
//! In each case `a` was dirty before `b` was clean again without `k`. The scan has read that
//! version of `b`, or a later one, with acquire. So it reads `a` as dirty or counted or deleted,
//! and descends again after the last entry that it counted.
//!
//! Backward the argument is the same with the sides exchanged, except for new leaves, which come
//! between `b` and `a`. Then `b` does not name `a` as its next leaf, unless the new leaves are gone
//! again. What they moved to `a` before, `a` has counted, and what they moved to `b`, `b` has.
//!
//! No entry is read twice. An entry comes to lie ahead of the scan only in leaves that count the
//! move. A scan that descends again continues after the last entry that it read.
//!
//! Contract: nothing waits or fails after the first node is dirty. Entries of one slice stay
//! together, so not every number of entries can be moved.

use crate::bag::Bag;
use crate::memory::Memory;
use crate::node::{NO_SLOT, Node};
use crate::permutation::LEAF_ENTRIES;
use crate::slice::SUFFIX;
use crate::suffixes::{copy_suffix_to, enlarge, has_suffixes, owned_bag, suffix_bytes};
use crate::sync::is_broken;
use crate::tree::Tree;
use crate::version::{CHANGE, SPLIT};
use core::ops::Range;

/// A neighbour takes entries only if it has at least so many free slots. With fewer, leaves are
/// fuller, but rearranged more often (two: 25.5 bytes an entry instead of 26.5, and inserts slower
/// by a twelfth).
const ROOM_WORTH_REDISTRIBUTING: usize = 4;
/// The same for a leaf with suffixes. The suffixes that move are copied, and those that stay are
/// copied at the next insert of a suffix.
const ROOM_WORTH_COPYING: usize = 5;

/// On which side of the leaf the taker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// The entries that a leaf, the donor, moves, and the neighbour, the taker, that gets them.
struct Redistribution<'a> {
    taker: &'a Node,
    side: Side,
    /// The positions of the entries in the donor.
    moved: Range<usize>,
    /// The least slice of the right one of the two leaves after the move, and the index of the
    /// parent's separator for it.
    separator: u64,
    index: usize,
}

impl Redistribution<'_> {
    /// Whether the taker can hold all the entries, and `coming` too, if that belongs to the taker.
    fn fits(&self, leaf: &Node, coming: u64) -> bool {
        if !self.taker.version.is_narrow() {
            return true;
        }
        let permutation = leaf.permutation();
        let mut slices = (self.moved.clone()).map(|position| leaf.key(permutation.slot(position)));
        slices.all(|slice| self.taker.holds(slice))
            && (self.taker.holds(coming) || !self.is_takers(coming))
    }

    /// Whether a slice belongs to the taker after the move.
    fn is_takers(&self, slice: u64) -> bool {
        (self.side == Side::Right) == (slice >= self.separator)
    }
}

/// Unlatches the leaf that does not cover the slice. Returns the other leaf, clean and latched.
fn let_one_go<'a>(leaf: &'a Node, plan: &Redistribution<'a>, slice: u64) -> &'a Node {
    let (taker_count, donor_count) = (
        unless(is_broken("index: counting at the taker"), SPLIT),
        unless(is_broken("index: counting at the donor"), SPLIT),
    );
    if plan.is_takers(slice) {
        plan.taker.version.make_clean(taker_count);
        leaf.version.unlatch(donor_count);
        plan.taker
    } else {
        leaf.version.make_clean(donor_count);
        plan.taker.version.unlatch(taker_count);
        leaf
    }
}

impl<'a, M: Memory> Tree<'a, M> {
    /// Redistributes entries of a full leaf to a child beside it below its parent. The caller owns
    /// the leaf and the parent. Returns the leaf that then covers the slice, latched and with room;
    /// the other latches are released. Returns `None`, and nothing has changed, if neither
    /// neighbour can take entries. A neighbour cannot if it has no room or is latched. It cannot
    /// either if it is narrow and does not hold what it would get, or if memory for its bag is
    /// full.
    pub(crate) fn redistribute(
        &self,
        leaf: &'a Node,
        parent: &'a Node,
        slice: u64,
    ) -> Option<&'a Node> {
        let index = parent.route(slice);
        debug_assert!(parent.child(index) == leaf.address());
        let left = index.checked_sub(1).map(|left| (Side::Left, left, left));
        let right = (index < parent.count()).then_some((Side::Right, index + 1, index));
        let mut sides = [right, left].map(|side| {
            let (side, child, separator) = side?;
            // SAFETY: a child of an owned node.
            let taker = unsafe { Node::at(parent.child(child)) };
            let taker = taker.expect("an inner node has children");
            Some((taker, side, separator))
        });
        // Others may change these leaves meanwhile: their room is computed again under the latch.
        let room =
            |side: &Option<(&Node, Side, usize)>| side.map_or(0, |(taker, ..)| room_of(taker));
        if room(&sides[1]) > room(&sides[0]) {
            sides.swap(0, 1);
        }
        for (taker, side, index) in sides.into_iter().flatten() {
            if room_of(taker) < room_worth_redistributing(leaf) {
                break;
            }
            Node::prefetch(taker.address());
            if !taker.version.try_latch() {
                continue;
            }
            let plan = choose(leaf, taker, side, index).filter(|plan| plan.fits(leaf, slice));
            let target = plan.and_then(|plan| self.move_over(leaf, parent, &plan, slice));
            if target.is_some() {
                return target;
            }
            taker.version.unlatch(0);
        }
        None
    }

    /// The taker's bag with room for so many bytes of so many suffixes, and the cell of the bag
    /// that it replaces, or 0. `None`: memory is full.
    fn bag_with_room(
        &self,
        taker: &Node,
        bytes: usize,
        suffixes: usize,
    ) -> Option<(Option<Bag>, u64)> {
        let new = enlarge(self.memory, taker, bytes, suffixes).ok()?;
        let replaced = if new.is_some() { taker.bag() } else { 0 };
        Some((Some(new.unwrap_or_else(|| owned_bag(taker))), replaced))
    }

    /// Moves the chosen entries. Returns `None`, and nothing has changed, if memory is full. The
    /// caller owns all three nodes.
    fn move_over(
        &self,
        leaf: &'a Node,
        parent: &Node,
        plan: &Redistribution<'a>,
        slice: u64,
    ) -> Option<&'a Node> {
        let (taker, permutation, kinds) = (plan.taker, leaf.permutation(), leaf.kinds());
        let bytes = suffix_bytes(leaf, permutation, plan.moved.clone());
        let (mut bag, replaced) = match bytes {
            0 => (None, 0),
            _ => self.bag_with_room(taker, bytes, plan.moved.len())?,
        };
        parent.version.make_dirty();
        leaf.version.make_dirty();
        taker.version.make_dirty();
        let mut taken = taker.permutation();
        let mut taken_kinds = taker.kinds();
        let first = match plan.side {
            Side::Right => 0,
            Side::Left => taken.count(),
        };
        let mut pairs = [(0, 0); LEAF_ENTRIES];
        for (number, position) in plan.moved.clone().enumerate() {
            let from = permutation.slot(position);
            let to;
            (taken, to) = taken.insert(first + number);
            pairs[number] = (from, to);
            taken_kinds = taken_kinds.with(to, kinds.of(from));
            if let Some(bag) = bag.as_mut().filter(|_| kinds.of(from) == SUFFIX) {
                copy_suffix_to(leaf, from, bag, to);
            }
            if from == kinds.last() {
                leaf.set_kinds(kinds.with_last(NO_SLOT));
            }
        }
        taker.take_entries(leaf, pairs.into_iter().take(plan.moved.len()));
        taker.set_kinds(taken_kinds);
        if let Some(bag) = bag {
            taker.set_bag(bag.cell());
        }
        taker.set_permutation(taken);
        leaf.set_permutation(match plan.side {
            Side::Right => permutation.truncate(plan.moved.start),
            Side::Left => plan
                .moved
                .clone()
                .fold(permutation, |left, _| left.remove(0)),
        });
        let mut given_up = 0;
        if bytes > 0 && !has_suffixes(leaf) {
            given_up = leaf.bag();
            leaf.set_bag(0);
        }
        parent.set_separator(plan.index, plan.separator);
        noted::redistribution(plan.side == Side::Right, bytes > 0);

        let target = let_one_go(leaf, plan, slice);
        let moved = is_broken("index: counting that a separator moved");
        parent.version.unlatch(unless(moved, CHANGE));
        self.retire_bag(replaced);
        self.retire_bag(given_up);
        Some(target)
    }
}

/// The free slots of a leaf. Without its latch the result must be checked again.
fn room_of(leaf: &Node) -> usize {
    LEAF_ENTRIES - leaf.permutation().count()
}

/// How many free slots a neighbour must have to take entries of an owned leaf.
fn room_worth_redistributing(leaf: &Node) -> usize {
    if leaf.bag() == 0 {
        ROOM_WORTH_REDISTRIBUTING
    } else {
        ROOM_WORTH_COPYING
    }
}

fn unless(broken: bool, count: u64) -> u64 {
    if broken { 0 } else { count }
}

/// Chooses what a full leaf moves to a neighbour, both owned: about half of the neighbour's room.
/// One slot there stays free for an entry to come, whichever leaf that belongs to. `None` if there
/// is no room, or if too many entries share one slice, which must stay together.
fn choose<'a>(
    leaf: &Node,
    taker: &'a Node,
    side: Side,
    index: usize,
) -> Option<Redistribution<'a>> {
    let room = room_of(taker);
    if room < room_worth_redistributing(leaf) {
        return None;
    }
    let permutation = leaf.permutation();
    let key = |position: usize| leaf.key(permutation.slot(position));
    let boundary = |count: usize| match side {
        Side::Left => count,
        Side::Right => LEAF_ENTRIES - count,
    };
    let half = room / 2;
    let count = (0..room)
        .flat_map(|distance| [half.wrapping_sub(distance), half + distance])
        .find(|count| {
            (1..room).contains(count) && key(boundary(*count) - 1) < key(boundary(*count))
        })?;
    let boundary = boundary(count);
    Some(Redistribution {
        taker,
        side,
        moved: match side {
            Side::Left => 0..boundary,
            Side::Right => boundary..LEAF_ENTRIES,
        },
        separator: key(boundary),
        index,
    })
}

/// How often leaves redistributed, for tests that must reach this code.
#[cfg(any(test, feature = "model"))]
pub(crate) mod noted {
    use core::cell::Cell;

    /// Redistributions by the threads of a test, which are one thread under a model.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Redistributions {
        /// To the right neighbour.
        pub right: u64,
        /// To the left one.
        pub left: u64,
        /// Of both, with suffixes among them.
        pub suffixes: u64,
    }

    thread_local! {
        static NOTED: Cell<Redistributions> =
            const { Cell::new(Redistributions { right: 0, left: 0, suffixes: 0 }) };
    }

    pub(super) fn redistribution(to_the_right: bool, with_suffixes: bool) {
        NOTED.with(|noted| {
            let mut now = noted.get();
            now.right += u64::from(to_the_right);
            now.left += u64::from(!to_the_right);
            now.suffixes += u64::from(with_suffixes);
            noted.set(now);
        });
    }

    /// How often leaves redistributed on this thread.
    pub fn redistributions() -> Redistributions {
        NOTED.with(Cell::get)
    }
}

/// Nothing is noted but in tests.
#[cfg(not(any(test, feature = "model")))]
mod noted {
    pub(super) fn redistribution(_: bool, _: bool) {}
}

#[cfg(test)]
#[path = "redistribute_tests.rs"]
mod tests;
