//! Changing the entry of a key under the latch of its leaf.
//!
//! A writer descends like a reader and latches the leaf that it reaches. If the leaf was split or
//! deleted before the latch was taken, the writer descends again. Then it always does three steps
//! in this order. It allocates everything that an insert may need, the caller decides, and the
//! change is published. So a full memory is noticed while nothing has happened, and the caller
//! decides once. If the caller's closure unwinds, [`Undo`] leaves the tree as if the closure had
//! answered `Keep`.

use crate::bag::Bag;
use crate::descend::{Changed, Goal, look_for_layer, reach_leaf};
use crate::layer::{LAYER_KEYS, NewLayer};
use crate::memory::{Memory, OutOfMemory};
use crate::node::{MAX_VALUE, Node, Place};
use crate::permutation::LEAF_ENTRIES;
use crate::slice::{LAYER, LONGER, MAX_KEY_BYTES, SLICE_BYTES, SUFFIX, SUFFIXES_OF_A_SLICE, cut};
use crate::suffixes::{enlarge, owned_bag, owned_suffix};
use crate::sync::{Ordering, is_broken};
use crate::tree::Tree;
use crate::version::{CHANGE, LATCHED, Seen, same_range};

/// What to do with the entry of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Leave it as it is (or absent).
    Keep,
    /// Make this the key's value: [`MAX_VALUE`] at most.
    Set(u64),
    /// Remove the entry.
    Remove,
}

/// A leaf whose latch the caller owns, and how it was reached.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) leaf: &'a Node,
    /// The root of the leaf's layer.
    pub(crate) root: &'a Node,
    /// How many bytes of the key the layers above have used up.
    pub(crate) offset: usize,
}

/// What a latched leaf has for a key.
enum Entry {
    /// The key's entry.
    Present { position: usize, slot: usize },
    /// Nothing, and as many suffixes of its slice as a leaf may have. With the key's suffix, at
    /// `position`, they move to a new layer.
    Clash { position: usize },
    /// Nothing; the entry would go to `position`.
    Absent { position: usize },
}

/// Frees what was prepared for an insert that does not happen, and releases the latch.
struct Undo<'t, 'a, M: Memory> {
    tree: &'t Tree<'a, M>,
    key: &'t [u8],
    site: Site<'a>,
    bag: Option<Bag>,
    layer: Option<&'a Node>,
}

impl<M: Memory> Drop for Undo<'_, '_, M> {
    fn drop(&mut self) {
        if let Some(bag) = self.bag {
            self.tree.free_bag(bag);
        }
        if let Some(layer) = self.layer {
            self.tree.free_subtree(layer);
        }
        self.tree.release(self.key, self.site);
    }
}

impl<'a, M: Memory> Tree<'a, M> {
    /// Decides about the entry of a key. `decide` gets the key's value (`None`: no entry) and
    /// returns what becomes of the entry. The second result of `decide` is returned.
    ///
    /// `decide` is called exactly once, under the latch of the leaf, and must neither block nor use
    /// the tree. Everything that an insert needs is allocated before: after `Err` nothing was
    /// changed and `decide` was not called. An absent key may need memory even if `decide` then
    /// keeps it absent. Where that must not fail, use [`Tree::update_present`].
    ///
    /// # Panics
    /// If the key is longer than [`MAX_KEY_BYTES`], or the value greater than [`MAX_VALUE`].
    pub fn update<R>(
        &self,
        key: &[u8],
        decide: impl FnMut(Option<u64>) -> (Change, R),
    ) -> Result<R, OutOfMemory> {
        assert_length(key);
        let (site, place) = loop {
            match self.latch_leaf(key) {
                Some(found) => break found,
                None => {
                    if let Some(site) = self.install_root()? {
                        break (site, Place::Before(0, 0));
                    }
                }
            }
        };
        self.decide_at(key, site, place, decide)
    }

    /// The rest of an update, once the key's leaf is latched, and the place of its slice and class
    /// is known.
    #[inline(always)]
    pub(crate) fn decide_at<R>(
        &self,
        key: &[u8],
        site: Site<'a>,
        place: Place,
        mut decide: impl FnMut(Option<u64>) -> (Change, R),
    ) -> Result<R, OutOfMemory> {
        match entry(place) {
            Entry::Present { position, slot } => {
                Ok(self.change_present(key, site, position, slot, |value| decide(Some(value))))
            }
            Entry::Clash { position } => self.change_clash(key, site, position, || decide(None)),
            Entry::Absent { position } => self.change_absent(key, site, position, || decide(None)),
        }
    }

    /// Like [`Tree::update`], but only if the key has an entry; `None` if not. Never needs memory.
    ///
    /// # Panics
    /// If the value is greater than [`MAX_VALUE`].
    pub fn update_present<R>(
        &self,
        key: &[u8],
        decide: impl FnMut(u64) -> (Change, R),
    ) -> Option<R> {
        let (site, place) = self.latch_leaf(key)?;
        match entry(place) {
            Entry::Present { position, slot } => {
                Some(self.change_present(key, site, position, slot, decide))
            }
            Entry::Clash { .. } | Entry::Absent { .. } => {
                self.release(key, site);
                None
            }
        }
    }

