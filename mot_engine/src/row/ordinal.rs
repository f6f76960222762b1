//! A state's ordinal, and what a tombstone says beside that the row is gone: in bits of the body
//! that nothing else uses.
//!
//! A heap tuple has bits of transaction information, which the engine keeps elsewhere, and a stored
//! body has them 0. In them lies, of a table of the access method, the ordinal of each of its
//! states: how often the row was changed, modulo [`ORDINALS`].
//!
//! ```text
//! body byte 1 (t_infomask2, high)  0x20  bit 12 of the ordinal
//!                                  0x40  of a tombstone: the row went to another partition
//! body byte 2 (t_infomask, low)    0xF0  bits 8 to 11
//! body byte 3 (t_infomask, high)         bits 0 to 7
//! ```
//! The lowest bits have a byte of their own, so that the log's difference between two states has
//! one byte for them.
//!
//! A reader of columns masks these bits. The number of attributes has the low 11 bits of
//! t_infomask2, and of t_infomask bit 0 alone is examined.

use super::version::{BODY_BYTES_MIN, EMPTY_BODY, STAMP_BYTES, VersionRef};
use crate::ids::Ordinal;

/// Where in a body t_infomask2 is, and where t_infomask.
const INFOMASK2: usize = 0;
const INFOMASK: usize = 2;
/// Their bits of transaction information, as heap has them: HEAP2_XACT_MASK and HEAP_XACT_MASK.
const TRANSACTION2: u16 = 0xE000;
const TRANSACTION: u16 = 0xFFF0;
const ORDINAL_TOP: u16 = 0x2000;
const MOVED_AWAY: u16 = 0x4000;

/// The number of an ordinal's highest bit, which is stored apart.
const TOP_BIT: u32 = 12;
/// Bits of the ordinal in the low byte of t_infomask, behind four that are not transaction
/// information.
const MIDDLE_SHIFT: u32 = 4;

/// The ordinal as bits of t_infomask2 and t_infomask.
fn to_bits(ordinal: Ordinal) -> (u16, u16) {
    let number = ordinal.0;
    let top = if number >> TOP_BIT != 0 {
        ORDINAL_TOP
    } else {
        0
    };
    let middle = (number >> u8::BITS & 0xF) << MIDDLE_SHIFT;
    (top, (number & 0xFF) << u8::BITS | middle)
}

/// The ordinal that is in t_infomask2 and t_infomask.
fn from_bits(infomask2: u16, infomask: u16) -> Ordinal {
    let top = u16::from(infomask2 & ORDINAL_TOP != 0) << TOP_BIT;
    let middle = (infomask >> MIDDLE_SHIFT & 0xF) << u8::BITS;
    Ordinal(top | middle | infomask >> u8::BITS)
}

fn half(body: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([body[at], body[at + 1]])
}

fn ordinal_of(body: &[u8]) -> Ordinal {
    from_bits(half(body, INFOMASK2), half(body, INFOMASK))
}

/// What a tombstone says beside that the row is gone; nothing of an earlier build's tables.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct TombstoneNote(u16);

impl TombstoneNote {
    /// It says no more.
    pub const NONE: TombstoneNote = TombstoneNote(0);
    const MOVED_AWAY: u16 = crate::ids::ORDINALS;
    const ALL: u16 = TombstoneNote::MOVED_AWAY | (crate::ids::ORDINALS - 1);

    /// The note of a tombstone's body.
    pub(crate) fn of(body: &[u8]) -> TombstoneNote {
        let is_moved_away = half(body, INFOMASK2) & MOVED_AWAY != 0;
        let mark = if is_moved_away {
            TombstoneNote::MOVED_AWAY
        } else {
            0
        };
        TombstoneNote(ordinal_of(body).0 | mark)
    }

    /// The body of a tombstone with this note.
    pub(crate) fn to_body(self) -> [u8; BODY_BYTES_MIN] {
        let (top, bits) = to_bits(Ordinal(self.0 & !TombstoneNote::MOVED_AWAY));
        let mark = if self.0 & TombstoneNote::MOVED_AWAY != 0 {
            MOVED_AWAY
        } else {
            0
        };
        let mut body = EMPTY_BODY;
        body[INFOMASK2..INFOMASK2 + 2].copy_from_slice(&(top | mark).to_le_bytes());
        body[INFOMASK..INFOMASK + 2].copy_from_slice(&bits.to_le_bytes());
        body
    }

    /// Its number in the log.
    pub(crate) fn number(self) -> u64 {
        u64::from(self.0)
    }

