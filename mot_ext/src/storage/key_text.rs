//! A row's key in an index, as error messages show it.
use crate::pg::nodes;
use crate::pg::relation::Relation;
use pgrx::pg_sys;

/// Most columns of an index, included ones too, as core's arrays have them.
const COLUMNS_MAX: usize = pg_sys::INDEX_MAX_KEYS as usize;

/// `(a)=(1)`, if the user may see it. What it takes goes with the error that it is for.
///
/// # Safety
/// A tuple of the table's row type.
pub unsafe fn of(
    table: Relation<'_>,
    index: Relation<'_>,
    tuple: *mut pg_sys::HeapTupleData,
) -> Option<String> {
    let mut values = [pg_sys::Datum::null(); COLUMNS_MAX];
    let mut nulls = [true; COLUMNS_MAX];
    // SAFETY: open relations, and the caller's tuple; the arrays have a place for each column.
    unsafe {
        let estate = pg_sys::CreateExecutorState();
        let slot =
            pg_sys::MakeSingleTupleTableSlot(table.row_type(), &raw const pg_sys::TTSOpsHeapTuple);
        pg_sys::ExecStoreHeapTuple(tuple, slot, false);
        (*pg_sys::MakePerTupleExprContext(estate)).ecxt_scantuple = slot;
        let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
        let index = index.as_ptr();
        pg_sys::FormIndexDatum(pg_sys::BuildIndexInfo(index), slot, estate, values, nulls);
        let text = pg_sys::BuildIndexValueDescription(index, values, nulls);
        (!text.is_null()).then(|| nodes::text(text))
    }
}
