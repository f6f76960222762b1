//! What a process takes for one purpose of its own: bytes are counted between two moments, and may
//! have a limit.
//!
//! Contract: what is allocated counts, and what is freed or retired by the caller is taken off.
//! Garbage that is freed later counts nowhere, as it was taken off when it was retired. A request
//! that may use the arena's reserve, which is one of those that free memory, meets no limit.

use super::LocalMemory;
use crate::memory::arena::{ArenaFull, LimitOf};
use std::cell::Cell;

/// No limit.
pub(crate) const UNLIMITED: i64 = i64::MAX;

/// The counting under way.
pub(super) struct Charge {
    /// Bytes taken since it began, less those given back.
    taken: Cell<i64>,
    /// Most that may be taken.
    room: Cell<i64>,
    /// What `room` is left of, for errors.
    limit: Cell<i64>,
    /// The last request that met the limit, until it was asked for or the counting ends.
    refused: Cell<Option<ArenaFull>>,
}

/// A counting around the one that has begun; see [`LocalMemory::begin_charge`].
pub(crate) struct Outer {
    taken: i64,
    room: i64,
    limit: i64,
}

impl Charge {
    pub(super) const fn new() -> Charge {
        Charge {
            taken: Cell::new(0),
            room: Cell::new(UNLIMITED),
            limit: Cell::new(UNLIMITED),
            refused: Cell::new(None),
        }
    }

    #[inline]
    pub(super) fn add(&self, bytes: i64) {
        self.taken.set(self.taken.get() + bytes);
    }

    #[inline]
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.room.get() == UNLIMITED || self.taken.get() + bytes as i64 <= self.room.get()
    }

    #[cold]
    pub(super) fn refuse(&self, requested: usize) -> ArenaFull {
        let left = self.room.get() - self.taken.get();
        let full = ArenaFull {
            used: (self.limit.get() - left).max(0) as u64,
            limit: self.limit.get().max(0) as u64,
            requested: requested as u64,
            limit_of: LimitOf::Session,
        };
        self.refused.set(Some(full));
        full
    }
}

impl LocalMemory {
    /// From now on bytes are counted anew. No more than `limit` less `used` can be taken. Ended by
    /// [`LocalMemory::end_charge`] with what this returns, the innermost first.
    pub(crate) fn begin_charge(&self, used: i64, limit: i64) -> Outer {
        let room = match limit {
            UNLIMITED => UNLIMITED,
            limit => limit - used,
        };
        Outer {
            taken: self.charge.taken.replace(0),
            room: self.charge.room.replace(room),
            limit: self.charge.limit.replace(limit),
        }
    }

    /// Bytes taken since the innermost beginning. What is counted outside of it continues.
    pub(crate) fn end_charge(&self, outer: Outer) -> i64 {
        self.charge.refused.set(None);
        self.charge.room.set(outer.room);
        self.charge.limit.set(outer.limit);
        self.charge.taken.replace(outer.taken)
    }

    /// After an error that jumped over the code that was counting: none is.
    pub(crate) fn forget_charges(&self) {
        self.charge.room.set(UNLIMITED);
        self.charge.limit.set(UNLIMITED);
        self.charge.refused.set(None);
    }

    /// The refusal of a request that met the limit, if the last one that failed did.
    pub(crate) fn take_refusal(&self) -> Option<ArenaFull> {
        self.charge.refused.take()
    }
}
