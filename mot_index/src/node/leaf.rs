//! A node as a leaf: entries in slots, their order, and the leaves beside it.

use super::narrow::NarrowEntries;
use super::wide::Wide;
use super::{Kinds, Node, Window};
use crate::permutation::{LEAF_ENTRIES, Permutation};
use crate::slice::{LONGER, SUFFIX, class_of_kind};
use crate::sync::{Ordering, is_broken};
use crate::version::CHANGE;
use core::cmp;

pub(super) const KINDS: usize = 0;
pub(super) const BAG: usize = 1;
pub(super) const NEXT: usize = 2;
pub(super) const PREVIOUS: usize = 3;
/// How many cells every leaf has. What lies after them depends on the leaf's form.
pub(super) const HEAD_CELLS: usize = 4;

/// A bit for each slot.
const ALL_SLOTS: u32 = (1 << LEAF_ENTRIES) - 1;
/// The "slot filled last" of a leaf that has none.
pub(crate) const NO_SLOT: usize = LEAF_ENTRIES;

/// What a search in a leaf found.
pub(crate) enum Place {
    /// The entry of this slice, class and suffix, or the entry that leads to the layer where that
    /// would be. The numbers are its position and its slot.
    At(usize, usize),
    /// There is no such entry, and it would go to this position. The second number is how many
    /// other entries of its slice have suffixes, if it has one.
    Before(usize, usize),
}

/// A set of slots.
#[derive(Clone, Copy)]
pub(crate) struct Slots(u32);

impl Slots {
    #[inline]
    pub(crate) fn first(self) -> Option<usize> {
        (self.0 != 0).then_some(self.0.trailing_zeros() as usize)
    }
}

impl Iterator for Slots {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let slot = self.first()?;
        self.0 &= self.0 - 1;
        Some(slot)
    }
}

/// How a leaf holds slices and values.
pub(crate) trait EntriesOfLeaf {
    /// Whether an entry of this slice may be put into the leaf.
    fn holds(&self, slice: u64) -> bool;

    /// The slice of an entry.
    fn key(&self, slot: usize) -> u64;

    /// Stores the slice of an entry, which the leaf holds.
    fn set_key(&self, slot: usize, slice: u64);

    /// The value of an entry.
    fn value(&self, slot: usize) -> u64;

    /// Stores the value of an entry that no reader looks at yet, or of a dirty leaf.
    fn set_value(&self, slot: usize, value: u64);

    /// The slice of the first slot, and a mask. The mask has ones where the slice of any slot, used
    /// or not, differs from the first one.
    fn first_and_differing(&self) -> [u64; 2];

    /// Bit `i`: slot `i`, used or not, has the slice. Bits after those of the slots mean nothing.
    fn equal(&self, slice: u64) -> u32;

    /// Bits as of `equal`, and the same bits for slots that have the slice or a lesser one.
    fn equal_and_at_most(&self, slice: u64) -> (u32, u32);
}