    /// Sets the value of a key; returns the one it had.
    ///
    /// # Panics
    /// If the key is longer than [`MAX_KEY_BYTES`], or the value greater than [`MAX_VALUE`].
    pub fn insert(&self, key: &[u8], value: u64) -> Result<Option<u64>, OutOfMemory> {
        self.update(key, |old| (Change::Set(value), old))
    }

    /// Removes the entry of a key and returns its value. Needs no memory.
    pub fn remove(&self, key: &[u8]) -> Option<u64> {
        self.update_present(key, |old| (Change::Remove, old))
    }

    /// Latches the leaf that covers the key in the deepest layer that exists for it. Returns the
    /// place of its slice and class in the leaf. `None` if the tree has no root.
    fn latch_leaf(&self, key: &[u8]) -> Option<(Site<'a>, Place)> {
        'tree: loop {
            let mut root = self.first_layer()?;
            let mut offset = 0;
            'layer: loop {
                let rest = &key[offset..];
                let (slice, class) = cut(rest);
                let Some((leaf, seen)) = reach_leaf(root, Goal::Slice(slice)) else {
                    continue 'tree;
                };
                // Where a layer may lie below, this looks before it latches. So writers that only
                // pass through do not contend for the latches of the upper layers.
                if class == LONGER {
                    match look_for_layer(leaf, seen, slice) {
                        Err(Changed) => continue 'layer,
                        Ok(Some(layer)) => {
                            Node::prefetch(layer.address());
                            root = layer;
                            offset += SLICE_BYTES;
                            continue 'layer;
                        }
                        // Before the latch, which no later access overtakes.
                        Ok(None) => {
                            Bag::prefetch_to_put(leaf.bag(), rest.len() - SLICE_BYTES);
                        }
                    }
                }
                if let Some(place) = latch_covering(leaf, seen, rest) {
                    return Some((Site { leaf, root, offset }, place));
                }
                continue 'layer;
            }
        }
    }

    /// Makes the root of an empty tree, which the caller then owns. `None` if another thread made
    /// one.
    fn install_root(&self) -> Result<Option<Site<'a>>, OutOfMemory> {
        let root = self.create_node(LATCHED)?;
        let cell = &self.root.node;
        match cell.compare_exchange(0, root.address(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(Some(Site {
                leaf: root,
                root,
                offset: 0,
            })),
            Err(_) => {
                self.free_node(root);
                Ok(None)
            }
        }
    }

    /// Releases the latch of a leaf in which nothing was changed. Unlinks the leaf if it (still)
    /// has no entry.
    pub(crate) fn release(&self, key: &[u8], site: Site<'a>) {
        if site.leaf.permutation().count() == 0 {
            self.remove_empty(key, site);
        } else {
            site.leaf.version.unlatch(0);
        }
    }

    fn change_present<R>(
        &self,
        key: &[u8],
        site: Site<'a>,
        position: usize,
        slot: usize,
        mut decide: impl FnMut(u64) -> (Change, R),
    ) -> R {
        let leaf = site.leaf;
        let undo = Undo {
            tree: self,
            key,
            site,
            bag: None,
            layer: None,
        };
        let (change, result) = decide(leaf.value(slot));
        match change {
            Change::Keep => return result,
            Change::Set(value) => {
                assert_value(value);
                let count = leaf.replace_value(slot, value);
                leaf.version.unlatch(count);
            }
            Change::Remove => {
                leaf.set_permutation(leaf.permutation().remove(position));
                self.release_removed(key, site);
            }
        }
        core::mem::forget(undo);
        result
    }

    /// Releases the latch of a leaf from which an entry was removed.
    fn release_removed(&self, key: &[u8], site: Site<'a>) {
        let leaf = site.leaf;
        if leaf.permutation().count() == 0 {
            self.remove_empty(key, site);
        } else {
            // This is counted so that no reader that saw the entry mistakes the slot's next owner
            // for it.
            leaf.version.unlatch(CHANGE);
        }
    }

    /// Moves the entries of the key's slice that have suffixes to a new layer, with the key at its
    /// `position` among them.
    fn change_clash<R>(
        &self,
        key: &[u8],
        site: Site<'a>,
        position: usize,
        mut decide: impl FnMut() -> (Change, R),
    ) -> Result<R, OutOfMemory> {
        let leaf = site.leaf;
        let rest = &key[site.offset..];
        let permutation = leaf.permutation();
        let moving = leaf.longer(permutation, leaf.kinds(), cut(rest).0);
        let (first, count) = moving.fold((LEAF_ENTRIES, 0), |(first, count), slot| {
            let position = permutation.position(slot).unwrap_or(first);
            (first.min(position), count + 1)
        });
        let mut together = [(&[][..], 0); LAYER_KEYS];
        let new = position - first;
        for (number, entry) in together.iter_mut().enumerate() {
            if number == new {
                entry.0 = &rest[SLICE_BYTES..];
            } else {
                let slot = permutation.slot(first + number - usize::from(number > new));
                *entry = (owned_suffix(leaf, slot), leaf.value(slot));
            }
        }
        debug_assert!(count + 1 == together.len());
        let layer = match NewLayer::create(self, &together, new) {
            Ok(layer) => layer,
            Err(full) => {
                leaf.version.unlatch(0);
                return Err(full);
            }
        };
        let undo = Undo {
            tree: self,
            key,
            site,
            bag: None,
            layer: Some(layer.root),
        };
        let (change, result) = decide();
        let Change::Set(value) = change else {
            return Ok(result);
        };
        assert_value(value);
        core::mem::forget(undo);
        layer.set_value(value);
        let given_up = layer.replace(leaf, first, count);
        leaf.version.unlatch(CHANGE);
        self.retire_bag(given_up);
        Ok(result)
    }

    fn change_absent<R>(
        &self,
        key: &[u8],
        site: Site<'a>,
        position: usize,
        mut decide: impl FnMut() -> (Change, R),
    ) -> Result<R, OutOfMemory> {
        let rest = &key[site.offset..];
        let (slice, class) = cut(rest);
        let (site, position) = self.make_room(site, position, rest)?;
        let site = if site.leaf.holds(slice) {
            site
        } else {
            self.widen(key, site)?
        };
        let leaf = site.leaf;
        let suffix = if class == LONGER {
            Some(&rest[SLICE_BYTES..])
        } else {
            None
        };
        let mut bag = None;
        if let Some(suffix) = suffix {
            match enlarge(self.memory, leaf, suffix.len(), 1) {
                Ok(new) => bag = new,
                Err(full) => {
                    self.release(key, site);
                    return Err(full);
                }
            }
        }
        let undo = Undo {
            tree: self,
            key,
            site,
            bag,
            layer: None,
        };
        let (change, result) = decide();
        let Change::Set(value) = change else {
            return Ok(result);
        };
        assert_value(value);
        core::mem::forget(undo);
        let (permutation, slot) = leaf.permutation().insert(position);
        leaf.fill(
            slot,
            slice,
            if suffix.is_some() { SUFFIX } else { class },
            value,
        );
        let replaced = if bag.is_some() { leaf.bag() } else { 0 };
        if is_broken("index: a suffix before its entry") {
            leaf.set_permutation(permutation);
        }
        if let Some(suffix) = suffix {
            let mut bag = bag.unwrap_or_else(|| owned_bag(leaf));
            bag.put(slot, suffix);
            leaf.set_bag(bag.cell());
        }
        leaf.set_permutation(permutation);
        leaf.version.unlatch(0);
        self.retire_bag(replaced);
        Ok(result)
    }
}

