//! Single columns of a row, read where it lies: what `heap_deform_tuple` does, without the columns
//! nobody asks for.
use crate::varlena;
use mot_engine::VersionRef;
use mot_engine::key::{AttributeLayout, fixed_starts};

/// Where a heap tuple's header says, in eleven bits, how many columns there are.
const COLUMNS_OFFSET: usize = 18;
const COLUMNS_MASK: u16 = 0x07FF;
/// Where it says whether any column is NULL.
const FLAGS_OFFSET: usize = 20;
const HAS_NULL: u8 = 1;
/// Where it says at which byte the values begin.
const DATA_OFFSET: usize = 22;
/// Where the bits of present columns are.
const PRESENT_OFFSET: usize = 23;

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

/// A row, where it lies.
#[derive(Clone, Copy)]
pub struct Row {
    data: *const u8,
    /// A bit for each column that is not NULL. NULL: none is.
    present: *const u8,
    columns: usize,
}

/// What is at a column's place.
pub enum Found {
    /// There is a value.
    At(*const u8),
    /// There is none.
    Null,
}

impl Layout {
    /// Of a table's first columns. `missing` tells what the column has in rows from before it: as
    /// a row would have it, in memory that is aligned for any type; `None`: NULL.
    pub fn new(
        layouts: &[AttributeLayout],
        mut missing: impl FnMut(usize) -> Option<Box<[u64]>>,
    ) -> Layout {
        let columns = layouts.iter().zip(fixed_starts(layouts));
        let column = |(at, (&layout, start)): (usize, (&AttributeLayout, Option<usize>))| Column {
            layout,
            start,
            missing: missing(at),
        };
        Layout {
            columns: columns.enumerate().map(column).collect(),
        }
    }

    /// Where the row has the column, from 0.
    ///
    /// # Safety
    /// The row is of the table whose layout this is, and the layout has the column.
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
///
/// # Safety
/// Such a value is there; a varlena is not elsewhere.
pub unsafe fn bytes_of(length: i16, value: *const u8) -> usize {
    // SAFETY: a value of the type.
    unsafe {
        match length {
            -1 => varlena::bytes(value),
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

    /// The row that a version holds. The caller's snapshot keeps it as long as it is looked at.
    #[inline]
    pub fn of(version: VersionRef) -> Row {
        // SAFETY: a visible version's image is a whole heap tuple that the caller's snapshot keeps.
        unsafe { Row::of_tuple(version.image_ptr()) }
    }

    /// The row in a heap tuple, of which the first 18 bytes do not matter.
    ///
    /// # Safety
    /// A whole heap tuple of a little-endian machine is there, and stays as long as the row is
    /// looked at.
    #[inline]
    pub unsafe fn of_tuple(tuple: *const u8) -> Row {
        // SAFETY: the header, and what it says (caller).
        unsafe {
            let columns = tuple.add(COLUMNS_OFFSET).cast::<u16>().read_unaligned();
            let has_null = *tuple.add(FLAGS_OFFSET) & HAS_NULL != 0;
            Row {
                data: tuple.add(usize::from(*tuple.add(DATA_OFFSET))),
                present: if has_null {
                    tuple.add(PRESENT_OFFSET)
                } else {
                    std::ptr::null()
                },
                columns: usize::from(columns & COLUMNS_MASK),
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
