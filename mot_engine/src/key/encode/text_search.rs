//! tsvector and tsquery, as PostgreSQL lays them out behind the varlena's header.
//!
//! ```text
//! tsvector  u32 bytes of the value, u32 lexemes, then per lexeme: 00 with positions or 01 without,
//!           its text as a bytea; with positions: their number and each, u16, complemented
//! tsquery   u32 nodes, u32 bytes of the value, then the nodes, a node before its children:
//!           type, complemented, and of an operator: its number, complemented, and its children's
//!           encodings, and of a phrase u16 distance, complemented;
//!           of an operand: i32 checksum of the text, descending, and the text as a bytea
//! ```
//! silly_cmp_tsvector compares the values' lengths first, then what they hold. A position comes
//! with its weight in the two lowest bits. CompareTSQ does not look at weights and prefix marks.
//!
//! Contract: total. An encoding that has become longer than any key is left unfinished, as those of
//! arrays are.

use super::kinds::corrupt;
use super::strings::encode_held;
use crate::errors::EngineError;
use crate::key::buffer::KeyBuffer;
use crate::key::kind::KeyKind;

const COUNT_BYTES: usize = 4;

/// A lexeme's entry: whether it has positions (1 bit), its length (11), where it is (20).
const ENTRY_BYTES: usize = 4;
const ENTRY_HAS_POSITIONS: u32 = 1;
const LENGTH_SHIFT: u32 = 1;
const LENGTH_MASK: u32 = 0x7FF;
const PLACE_SHIFT: u32 = 12;
/// A position: its weight (2 bits), and itself (14).
const WEIGHT_SHIFT: u32 = 14;

/// A node of a query: its type, and what hangs on that (`tsearch/ts_type.h`).
const NODE_BYTES: usize = 12;
const NODE_OPERAND: u8 = 1;
const NODE_OPERATOR: u8 = 2;
const OPERATOR_NOT: u8 = 1;
const OPERATOR_PHRASE: u8 = 4;
/// An operand: the length of its text (12 bits), and where that is (20).
const OPERAND_LENGTH_MASK: u32 = 0xFFF;
const OPERAND_PLACE_SHIFT: u32 = 12;

/// A number of entries, they, and what is behind.
fn split(bytes: &[u8], width: usize) -> Option<(u32, &[u8], &[u8])> {
    let (count, rest) = bytes.split_first_chunk::<COUNT_BYTES>()?;
    let count = u32::from_le_bytes(*count);
    let (entries, rest) = rest.split_at_checked((count as usize).checked_mul(width)?)?;
    Some((count, entries, rest))
}

#[inline(never)]
pub(super) fn encode_tsvector(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("tsvector is malformed");
    let (count, entries, data) = split(bytes, ENTRY_BYTES).ok_or_else(malformed)?;
    key.push_array((bytes.len() as u32).to_be_bytes())?;
    key.push_array(count.to_be_bytes())?;
    for entry in entries.as_chunks::<ENTRY_BYTES>().0 {
        let entry = u32::from_le_bytes(*entry);
        let place = (entry >> PLACE_SHIFT) as usize;
        let end = place + (entry >> LENGTH_SHIFT & LENGTH_MASK) as usize;
        let has_positions = entry & ENTRY_HAS_POSITIONS != 0;
        let lexeme = data.get(place..end).ok_or_else(malformed)?;
        key.push_array([u8::from(!has_positions)])?;
        encode_held(KeyKind::Bytea, None, lexeme, key)?;
        if has_positions {
            let positions = data.get(end.next_multiple_of(2)..).ok_or_else(malformed)?;
            let (count, positions) = positions.split_first_chunk::<2>().ok_or_else(malformed)?;
            let count = u16::from_le_bytes(*count);
            let positions = positions.as_chunks::<2>().0;
            let positions = positions.get(..usize::from(count)).ok_or_else(malformed)?;
            key.push_array((!count).to_be_bytes())?;
            for position in positions {
                // The weight is above the position, and counts less.
                let stored = u16::from_le_bytes(*position);
                let ordered = stored.rotate_right(WEIGHT_SHIFT);
                key.push_array((!ordered).to_be_bytes())?;
            }
        }
        if key.is_too_long() {
            break;
        }
    }
    Ok(())
}

/// What is left to do of a query.
enum Left {
    /// The node at this place, and all below it.
    Node(usize),
    /// The distance of a phrase whose children are done.
    Distance(u16),
}

#[inline(never)]
pub(super) fn encode_tsquery(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("tsquery is malformed");
    let (count, nodes, texts) = split(bytes, NODE_BYTES).ok_or_else(malformed)?;
    let nodes = nodes.as_chunks::<NODE_BYTES>().0;
    key.push_array(count.to_be_bytes())?;
    key.push_array((bytes.len() as u32).to_be_bytes())?;
    let mut left = Vec::new();
    if count > 0 {
        push(&mut left, Left::Node(0))?;
    }
    while let Some(next) = left.pop() {
        // So the walk ends, whatever the nodes say: each step appends.
        if key.is_too_long() {
            break;
        }
        let at = match next {
            Left::Node(at) => at,
            Left::Distance(distance) => {
                key.push_array((!distance).to_be_bytes())?;
                continue;
            }
        };
        let [kind, operator, d0, d1, a, b, c, d, e, f, g, h] =
            *nodes.get(at).ok_or_else(malformed)?;
        key.push_array([!kind])?;
        match kind {
            NODE_OPERATOR => {
                key.push_array([!operator])?;
                if operator == OPERATOR_PHRASE {
                    push(&mut left, Left::Distance(u16::from_le_bytes([d0, d1])))?;
                }
                if operator != OPERATOR_NOT {
                    let other = u32::from_le_bytes([a, b, c, d]) as usize;
                    push(&mut left, Left::Node(at.saturating_add(other)))?;
                }
                push(&mut left, Left::Node(at + 1))?;
            }
            NODE_OPERAND => {
                let checksum = u32::from_le_bytes([a, b, c, d]) ^ 1 << 31;
                key.push_array((!checksum).to_be_bytes())?;
                let text = u32::from_le_bytes([e, f, g, h]);
                let place = (text >> OPERAND_PLACE_SHIFT) as usize;
                let end = place + (text & OPERAND_LENGTH_MASK) as usize;
                let text = texts.get(place..end).ok_or_else(malformed)?;
                encode_held(KeyKind::Bytea, None, text, key)?;
            }
            _ => return Err(malformed()),
        }
    }
    Ok(())
}

fn push(left: &mut Vec<Left>, what: Left) -> Result<(), EngineError> {
    left.try_reserve(1)
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    left.push(what);
    Ok(())
}
