//! Single columns of a row, read where it lies: what `heap_deform_tuple` does, without the columns
//! nobody asks for.
use crate::pg::{self, version};
use mot_engine::VersionRef;
use mot_engine::key::{AttributeLayout, fixed_starts};
use pgrx::pg_sys;

/// A column as its row type describes it.
struct Column {
    layout: AttributeLayout,
    /// As `fixed_starts` has it: a varlena may have to be aligned from there.
    start: Option<usize>,
    /// The value in rows from before the column, as a row would have it; `None`: NULL.
    missing: Option<Box<[u64]>>,
}

/// Where the columns of a table are.
pub struct Layout {
    columns: Vec<Column>,
}

/// A row.
#[derive(Clone, Copy)]
pub struct Row {
    data: *const u8,
    /// A bit for each column that is not NULL. NULL: none is.
    present: *const u8,
    columns: usize,
}

/// What is at a column's place.
pub enum Found {
    At(*const u8),
    Null,
}

impl Layout {
    /// Of the first `count` columns of a table's row type, or of a copy with its constraints: those
    /// have the values that older rows lack.
    pub unsafe fn new(descriptor: pg_sys::TupleDesc, count: usize) -> Layout {
        // SAFETY: a live row type with at least so many columns.
        let layout = unsafe { pg::attribute_layouts(descriptor, count) };
        let columns = layout.iter().zip(fixed_starts(&layout));
        let column = |(at, (&layout, start)): (usize, (&AttributeLayout, Option<usize>))| Column {
            layout,
            start,
            // SAFETY: a column of the row type.
            missing: unsafe { missing(descriptor, at) },
        };
        Layout {
            columns: columns.enumerate().map(column).collect(),
        }
    }

    /// Where the row has the column, from 0.
    #[inline]
    pub unsafe fn find(&self, row: &Row, position: usize) -> Found {
        let column = &self.columns[position];
        if let Some(start) = column.start
            && row.present.is_null()
            && position < row.columns
        {
            // SAFETY: a row of the row type: `present` has a bit for each of its columns, `data`
            // their values. So below.
            return Found::At(unsafe { row.data.add(column.begin(row.data, start)) });
        }
        // SAFETY: as above.
        unsafe { self.find_slowly(row, position) }
    }

    #[inline(never)]
    unsafe fn find_slowly(&self, row: &Row, position: usize) -> Found {
        // SAFETY: as for `find`.
        unsafe {
            if position >= row.columns {
                return match &self.columns[position].missing {
                    Some(value) => Found::At(value.as_ptr().cast()),
                    None => Found::Null,
                };
            }
            if !row.present.is_null() {
                if !row.has(position) {
                    return Found::Null;
                }
                return Found::At(self.walk(row, position, 0, 0));
            }
            let (first, start) = self.last_fixed(position);
            Found::At(self.walk(row, position, first, start))
        }
    }

    /// The last column before this one whose place is the same in all rows without NULLs, and that
    /// place.
    #[inline]
    fn last_fixed(&self, position: usize) -> (usize, usize) {
        (0..position)
            .rev()
            .find_map(|at| self.columns[at].start.map(|start| (at, start)))
            .unwrap_or((0, 0))
    }

    /// Goes from column to column, beginning with `at`, which begins at `offset` or is to be
    /// aligned from there.
    unsafe fn walk(
        &self,
        row: &Row,
        position: usize,
        mut at: usize,
        mut offset: usize,
    ) -> *const u8 {
        // SAFETY: as for `find`; the columns on the way are looked at as heap_deform_tuple looks at
        // them.
        unsafe {
            loop {
                let column = &self.columns[at];
                if row.has(at) {
                    offset = column.begin(row.data, offset);
                    if at == position {
                        return row.data.add(offset);
                    }
                    offset += column.bytes(row.data.add(offset));
                }
                at += 1;
            }
        }
    }
}

/// A column's value in rows that end before it, in memory that is aligned for any type.
unsafe fn missing(descriptor: pg_sys::TupleDesc, at: usize) -> Option<Box<[u64]>> {
    // SAFETY: a column of the row type (caller), which owns the value.
    unsafe {
        let attribute = &*version::attributes(descriptor).add(at);
        if !attribute.atthasmissing {
            return None;
        }
        let (length, by_value) = (attribute.attlen, attribute.attbyval);
        let mut is_null = false;
        let datum = pg_sys::getmissingattr(descriptor, at as i32 + 1, &raw mut is_null);
        if is_null {
            return None;
        }
        if by_value {
            // `store_att_byval`: the lower bytes.
            return Some(Box::new([datum.value() as u64]));
        }
        let from = datum.cast_mut_ptr::<u8>();
        let bytes = bytes_of(length, from);
        let mut value = vec![0_u64; bytes.div_ceil(size_of::<u64>())];
        std::ptr::copy_nonoverlapping(from, value.as_mut_ptr().cast::<u8>(), bytes);
        Some(value.into())
    }
}

impl Column {
    /// Where the column begins that follows what ends at `offset`: a varlena with a short header is
    /// not aligned, and the byte there is not 0.
    #[inline]
    unsafe fn begin(&self, data: *const u8, offset: usize) -> usize {
        let aligned = self.layout.align_up(offset);
        // SAFETY: a value of the column is there, after padding or not (caller).
        if self.layout.len == -1 && offset != aligned && unsafe { *data.add(offset) } != 0 {
            return offset;
        }
        aligned
    }

    /// The value's length.
    unsafe fn bytes(&self, value: *const u8) -> usize {
        // SAFETY: a value of the column's type.
        unsafe { bytes_of(self.layout.len, value) }
    }
}

/// The length of a value of a type whose `typlen` this is.
unsafe fn bytes_of(length: i16, value: *const u8) -> usize {
    // SAFETY: a value of the type.
    unsafe {
        match length {
            -1 => pgrx::varsize_any(value.cast()),
            -2 => std::ffi::CStr::from_ptr(value.cast())
                .to_bytes_with_nul()
                .len(),
            length => length as usize,
        }
    }
}

impl Row {
    /// No row: none of its columns are looked at.
    pub fn none() -> Row {
        Row {
            data: std::ptr::null(),
            present: std::ptr::null(),
            columns: 0,
        }
    }

    /// The row a version holds.
    #[inline]
    pub fn of(version: VersionRef) -> Row {
        // SAFETY: a visible version's image is a whole heap tuple that the caller's snapshot keeps;
        // its data begin where its header says.
        unsafe {
            let header = version.image_ptr().cast::<pg_sys::HeapTupleHeaderData>();
            let has_null = (*header).t_infomask as u32 & pg_sys::HEAP_HASNULL != 0;
            Row {
                data: header.cast::<u8>().add((*header).t_hoff as usize),
                present: if has_null {
                    (&raw const (*header).t_bits).cast()
                } else {
                    std::ptr::null()
                },
                columns: ((*header).t_infomask2 as u32 & pg_sys::HEAP_NATTS_MASK) as usize,
            }
        }
    }

    #[inline]
    unsafe fn has(&self, position: usize) -> bool {
        // SAFETY: a bit for each column (caller).
        self.present.is_null()
            || unsafe { *self.present.add(position / 8) } & 1 << (position % 8) != 0
    }
}
