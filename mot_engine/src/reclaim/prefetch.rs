//! Prefetches the rows that the sweep reaches.
//!
//! Dirty rows lie scattered over large tables, and most were changed by another processor. Each is
//! two or three cache misses that depend on one another: anchor, newest state, the state below. So
//! the sweep prefetches the anchors of groups farther on, and the newest states of nearer ones.
//!
//! Prefetches are hints. Dirty bits are only read here; the sweep takes them itself, and also
//! sweeps what was not prefetched.

use crate::ids::RowId;
use crate::row::{Anchor, Head, prefetch_anchor, prefetch_header};
use crate::table::{DIRTY_WORD_ROW_IDS, GROUP_ROW_IDS, TableRef};
use std::collections::VecDeque;

/// Groups whose anchors are prefetched.
const GROUPS_AHEAD: usize = 8;
/// Groups between a group whose states are prefetched and the one that is swept.
const STATES_AHEAD: usize = 4;
/// Words of bits examined for one group that is swept.
const WORDS_AHEAD: usize = 64;
/// Anchors of a line.
const ANCHORS_PER_LINE: usize = 4;

/// Groups that are prefetched.
pub(super) struct GroupPrefetcher {
    table: TableRef,
    /// Bits of the word before this row id are in `bits`, those of the words behind it were not
    /// examined.
    next_word: u64,
    bits: u64,
    end: u64,
    /// First row ids, the nearest first.
    groups: VecDeque<u64>,
}

impl GroupPrefetcher {
    /// For a sweep of the row ids below `end`.
    pub(super) fn new(table: TableRef, end: u64) -> GroupPrefetcher {
        GroupPrefetcher {
            table,
            next_word: 0,
            bits: 0,
            end,
            // Most sweeps find nothing, and allocate nothing.
            groups: VecDeque::new(),
        }
    }

    /// The sweep has taken these bits of a word.
    pub(super) fn take(&mut self, word_start: u64, bits: u64) {
        if self.next_word <= word_start {
            self.next_word = word_start + DIRTY_WORD_ROW_IDS;
            self.bits = bits;
        }
    }

    /// The sweep is about to look at the group that begins with row id `first`.
    pub(super) fn advance(&mut self, first: u64) {
        while self.groups.front().is_some_and(|group| *group <= first) {
            self.groups.pop_front();
        }
        let mut words = WORDS_AHEAD;
        while self.groups.len() < GROUPS_AHEAD
            && let Some(group) = self.find(&mut words)
        {
            if group > first {
                self.anchors(group)
                    .step_by(ANCHORS_PER_LINE)
                    .for_each(prefetch_anchor);
                self.groups.push_back(group);
            }
        }
        if let Some(group) = self.groups.get(STATES_AHEAD - 1) {
            self.anchors(*group)
                .filter(|anchor| !anchor.head().has(Head::QUIESCENT))
                .for_each(prefetch_header);
        }
    }

    /// The next group that is dirty as it looks now, within so many words.
    fn find(&mut self, words: &mut usize) -> Option<u64> {
        while self.bits == 0 {
            if *words == 0 || self.next_word >= self.end {
                return None;
            }
            *words -= 1;
            self.bits = self.table.storage().directory.dirty(RowId(self.next_word));
            self.next_word += DIRTY_WORD_ROW_IDS;
        }
        let group = u64::from(self.bits.trailing_zeros());
        self.bits &= self.bits - 1;
        Some(self.next_word - DIRTY_WORD_ROW_IDS + group * GROUP_ROW_IDS)
    }

    /// Of a group's rows.
    fn anchors(&self, first: u64) -> impl Iterator<Item = &'static Anchor> {
        let table = self.table;
        (first..first + GROUP_ROW_IDS).filter_map(move |row_id| table.anchor(RowId(row_id)))
    }
}
