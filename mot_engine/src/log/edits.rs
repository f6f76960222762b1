//! Writing the edits of a delta.

use super::delta::GAP_BYTES;
use super::runs::each_run;
use super::varint::put;
use std::ops::Range;

/// A few new bytes are copied as if they were so many, in two moves instead of a call.
const COPY_BYTES: usize = 32;

/// Room that an encoder takes beyond what it appends.
pub(super) const ROOM_BEYOND: usize = COPY_BYTES;

/// A delta under construction.
pub(super) struct Encoder<'a> {
    new: &'a [u8],
    out: &'a mut Vec<u8>,
    /// First base byte no edit has covered.
    base_position: usize,
    edits: usize,
}

impl<'a> Encoder<'a> {
    /// Without an edit.
    pub(super) fn new(new: &'a [u8], out: &'a mut Vec<u8>) -> Self {
        Encoder {
            new,
            out,
            base_position: 0,
            edits: 0,
        }
    }

    /// How many edits there are.
    pub(super) fn edits(&self) -> usize {
        self.edits
    }

    /// Where the bytes written so far end.
    pub(super) fn end(&self) -> usize {
        self.out.len()
    }

    /// Base bytes up to `base_start` stay; then `drop` of them give way to `new[add]`.
    #[inline]
    pub(super) fn edit(&mut self, base_start: usize, drop: usize, add: Range<usize>) {
        const SHORT: usize = 0x80;
        let (keep, size) = (base_start - self.base_position, add.len());
        if drop == size && keep < SHORT && 2 * size < SHORT {
            // Most are so: two numbers of a byte each.
            self.out.extend_from_slice(&[keep as u8, (size as u8) << 1]);
        } else {
            self.put_numbers(keep, drop, size);
        }
        match self.new[add.start..].first_chunk::<COPY_BYTES>() {
            Some(bytes) if size <= COPY_BYTES => {
                let end = self.out.len() + size;
                self.out.extend_from_slice(bytes);
                self.out.truncate(end);
            }
            _ => self.out.extend_from_slice(&self.new[add]),
        }
        self.base_position = base_start + drop;
        self.edits += 1;
    }

    fn put_numbers(&mut self, keep: usize, drop: usize, size: usize) {
        put(self.out, keep as u64);
        if drop == size {
            put(self.out, (size as u64) << 1);
        } else {
            put(self.out, (size as u64) << 1 | 1);
            put(self.out, drop as u64);
        }
    }

    /// Edits that turn `base[base_start..]` into `new[new_start..]`, `length` bytes of each, until
    /// there are `edits_most` of them in all.
    pub(super) fn replace_differences(
        &mut self,
        base: &[u8],
        base_start: usize,
        new_start: usize,
        length: usize,
        edits_most: usize,
    ) {
        let old = &base[base_start..][..length];
        let new = &self.new[new_start..][..length];
        // The edit that is to come, unless it gets longer. None is empty.
        let mut coming = 0..0;
        each_run(old, new, |start, end| {
            let is_near = start - coming.end <= GAP_BYTES;
            // It takes all the rest.
            let is_last = self.edits + 1 >= edits_most;
            if !coming.is_empty() && (is_near || is_last) {
                coming.end = end;
                return;
            }
            self.replace(base_start, new_start, &coming);
            coming = start..end;
        });
        self.replace(base_start, new_start, &coming);
    }

    /// The edit of a range of equally many bytes, if it is not empty.
    #[inline]
    fn replace(&mut self, base_start: usize, new_start: usize, range: &Range<usize>) {
        if !range.is_empty() {
            self.edit(
                base_start + range.start,
                range.len(),
                new_start + range.start..new_start + range.end,
            );
        }
    }
}