    /// The note with this number.
    pub(crate) fn from_number(number: u64) -> Option<TombstoneNote> {
        let number = u16::try_from(number).ok()?;
        (number <= TombstoneNote::ALL).then_some(TombstoneNote(number))
    }
}

/// The body of the tombstone of a row that went to another partition.
pub(crate) const MOVED_AWAY_BODY: [u8; BODY_BYTES_MIN] = {
    let mut body = EMPTY_BODY;
    body[INFOMASK2 + 1] = (MOVED_AWAY >> u8::BITS) as u8;
    body
};

impl VersionRef {
    /// Which of its row's states it is: 0 the first, and one more with every change, modulo
    /// [`ORDINALS`](crate::ids::ORDINALS). A transaction's states in between go at its commit, so
    /// there are gaps. Of an earlier build's table, 0.
    #[inline]
    pub fn ordinal(&self) -> Ordinal {
        ordinal_of(self.body())
    }

    /// Whether it is the tombstone of a row that went to another partition.
    pub fn is_moved_away(&self) -> bool {
        self.is_tombstone() && half(self.body(), INFOMASK2) & MOVED_AWAY != 0
    }

    /// Gives an unpublished state its ordinal. Whatever transaction information a caller's body has
    /// is cleared.
    pub(crate) fn put_ordinal(&self, ordinal: Ordinal) {
        debug_assert!(!self.is_lock());
        let (top, bits) = to_bits(ordinal);
        let kept2 = if self.is_tombstone() {
            !TRANSACTION2 | MOVED_AWAY
        } else {
            !TRANSACTION2
        };
        // SAFETY: the version is unpublished, so nothing else reads its body, and any body is
        // longer than these four bytes.
        let halves = unsafe {
            let body = self.0.cast::<u8>().add(STAMP_BYTES);
            body.cast::<[[u8; 2]; 2]>().as_mut()
        };
        let put = |half: &mut [u8; 2], kept: u16, bits: u16| {
            *half = (u16::from_le_bytes(*half) & kept | bits).to_le_bytes();
        };
        put(&mut halves[0], kept2, top);
        put(&mut halves[1], !TRANSACTION, bits);
    }
}

#[cfg(test)]
mod tests {
    use super::super::version::{block_bytes, flags};
    use super::*;
    use crate::ids::{CommandId, ORDINALS, Xid};
    use std::ptr::NonNull;

    fn version(block: &mut [u64], body: &[u8], flags: u32) -> VersionRef {
        assert!(size_of_val(block) >= block_bytes(body.len()));
        let at = NonNull::new(block.as_mut_ptr().cast()).unwrap();
        // SAFETY: the block is large enough and 8-byte aligned.
        unsafe { VersionRef::write(at, body, Xid(1), CommandId(0), flags) }
    }

    #[test]
    fn every_ordinal_lies_beside_what_readers_of_columns_look_at() {
        let mut block = [0; 8];
        for flags in [0, flags::TOMBSTONE] {
            for number in 0..ORDINALS {
                let state = version(&mut block, &[0xFF; 20], flags);
                state.put_ordinal(Ordinal(number));
                assert_eq!(state.ordinal(), Ordinal(number));
                assert_eq!(half(state.body(), INFOMASK2) & !TRANSACTION2, 0x1FFF);
                assert_eq!(half(state.body(), INFOMASK) & !TRANSACTION, 0x000F);
                assert_eq!(state.body()[4..], [0xFF; 16]);
                assert_eq!(state.is_moved_away(), flags == flags::TOMBSTONE);
                assert_eq!(half(state.body(), INFOMASK2) & 0x8000, 0);
            }
        }
    }

    #[test]
    fn notes_of_tombstones_survive_log_and_body() {
        for number in 0..u64::from(2 * ORDINALS) {
            let note = TombstoneNote::from_number(number).unwrap();
            assert_eq!(note.number(), number);
            assert_eq!(TombstoneNote::of(&note.to_body()), note);
        }
        assert_eq!(TombstoneNote::from_number(u64::from(2 * ORDINALS)), None);
        assert_eq!(TombstoneNote::from_number(1 << 40), None);
        assert_eq!(TombstoneNote::NONE.to_body(), EMPTY_BODY);
        assert_eq!(
            TombstoneNote::of(&MOVED_AWAY_BODY).to_body(),
            MOVED_AWAY_BODY
        );
    }

    #[test]
    fn ordinals_go_round() {
        assert_eq!(Ordinal(7).next(), Ordinal(8));
        assert_eq!(Ordinal(ORDINALS - 1).next(), Ordinal(0));
    }
}
