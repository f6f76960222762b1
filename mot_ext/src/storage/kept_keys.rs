//! Computed keys that an UPDATE keeps, as heapam's HOT does (`HeapDetermineColumnsInfo`).
//!
//! A computed key follows from the columns that its index reads. Where the new row has the old
//! one's bytes in all of them, the old one's key is taken over, and neither expressions nor
//! comparisons run. heapam asks for all indexes together; here each index is asked alone.
//!
//! - A label stays its value's as long as the old state may be seen: whoever makes a label reads
//!   that state (`labels.rs`). The statement's snapshot, or a row lock, keeps the state meanwhile.
//! - A key that the old row lacks is computed: the index, or its storage, is newer than the row.
use crate::pg::node::List;
use crate::pg::relation::Relation;
use crate::pg::tuple_slot::TupleSlot;
use mot_engine::VersionRef;
use pgrx::pg_sys;

/// In an index's expression its table is the only one.
const TABLE: pg_sys::Index = 1;

/// The columns that an index reads: those of its keys, expressions and predicate.
pub struct ColumnsRead(Vec<i16>);

impl ColumnsRead {
    /// Of an index; `None`: it reads the whole row.
    pub fn of(index: Relation<'_>, info: *mut pg_sys::IndexInfo) -> Option<ColumnsRead> {
        // SAFETY: the caller's description of the index, whose lists are expressions.
        let lists = unsafe {
            [
                List::<pg_sys::Node>::enter((*info).ii_Expressions),
                List::enter((*info).ii_Predicate),
            ]
        };
        let keys = index.key_columns().iter().copied();
        let mut columns: Vec<i16> = keys.filter(|column| *column != 0).collect();
        for expressions in lists.into_iter().filter_map(List::tree) {
            columns.extend(expressions.columns_named(TABLE));
        }
        columns.sort_unstable();
        columns.dedup();
        columns
            .iter()
            .all(|column| *column > 0)
            .then_some(ColumnsRead(columns))
    }
}

/// Shows the row that an UPDATE replaces.
pub struct OldRow {
    slot: *mut pg_sys::TupleTableSlot,
    tuple: Box<pg_sys::HeapTupleData>,
}

impl OldRow {
    /// For rows of a table, in the current memory context.
    pub fn of(table: Relation<'_>) -> OldRow {
        let kind = &raw const pg_sys::TTSOpsHeapTuple;
        // SAFETY: an open relation; the row's description is a copy, with missing values.
        let slot = unsafe {
            let description = pg_sys::CreateTupleDescCopyConstr(table.row_type());
            pg_sys::MakeSingleTupleTableSlot(description, kind)
        };
        OldRow {
            slot,
            tuple: Box::default(),
        }
    }

    /// Shows a version.
    ///
    /// # Safety
    /// A version of the table's, which is kept until [`OldRow::clear`].
    pub unsafe fn show(&mut self, version: VersionRef) {
        self.tuple.t_len = version.tuple_bytes() as u32;
        self.tuple.t_data = version.image_ptr().cast_mut().cast();
        // SAFETY: a tuple of the slot's row type, kept for as long as it is shown (caller).
        unsafe { pg_sys::ExecStoreHeapTuple(&raw mut *self.tuple, self.slot, false) };
    }

    /// Shows nothing.
    pub fn clear(&mut self) {
        // SAFETY: a live slot.
        unsafe { TupleSlot::enter(self.slot) }.clear();
    }

    /// Whether the new row has the shown one's bytes in some columns.
    ///
    /// # Safety
    /// A row is shown, and the new one's slot is a filled one of the table's row type.
    pub unsafe fn has_equal(&self, columns: &ColumnsRead, new: TupleSlot<'_>) -> bool {
        // SAFETY: a live slot.
        let old = unsafe { TupleSlot::enter(self.slot) };
        // SAFETY: filled slots of one row type, which has the columns.
        let is_equal = |column: &i16| unsafe { old.has_equal(new, *column) };
        columns.0.iter().all(is_equal)
    }
}
