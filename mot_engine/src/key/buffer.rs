//! A reusable byte buffer for one key.
//!
//! Contract: no allocation up to `INLINE_BYTES`; beyond that the heap part is reserved with
//! `try_reserve` and kept for the next key. `as_slice` is always the whole key written since
//! `clear`.

use crate::errors::EngineError;
use crate::limits::KEY_BYTES_MAX;

/// Bytes held without a heap allocation: every TPC-C key and most text keys fit.
const INLINE_BYTES: usize = 256;

/// One encoded key, or a prefix of one.
pub struct KeyBuffer {
    length: usize,
    inline: [u8; INLINE_BYTES],
    /// Holds the whole key as soon as it does not fit `inline`; else only spare capacity.
    heap: Vec<u8>,
}

impl KeyBuffer {
    /// An empty buffer, without heap memory.
    pub const fn new() -> Self {
        Self {
            length: 0,
            inline: [0; INLINE_BYTES],
            heap: Vec::new(),
        }
    }

    /// Forgets the bytes, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.length = 0;
        self.heap.clear();
    }

    /// Cuts the key back to its first `length` bytes (no effect when it is not longer).
    pub fn truncate(&mut self, length: usize) {
        if length < self.length {
            if self.length > INLINE_BYTES && length <= INLINE_BYTES {
                self.inline[..length].copy_from_slice(&self.heap[..length]);
                self.heap.clear();
            } else {
                self.heap.truncate(length);
            }
            self.length = length;
        }
    }

    /// Whether the key is longer than an index takes.
    #[inline(always)]
    pub(super) fn is_too_long(&self) -> bool {
        self.length > KEY_BYTES_MAX
    }

    /// Number of bytes written.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing was written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bytes written since `clear`.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        if self.length <= INLINE_BYTES {
            &self.inline[..self.length]
        } else {
            &self.heap
        }
    }

    #[inline]
    fn as_mut_slice(&mut self) -> &mut [u8] {
        if self.length <= INLINE_BYTES {
            &mut self.inline[..self.length]
        } else {
            &mut self.heap
        }
    }

    /// Holds the first `length` of these bytes, and nothing else.
    #[inline]
    pub(super) fn set_short(&mut self, bytes: [u8; 16], length: usize) {
        debug_assert!(length <= bytes.len());
        self.clear();
        self.inline[..bytes.len()].copy_from_slice(&bytes);
        self.length = length;
    }

    /// Appends bytes.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let end = self.length + bytes.len();
        if end <= INLINE_BYTES {
            self.inline[self.length..end].copy_from_slice(bytes);
            self.length = end;
            return Ok(());
        }
        self.push_heap(bytes)
    }

    /// Appends an array whose length the compiler knows: the path of fixed-width columns.
    #[inline(always)]
    pub(super) fn push_array<const N: usize>(&mut self, bytes: [u8; N]) -> Result<(), EngineError> {
        let end = self.length + N;
        if end <= INLINE_BYTES {
            self.inline[self.length..end].copy_from_slice(&bytes);
            self.length = end;
            return Ok(());
        }
        self.push_heap(&bytes)
    }

    #[cold]
    fn push_heap(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let end = self.length + bytes.len();
        // `heap` may hold nothing yet: reserve for the whole key.
        self.heap
            .try_reserve(end - self.heap.len())
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        if self.length <= INLINE_BYTES {
            self.heap.clear();
            self.heap.extend_from_slice(&self.inline[..self.length]);
        }
        self.heap.extend_from_slice(bytes);
        self.length = end;
        Ok(())
    }

    /// Complements the bytes from `start` on: reverses the order of what was written there.
    #[inline]
    pub(super) fn complement_from(&mut self, start: usize) {
        for byte in &mut self.as_mut_slice()[start..] {
            *byte = !*byte;
        }
    }
}

impl Default for KeyBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for KeyBuffer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "KeyBuffer(")?;
        for byte in self.as_slice() {
            write!(formatter, "{byte:02x}")?;
        }
        write!(formatter, ")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_across_the_inline_border_and_back() {
        let mut buffer = KeyBuffer::new();
        let mut model = Vec::new();
        for step in 0..700_usize {
            let piece = [step as u8; 7];
            buffer.push(&piece[..step % 8]).expect("memory");
            model.extend_from_slice(&piece[..step % 8]);
            assert_eq!(buffer.as_slice(), &model[..]);
        }
        for length in (0..model.len()).rev() {
            buffer.truncate(length);
            model.truncate(length);
            assert_eq!(buffer.as_slice(), &model[..]);
        }
        buffer.push_array([1, 2, 3]).expect("memory");
        buffer.complement_from(1);
        assert_eq!(buffer.as_slice(), &[1, !2, !3]);
    }

    #[test]
    fn grows_again_after_a_cut_below_the_border() {
        let mut buffer = KeyBuffer::new();
        buffer.push(&[7; 300]).expect("memory");
        buffer.truncate(250);
        buffer.push(&[8; 100]).expect("memory");
        assert_eq!(buffer.len(), 350);
        assert_eq!(&buffer.as_slice()[..250], &[7; 250]);
        assert_eq!(&buffer.as_slice()[250..], &[8; 100]);
    }
}