/// A leaf by its form.
pub(crate) enum Form<'n> {
    Narrow(NarrowEntries<'n>),
    Wide(Wide<'n>),
}

/// Runs the same code on a leaf of either form.
macro_rules! by_form {
    ($leaf:expr, $entries:ident => $do:expr) => {
        match $leaf.form() {
            Form::Narrow($entries) => $do,
            Form::Wide($entries) => $do,
        }
    };
}
pub(crate) use by_form;

impl Node {
    /// The leaf by its form, for code that reads many entries.
    #[inline(always)]
    pub(crate) fn form(&self) -> Form<'_> {
        match self.narrow() {
            Some(narrow) => Form::Narrow(NarrowEntries::of(narrow)),
            None => Form::Wide(Wide(self)),
        }
    }

    /// Makes the node an empty leaf without a bag or neighbours.
    pub(crate) fn reset_leaf(&self) {
        self.set_permutation(Permutation::EMPTY);
        self.set_kinds(Kinds::NONE);
        self.store(BAG, 0);
        self.store(NEXT, 0);
        self.store(PREVIOUS, 0);
    }

    #[inline]
    pub(crate) fn permutation(&self) -> Permutation {
        Permutation(self.word.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn set_permutation(&self, permutation: Permutation) {
        let order = if is_broken("index: the release of an entry") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        self.word.store(permutation.0, order);
    }

    /// All kinds at once.
    #[inline]
    pub(crate) fn kinds(&self) -> Kinds {
        Kinds(self.load(KINDS))
    }

    pub(crate) fn set_kinds(&self, kinds: Kinds) {
        self.store(KINDS, kinds.0);
    }

    /// Whether an entry of this slice may be put into the leaf.
    #[inline]
    pub(crate) fn holds(&self, slice: u64) -> bool {
        by_form!(self, entries => entries.holds(slice))
    }

    /// The window of a narrow leaf that holds all that this full leaf does and one slice more.
    /// `None` if there is none.
    pub(crate) fn window_with(&self, slice: u64) -> Option<Window> {
        let [first, differing] = by_form!(self, entries => entries.first_and_differing());
        Window::by(first, differing | (slice ^ first))
    }

    #[inline]
    pub(crate) fn key(&self, slot: usize) -> u64 {
        debug_assert!(slot < LEAF_ENTRIES);
        by_form!(self, entries => entries.key(slot))
    }

    /// Stores the slice of an entry, which the leaf holds.
    pub(crate) fn set_key(&self, slot: usize, slice: u64) {
        debug_assert!(slot < LEAF_ENTRIES);
        by_form!(self, entries => entries.set_key(slot, slice))
    }

    #[inline]
    pub(crate) fn value(&self, slot: usize) -> u64 {
        debug_assert!(slot < LEAF_ENTRIES);
        by_form!(self, entries => entries.value(slot))
    }

    /// Stores the value of an entry that no reader looks at yet, or of a dirty leaf.
    pub(crate) fn set_value(&self, slot: usize, value: u64) {
        debug_assert!(slot < LEAF_ENTRIES);
        by_form!(self, entries => entries.set_value(slot, value))
    }

    /// Stores slices and values of another leaf's entries, which this leaf holds, in slots that no
    /// reader looks at yet. `slots` are pairs of a slot there and a slot here.
    #[inline]
    pub(crate) fn take_entries(&self, leaf: &Node, slots: impl Iterator<Item = (usize, usize)>) {
        by_form!(leaf, theirs => by_form!(self, ours => {
            for (from, to) in slots {
                ours.set_key(to, theirs.key(from));
                ours.set_value(to, theirs.value(from));
            }
        }));
    }

    /// Stores the value of an entry that readers may look at. Returns what the owner counts when it
    /// releases the latch. A narrow leaf's value is two stores: a reader between them must not take
    /// what it reads for one value.
    pub(crate) fn replace_value(&self, slot: usize, value: u64) -> u64 {
        let is_narrow = self.version.is_narrow();
        if is_narrow && !is_broken("index: dirty while a value is stored in two") {
            self.version.make_dirty();
        }
        self.set_value(slot, value);
        if is_narrow { CHANGE } else { 0 }
    }

    /// The cell that names the leaf's bag and its room, or 0. See `bag.rs`.
    #[inline]
    pub(crate) fn bag(&self) -> u64 {
        self.load_address(BAG)
    }

    pub(crate) fn set_bag(&self, cell: u64) {
        self.store(BAG, cell);
    }

    pub(crate) fn next(&self) -> u64 {
        self.load_address(NEXT)
    }

    pub(crate) fn set_next(&self, address: u64) {
        self.store(NEXT, address);
    }

    pub(crate) fn previous(&self) -> u64 {
        self.load_address(PREVIOUS)
    }

    pub(crate) fn set_previous(&self, address: u64) {
        self.store(PREVIOUS, address);
    }

    /// Fills a slot that no reader looks at yet.
    #[inline]
    pub(crate) fn fill(&self, slot: usize, slice: u64, kind: u64, value: u64) {
        by_form!(self, entries => {
            entries.set_key(slot, slice);
            entries.set_value(slot, value);
        });
        self.set_kinds(self.kinds().with(slot, kind).with_last(slot));
    }

    /// The slots that have a slice, used or not.
    #[inline(always)]
    fn slots_of(&self, slice: u64) -> Slots {
        Slots(by_form!(self, entries => entries.equal(slice)) & ALL_SLOTS)
    }

    /// The value of an entry that ends in its slice, in a permutation of this leaf.
    #[inline]
    pub(crate) fn find(&self, permutation: Permutation, slice: u64, class: u64) -> Option<u64> {
        debug_assert!(class < LONGER);
        let kinds = self.kinds();
        by_form!(self, entries => {
            // There is hardly ever more than one such slot: a removed entry may still have the
            // slice.
            Slots(entries.equal(slice) & ALL_SLOTS)
                .find(|slot| kinds.of(*slot) == class && permutation.position(*slot).is_some())
                .map(|slot| entries.value(slot))
        })
    }

    /// The slots of the entries that continue after a slice, in a permutation of this leaf. They
    /// are one that leads to a layer, or some with suffixes.
    #[inline(always)]
    pub(crate) fn longer(&self, permutation: Permutation, kinds: Kinds, slice: u64) -> Slots {
        let mut longer = 0;
        for slot in self.slots_of(slice) {
            let is_there = kinds.of(slot) >= SUFFIX && permutation.position(slot).is_some();
            longer |= u32::from(is_there) << slot;
        }
        Slots(longer)
    }

    /// Where an entry is or would be, in a permutation of this leaf. `order` gets the slot of an
    /// entry of kind `SUFFIX`, and compares its suffix with the one searched for. It is called only
    /// for entries of the slice, and only if the class is [`LONGER`].
    #[inline(always)]
    pub(crate) fn search(
        &self,
        permutation: Permutation,
        slice: u64,
        class: u64,
        mut order: impl FnMut(usize) -> cmp::Ordering,
    ) -> Place {
        let (equal, at_most) = by_form!(self, entries => entries.equal_and_at_most(slice));
        let equal = Slots(equal & ALL_SLOTS);
        let mut less = at_most & ALL_SLOTS & !equal.0;
        let mut suffixes = 0;
        let kinds = self.kinds();
        for slot in equal {
            let kind = kinds.of(slot);
            let mut lies = class_of_kind(kind).cmp(&class);
            if lies.is_eq()
                && let Some(position) = permutation.position(slot)
            {
                if kind == SUFFIX {
                    suffixes += 1;
                    lies = order(slot);
                }
                if lies.is_eq() {
                    return Place::At(position, slot);
                }
            }
            less |= u32::from(lies.is_lt()) << slot;
        }
        Place::Before(permutation.first_not_in(less), suffixes)
    }
}
