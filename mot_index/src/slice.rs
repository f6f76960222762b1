//! Keys cut into slices of eight bytes, one for each layer of the trie.
//!
//! Within a layer an entry is ordered by its slice, read as a big-endian number with zero bytes
//! after the key's end. Entries of one slice are ordered by their class. The class is how many
//! bytes of the slice the key has, or [`LONGER`] if the key continues after the slice. Entries of
//! the class [`LONGER`] are ordered by the bytes after the slice. That is the order of whole keys
//! by `memcmp`: a prefix sorts before its extensions.

use core::cmp::Ordering;

/// Bytes of a key that one layer compares.
pub(crate) const SLICE_BYTES: usize = 8;

/// The longest key in bytes. Fifteen suffixes of this length still fit a suffix bag, whose offsets
/// are 16 bits wide and count units of four bytes.
pub const MAX_KEY_BYTES: usize = 16 * 1024;

/// The class of a key that continues after its slice. Entries of this class that share a slice are
/// one that leads to a layer, or else some with suffixes. Those are at most
/// [`SUFFIXES_OF_A_SLICE`], ordered by their suffixes.
pub(crate) const LONGER: u64 = 9;

/// How many keys that continue after one slice stay in its leaf. With one more, all of them move
/// to a layer of their own. A layer takes a node and a bag, and most slices have only two or three
/// such keys. These keys and those that end in the slice (nine lengths) leave room in a leaf for
/// another slice. So a full leaf can be cut.
pub(crate) const SUFFIXES_OF_A_SLICE: usize = 4;

/// Kinds 0 to 8 are classes. `SUFFIX`: the rest of the key is in the leaf's bag. A slice that has
/// such entries leads to no layer.
pub(crate) const SUFFIX: u64 = 9;
/// The entry's value is the address of the root of a layer for all longer keys of the slice.
pub(crate) const LAYER: u64 = 10;

/// The class of an entry of a kind.
#[inline]
pub(crate) fn class_of_kind(kind: u64) -> u64 {
    kind.min(LONGER)
}

/// The slice and the class of the rest of a key.
#[inline]
pub(crate) fn cut(rest: &[u8]) -> (u64, u64) {
    match rest.first_chunk::<SLICE_BYTES>() {
        Some(chunk) => {
            let class = if rest.len() > SLICE_BYTES {
                LONGER
            } else {
                SLICE_BYTES as u64
            };
            (u64::from_be_bytes(*chunk), class)
        }
        None => {
            let mut chunk = [0; SLICE_BYTES];
            chunk[..rest.len()].copy_from_slice(rest);
            (u64::from_be_bytes(chunk), rest.len() as u64)
        }
    }
}

/// How many whole layers two keys share: equal slices after which both keys continue.
pub(crate) fn shared_layers(a: &[u8], b: &[u8]) -> usize {
    a.chunks_exact(SLICE_BYTES)
        .zip(b.chunks_exact(SLICE_BYTES))
        .take(a.len().min(b.len()).saturating_sub(1) / SLICE_BYTES)
        .take_while(|(x, y)| x == y)
        .count()
}

/// The order of two keys by `memcmp`, and how many whole layers they share, found in one pass.
#[inline]
pub(crate) fn compare(a: &[u8], b: &[u8]) -> (Ordering, usize) {
    let mut shared = 0;
    loop {
        let from = shared * SLICE_BYTES;
        let (x, y) = (cut(&a[from..]), cut(&b[from..]));
        if x != y {
            return (x.cmp(&y), shared);
        }
        if x.1 != LONGER {
            return (Ordering::Equal, shared);
        }
        shared += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_classes_order_as_memcmp() {
        let keys: [&[u8]; 10] = [
            b"",
            b"\0",
            b"\0\0",
            b"\0\0\0\0\0\0\0\0",
            b"\0\0\0\0\0\0\0\0\0",
            b"\0\0\0\0\0\0\0\x01",
            b"a",
            b"a\0",
            b"abcdefgh",
            b"abcdefghi",
        ];
        for pair in keys.windows(2) {
            assert!(pair[0] < pair[1]);
            assert!(cut(pair[0]) < cut(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn layers_are_shared_only_by_longer_keys() {
        assert_eq!(shared_layers(b"", b""), 0);
        assert_eq!(shared_layers(b"abcdefgh", b"abcdefghi"), 0);
        assert_eq!(shared_layers(b"abcdefghj", b"abcdefghi"), 1);
        assert_eq!(shared_layers(b"abcdefgh12345678x", b"abcdefgh12345678"), 1);
        assert_eq!(shared_layers(b"abcdefgh12345678x", b"abcdefgh12345678y"), 2);
        assert_eq!(shared_layers(b"abcdefgXi", b"abcdefghi"), 0);
    }

    #[test]
    fn comparing_tells_order_and_shared_layers() {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for length in [0, 1, 7, 8, 9, 15, 16, 17, 24, 30] {
            for fill in [0, 1, 0xFF] {
                for last in [0, 1, 0xFF] {
                    let mut key = vec![fill; length];
                    if let Some(byte) = key.last_mut() {
                        *byte = last;
                    }
                    keys.push(key);
                }
            }
        }
        for a in &keys {
            for b in &keys {
                assert_eq!(
                    compare(a, b),
                    (a.cmp(b), shared_layers(a, b)),
                    "{a:?} {b:?}"
                );
            }
        }
    }
}
