//! The suffixes of a leaf whose latch the caller owns: reading them, and rebuilding the leaf's bag.

use crate::bag::{Bag, CONTENT_BYTES_MAX, with_reserve, word_length};
use crate::memory::{Memory, OutOfMemory};
use crate::node::Node;
use crate::permutation::Permutation;
use crate::slice::SUFFIX;
use core::ops::Range;

/// The bag of a leaf that the caller owns and that has one.
pub(crate) fn owned_bag(leaf: &Node) -> Bag {
    // SAFETY: the owner of the leaf's latch sees its current bag, which only the owner could
    // retire. The epoch in which the leaf may be used keeps the bag as well.
    unsafe { Bag::at(leaf.bag()) }.expect("a leaf with a suffix has a bag")
}

/// The suffix of an entry of kind `SUFFIX` of a leaf the caller owns.
pub(crate) fn owned_suffix(leaf: &Node, slot: usize) -> &[u8] {
    debug_assert!(leaf.kinds().of(slot) == SUFFIX);
    let bag = owned_bag(leaf);
    // SAFETY: as in `owned_bag`, and the word is the bag's.
    unsafe { bag.suffix(bag.word(slot)) }
}

/// The slots of the entries of kind `SUFFIX` at some positions of an owned leaf.
fn suffix_slots(
    leaf: &Node,
    permutation: Permutation,
    positions: Range<usize>,
) -> impl Iterator<Item = usize> {
    let kinds = leaf.kinds();
    positions
        .map(move |position| permutation.slot(position))
        .filter(move |slot| kinds.of(*slot) == SUFFIX)
}

/// Whether a leaf the caller owns has an entry of kind `SUFFIX`.
pub(crate) fn has_suffixes(leaf: &Node) -> bool {
    let permutation = leaf.permutation();
    suffix_slots(leaf, permutation, 0..permutation.count())
        .next()
        .is_some()
}

/// The bytes the suffixes at some positions of an owned leaf take in a bag.
pub(crate) fn suffix_bytes(
    leaf: &Node,
    permutation: Permutation,
    positions: Range<usize>,
) -> usize {
    if !leaf.kinds().may_have_suffixes() {
        return 0;
    }
    suffix_slots(leaf, permutation, positions)
        .map(|slot| Bag::stored_bytes(word_length(owned_bag(leaf).word(slot))))
        .sum()
}

/// Copies the suffixes at some positions of an owned leaf to the same slots of a bag of the
/// caller's.
pub(crate) fn copy_suffixes(
    leaf: &Node,
    permutation: Permutation,
    positions: Range<usize>,
    bag: &mut Bag,
) {
    for slot in suffix_slots(leaf, permutation, positions) {
        bag.put(slot, owned_suffix(leaf, slot));
    }
}

/// Copies the suffix of a slot of an owned leaf to a slot of a bag of the caller's.
pub(crate) fn copy_suffix_to(leaf: &Node, from: usize, bag: &mut Bag, to: usize) {
    bag.put(to, owned_suffix(leaf, from));
}

/// A bag for the suffixes of `coming` more entries in an owned leaf, if its bag has no room. It is
/// a copy of what the current bag holds for the leaf's entries, with room for `more` bytes.
pub(crate) fn enlarge<M: Memory>(
    memory: &M,
    leaf: &Node,
    more: usize,
    coming: usize,
) -> Result<Option<Bag>, OutOfMemory> {
    // SAFETY: as in `owned_bag`.
    let current = unsafe { Bag::at(leaf.bag()) };
    if current.is_some_and(|bag| bag.has_room(more)) {
        return Ok(None);
    }
    let permutation = leaf.permutation();
    let entries = permutation.count();
    let kept = suffix_bytes(leaf, permutation, 0..entries);
    let wanted = kept + Bag::stored_bytes(more);
    let mut bytes = with_reserve(wanted, entries + coming);
    let is_whole = current.is_some_and(|bag| bag.used_bytes() == kept);
    if current.is_some() && !is_whole {
        // Entries come and go here. A leaf that is nearly full must not rebuild its bag for each of
        // them.
        bytes = bytes.max((wanted + wanted / 4).min(CONTENT_BYTES_MAX));
    }
    let mut bag = Bag::create(memory, bytes)?;
    match current {
        // All of the bag is in use.
        Some(current) if is_whole => bag.put_all_of(current),
        _ => copy_suffixes(leaf, permutation, 0..entries, &mut bag),
    }
    Ok(Some(bag))
}
