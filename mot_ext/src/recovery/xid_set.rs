//! A set of transaction ids, a bit each.
use mot_engine::Xid;
use std::collections::BTreeMap;

/// Ids to a word, and words to a part.
const WORD_XIDS: u64 = u64::BITS as u64;
const PART_WORDS: u64 = 512;
const PART_XIDS: u64 = WORD_XIDS * PART_WORDS;

/// Full ids, of which those that lie together mostly belong together: 4 KiB for 32,768 of them, and
/// nothing where there is none.
#[derive(Default)]
pub struct XidSet {
    parts: BTreeMap<u64, Box<[u64; PART_WORDS as usize]>>,
}

impl XidSet {
    /// An empty one.
    pub const fn new() -> XidSet {
        XidSet {
            parts: BTreeMap::new(),
        }
    }

    /// Adds an id.
    pub fn add(&mut self, xid: Xid) {
        let (part, word, bit) = place(xid);
        let part = self.parts.entry(part);
        part.or_insert_with(|| Box::new([0; PART_WORDS as usize]))[word] |= bit;
    }

    /// Whether it has an id.
    pub fn has(&self, xid: Xid) -> bool {
        let (part, word, bit) = place(xid);
        let part = self.parts.get(&part);
        part.is_some_and(|part| part[word] & bit != 0)
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// No caller asks about ids below `below` any more. Some may stay.
    pub fn forget_below(&mut self, below: Xid) {
        self.parts = self.parts.split_off(&(below.0 / PART_XIDS));
    }
}

/// Part, word in it, and bit in that.
fn place(xid: Xid) -> (u64, usize, u64) {
    let word = xid.0 / WORD_XIDS;
    (
        word / PART_WORDS,
        (word % PART_WORDS) as usize,
        1 << (xid.0 % WORD_XIDS),
    )
}
