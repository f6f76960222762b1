//! Keys of a bulk load that wait for the keys after them, which say how deep the keys belong.
//!
//! As many consecutive keys as make a layer ([`LAYER_KEYS`]) are looked at together. What all of
//! them share is what the first and the last share, and each of them belongs at least so deep. A
//! key is ready when all such runs with it have been looked at.

use crate::layer::LAYER_KEYS;
use crate::slice::shared_layers;
use std::collections::VecDeque;

/// The last keys, fewer than make a layer.
pub(crate) struct Held<'k, K> {
    keys: VecDeque<Waiting<K>>,
    /// The key after the part.
    after: Option<&'k [u8]>,
}

struct Waiting<K> {
    key: K,
    value: u64,
    /// How many layers the key shares with the key before it, and with the last key before the
    /// part.
    shared: usize,
    shared_with_before: usize,
    /// How deep the key belongs, as far as is known.
    depth: usize,
}

/// A key that may be placed.
pub(crate) struct Ready<K> {
    pub(crate) key: K,
    pub(crate) value: u64,
    /// In which layer.
    pub(crate) depth: usize,
    /// How many layers the key shares with the key after it.
    pub(crate) shared: usize,
}

impl<'k, K: AsRef<[u8]>> Held<'k, K> {
    pub(crate) fn new(after: Option<&'k [u8]>) -> Self {
        Held {
            keys: VecDeque::with_capacity(LAYER_KEYS),
            after,
        }
    }

    /// The last key that is still held.
    pub(crate) fn last(&self) -> Option<&[u8]> {
        self.keys.back().map(|last| last.key.as_ref())
    }

    /// Holds the next key, which shares so many layers with the one before it (the first one: with
    /// the last key before the part). Releases one key, if one is ready.
    pub(crate) fn hold(&mut self, key: K, value: u64, shared: usize) -> Option<Ready<K>> {
        let with_before = self
            .keys
            .back()
            .map_or(shared, |last| last.shared_with_before.min(shared));
        let with_after = self
            .after
            .map_or(0, |after| shared_layers(key.as_ref(), after));
        self.keys.push_back(Waiting {
            key,
            value,
            shared,
            shared_with_before: with_before,
            // Layers that continue in a neighbour are layers, however few keys they have here.
            depth: with_before.max(with_after),
        });
        if self.keys.len() < LAYER_KEYS {
            return None;
        }
        let with_next = self.keys.iter().skip(1).map(|key| key.shared);
        let together = with_next.min().unwrap_or(0);
        for key in &mut self.keys {
            key.depth = key.depth.max(together);
        }
        self.release(0)
    }

    /// Releases the first key that is held. If it is the last one, it shares so many layers with
    /// the key after the part.
    pub(crate) fn release(&mut self, shared_after: usize) -> Option<Ready<K>> {
        let first = self.keys.pop_front()?;
        let shared = self.keys.front().map_or(shared_after, |next| next.shared);
        Some(Ready {
            key: first.key,
            value: first.value,
            depth: first.depth,
            shared,
        })
    }
}
