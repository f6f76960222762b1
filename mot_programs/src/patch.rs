//! A changed row out of the old one's body: its bytes, with the assigned values written over them.
//!
//! The same bytes as taking the old row apart and forming a tuple of its values and the assigned
//! ones, as long as
//! - the assigned columns are passed by value and have a fixed place: everything before them has a
//!   fixed width, and nothing is NULL, before and after; and
//! - the row was formed with as many columns as its type has now.
//!
//! (But for the length of a text's header, if its column's STORAGE was changed.) Otherwise the
//! caller forms the tuple; what was evaluated is good for both. A row without NULL meets every NOT
//! NULL; whoever has CHECK conditions to ask makes no patch.
use mot_engine::key::{AttributeLayout, BodyReader, fixed_starts};

/// Rows longer than this are formed anew: the memory for the new body is kept.
const BODY_BYTES_MAX: usize = 4096;

/// How to write the assigned columns of a table into a body.
pub struct Patch {
    /// Columns of the row type.
    columns: usize,
    places: Vec<Place>,
    body: Vec<u8>,
}

/// A column's place behind the header.
struct Place {
    offset: usize,
    width: usize,
}

impl Patch {
    /// Of all columns of a table, for these, by number from 1; `None` if one has no fixed place.
    pub fn new(layout: &[AttributeLayout], assigned: impl Iterator<Item = i16>) -> Option<Patch> {
        let starts: Vec<_> = fixed_starts(layout).collect();
        let place = |number: i16| {
            let column = number as usize - 1;
            let width = usize::try_from(layout[column].len).ok()?;
            let is_word = layout[column].by_value && matches!(width, 1 | 2 | 4 | 8);
            let offset = starts[column].filter(|_| is_word)?;
            Some(Place { offset, width })
        };
        Some(Patch {
            columns: layout.len(),
            places: assigned.map(place).collect::<Option<_>>()?,
            body: Vec::with_capacity(BODY_BYTES_MAX),
        })
    }

    /// Makes the new body out of the old one and the assigned values, of which `None` is NULL;
    /// false: it has to be formed.
    #[inline]
    pub fn apply(&mut self, old: &[u8], values: impl Iterator<Item = Option<u64>>) -> bool {
        if old.len() > BODY_BYTES_MAX {
            return false;
        }
        let Some(data) = BodyReader::data_without_nulls(old, self.columns) else {
            return false;
        };
        let data = old.len() - data.len();
        self.body.clear();
        self.body.extend_from_slice(old);
        for (place, value) in self.places.iter().zip(values) {
            let Some(value) = value else {
                return false;
            };
            let start = data + place.offset;
            let Some(room) = self.body.get_mut(start..start + place.width) else {
                return false;
            };
            // As `store_att_byval` stores a datum.
            match place.width {
                1 => room.copy_from_slice(&(value as u8).to_le_bytes()),
                2 => room.copy_from_slice(&(value as u16).to_le_bytes()),
                4 => room.copy_from_slice(&(value as u32).to_le_bytes()),
                _ => room.copy_from_slice(&value.to_le_bytes()),
            }
        }
        true
    }

    /// What `apply` made.
    #[inline]
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}
