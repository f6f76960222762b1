//! The order in which a writer asks a table's indexes: that of their oids, as the server's own
//! tables ask theirs. So of several indexes that refuse a row the same one is reported, and the row
//! waits at the same one first.
//!
//! The order is kept as the places of the indexes, and made anew by the process that adds one. It
//! is a hint: a reader visits each place once, whatever it reads here, and the missing ones last.

use super::index::IndexRef;
use super::storage::TableRef;
use crate::limits::INDEXES_PER_TABLE_MAX;
use std::sync::atomic::{AtomicU8, Ordering, fence};

/// Places of a table's indexes, by their oids; all zero: as they lie.
pub(crate) type PlacesByOid = [AtomicU8; INDEXES_PER_TABLE_MAX];

/// A bit for each place.
type Places = u64;

const _: () = assert!(INDEXES_PER_TABLE_MAX == Places::BITS as usize);

impl TableRef {
    /// As `all_indexes`, in the order of their oids.
    #[inline]
    pub(crate) fn indexes_by_oid(self) -> impl Iterator<Item = IndexRef> {
        let storage = self.storage();
        let count = storage.index_count.load(Ordering::Acquire) as usize;
        let all = Places::MAX.checked_shr(Places::BITS - count as u32);
        let mut left = all.unwrap_or(0);
        let mut places = storage.places_by_oid[..count].iter();
        std::iter::from_fn(move || {
            while left != 0 {
                let place = places.next().map(|place| place.load(Ordering::Relaxed));
                let place = place.map_or(left.trailing_zeros(), u32::from);
                let bit = 1 << (place % Places::BITS);
                if left & bit == 0 {
                    continue;
                }
                left &= !bit;
                let index = self.index_at(place as usize);
                if index.is_some() {
                    return index;
                }
            }
            None
        })
    }

    /// Puts the places in order: after an index got one. The caller is pinned. Of several that add
    /// indexes beside each other, the last one to write has seen all: one that sees another come
    /// writes again.
    pub(crate) fn order_places(self) {
        let storage = self.storage();
        loop {
            let published = storage.indexes_published.load(Ordering::Acquire);
            // Read once: an index may be freed meanwhile. Empty places come last.
            let mut places: [_; INDEXES_PER_TABLE_MAX] = std::array::from_fn(|place| {
                let oid = self.index_at(place).map(IndexRef::relation_oid);
                (oid.map_or(u64::MAX, u64::from), place as u8)
            });
            places.sort_unstable();
            for (word, (_, place)) in storage.places_by_oid.iter().zip(places) {
                word.store(place, Ordering::Relaxed);
            }
            fence(Ordering::SeqCst);
            if storage.indexes_published.load(Ordering::Relaxed) == published {
                return;
            }
        }
    }
}