#[inline]
pub(crate) fn assert_length(key: &[u8]) {
    assert!(
        key.len() <= MAX_KEY_BYTES,
        "a key of {} bytes is too long",
        key.len()
    );
}

#[inline]
pub(crate) fn assert_value(value: u64) {
    assert!(
        value <= MAX_VALUE,
        "a value of more than 48 bits: {value:#x}"
    );
}

/// Latches the leaf that covered a slice under the version seen, and returns the place of the rest
/// of the key in it. Returns `None`, and no latch is held, if the leaf may no longer cover the
/// slice. The same if the leaf has a layer for keys that continue after the slice.
#[inline]
pub(crate) fn latch_covering(leaf: &Node, seen: Seen, rest: &[u8]) -> Option<Place> {
    leaf.version.latch();
    if !same_range(seen, leaf.version.owned())
        && !is_broken("index: looking whether a latched leaf still covers the key")
    {
        leaf.version.unlatch(0);
        return None;
    }
    let place = place_in_owned(leaf, rest);
    if rest.len() > SLICE_BYTES
        && let Place::At(_, slot) = place
        && leaf.kinds().of(slot) == LAYER
    {
        // Another writer made a layer before this one had the latch.
        leaf.version.unlatch(0);
        return None;
    }
    Some(place)
}

/// Where the rest of a key is, or would be, in a leaf that the caller owns.
#[inline]
pub(crate) fn place_in_owned(leaf: &Node, rest: &[u8]) -> Place {
    let (slice, class) = cut(rest);
    leaf.search(leaf.permutation(), slice, class, |slot| {
        owned_suffix(leaf, slot).cmp(&rest[SLICE_BYTES..])
    })
}

/// What a latched leaf has at the place of a key.
#[inline]
fn entry(place: Place) -> Entry {
    match place {
        Place::At(position, slot) => Entry::Present { position, slot },
        Place::Before(position, SUFFIXES_OF_A_SLICE) => Entry::Clash { position },
        Place::Before(position, _) => Entry::Absent { position },
    }
}
