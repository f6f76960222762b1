//! A changed row out of the old one's image: its bytes, with the assigned values written over them.
//!
//! The same bytes as taking the old row apart and forming a tuple of its values and the assigned ones, as long as
//! - the assigned columns are passed by value and have a fixed place: everything before them has a fixed width, and nothing is NULL, before and
//!   after; and
//! - the row was formed with as many columns as its type has now.
//!
//! (But for the length of a text's header, if its column's STORAGE was changed.) Otherwise the caller forms the tuple; what was evaluated is good for
//! both. Debug builds do both and compare. A row without NULL meets every NOT NULL;
//! whoever has CHECK conditions to ask makes no patch.
use crate::pg::version;
use pgrx::pg_sys;

/// Rows longer than this are formed anew: the memory for the new image is kept.
const IMAGE_BYTES_MAX: usize = 4096;

/// How to write the assigned columns of a table into an image.
pub struct Patch {
    /// Columns of the row type.
    columns: u16,
    places: Vec<Place>,
    image: Vec<u8>,
}

/// A column's place behind the header.
struct Place {
    offset: usize,
    width: usize,
}

impl Patch {
    /// For these columns, by number from 1; `None` if one has no fixed place.
    pub unsafe fn new(
        row_type: pg_sys::TupleDesc,
        assigned: impl Iterator<Item = i16>,
    ) -> Option<Patch> {
        // SAFETY: a live row type; the numbers are its columns'.
        unsafe {
            let places = assigned.map(|number| Place::of(row_type, number as usize - 1));
            Some(Patch {
                columns: u16::try_from((*row_type).natts).ok()?,
                places: places.collect::<Option<_>>()?,
                image: Vec::with_capacity(IMAGE_BYTES_MAX),
            })
        }
    }

    /// Makes the new image; false: it has to be formed.
    #[inline]
    pub fn apply(&mut self, old: &[u8], values: &[(pg_sys::Datum, bool)]) -> bool {
        if old.len() > IMAGE_BYTES_MAX || old.len() < size_of::<pg_sys::HeapTupleHeaderData>() {
            return false;
        }
        // SAFETY: an image of the engine's is a heap tuple of at least its header, aligned as one; what is checked is read of it alone.
        let (columns, has_null, data) = unsafe {
            let header = &*old.as_ptr().cast::<pg_sys::HeapTupleHeaderData>();
            (
                header.t_infomask2 & pg_sys::HEAP_NATTS_MASK as u16,
                header.t_infomask & pg_sys::HEAP_HASNULL as u16 != 0,
                usize::from(header.t_hoff),
            )
        };
        if has_null || columns != self.columns || values.iter().any(|(_, is_null)| *is_null) {
            return false;
        }
        self.image.clear();
        self.image.extend_from_slice(old);
        for (place, (value, _)) in self.places.iter().zip(values) {
            let start = data + place.offset;
            let Some(room) = self.image.get_mut(start..start + place.width) else {
                return false;
            };
            // `store_att_byval`.
            let value = value.value();
            match place.width {
                1 => room.copy_from_slice(&(value as u8).to_ne_bytes()),
                2 => room.copy_from_slice(&(value as u16).to_ne_bytes()),
                4 => room.copy_from_slice(&(value as u32).to_ne_bytes()),
                _ => room.copy_from_slice(&(value as u64).to_ne_bytes()),
            }
        }
        true
    }

    /// What `apply` made. The stamp in front is the old row's.
    #[inline]
    pub fn image(&self) -> &[u8] {
        &self.image
    }
}

impl Place {
    unsafe fn of(row_type: pg_sys::TupleDesc, position: usize) -> Option<Place> {
        // SAFETY: a live row type that has the column.
        unsafe {
            let attributes = version::attributes(row_type);
            let mut offset = 0;
            for before in 0..=position {
                let attribute = &*attributes.add(before);
                let width = usize::try_from(attribute.attlen).ok().filter(|&w| w > 0)?;
                let alignment = match attribute.attalign as u8 {
                    b'c' => 1,
                    b's' => 2,
                    b'i' => 4,
                    b'd' => 8,
                    _ => return None,
                };
                offset = usize::next_multiple_of(offset, alignment);
                if before == position {
                    let is_word = attribute.attbyval && matches!(width, 1 | 2 | 4 | 8);
                    return is_word.then_some(Place { offset, width });
                }
                offset += width;
            }
            None
        }
    }
}
