//! Values of variable length as PostgreSQL stores them on a little-endian machine.
//!
//! ```text
//! first byte  xxxxxxx1: one byte of header; its upper seven bits are the length, header included
//!             00000001: the value is elsewhere
//!             xxxxxx00: four bytes of header; the upper 30 bits are the length, header included
//!             xxxxxx10: the same, and the value is compressed
//! ```

/// Bytes of the short header.
const SHORT_HEADER: usize = 1;
/// Bytes of the long header.
const LONG_HEADER: usize = 4;
/// The first byte of a value that is elsewhere.
const ELSEWHERE: u8 = 1;

/// The bytes of a value behind its header; `None`: it is compressed, or elsewhere.
///
/// # Safety
/// A varlena is at `place`, and stays as it is as long as the bytes are looked at.
#[inline]
pub unsafe fn payload<'a>(place: *const u8) -> Option<&'a [u8]> {
    // SAFETY: a varlena (caller): its header says how many bytes there are.
    unsafe {
        let first = *place;
        let header = match first & 1 {
            1 if first == ELSEWHERE => return None,
            1 => SHORT_HEADER,
            _ if first & 2 != 0 => return None,
            _ => LONG_HEADER,
        };
        let bytes = bytes(place) - header;
        Some(std::slice::from_raw_parts(place.add(header), bytes))
    }
}

/// The length of a value that is not elsewhere, header included.
///
/// # Safety
/// Such a varlena is at `place`.
#[inline]
pub unsafe fn bytes(place: *const u8) -> usize {
    // SAFETY: a varlena (caller).
    unsafe {
        let first = *place;
        debug_assert_ne!(first, ELSEWHERE, "a stored row holds its values");
        if first & 1 == 1 {
            usize::from(first >> 1)
        } else {
            (place.cast::<u32>().read_unaligned() >> 2) as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_headers_tell_the_length() {
        let short = [(4 << 1) | 1, b'a', b'b', b'c'];
        let mut long = (7_u32 << 2).to_le_bytes().to_vec();
        long.extend(b"abc");
        for value in [&short[..], &long[..]] {
            // SAFETY: a whole varlena.
            unsafe {
                assert_eq!(payload(value.as_ptr()), Some(&b"abc"[..]));
                assert_eq!(bytes(value.as_ptr()), value.len());
            }
        }
    }

    #[test]
    fn compressed_values_and_those_elsewhere_have_no_payload() {
        let compressed = (8_u32 << 2 | 2).to_le_bytes();
        let elsewhere = [ELSEWHERE, 18, 0, 0];
        for value in [compressed, elsewhere] {
            // SAFETY: nothing behind the header is read.
            assert_eq!(unsafe { payload(value.as_ptr()) }, None);
        }
    }
}
