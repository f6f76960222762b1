//! Orders of an index's rows, as the planner knows them: pathkeys.
use crate::keys;
use pgrx::pg_sys;

/// Whether the query can use the order of an index's rows.
pub unsafe fn has_useful_order(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        pg_sys::has_useful_pathkeys(root, rel)
            && [
                pg_sys::ScanDirection::ForwardScanDirection,
                pg_sys::ScanDirection::BackwardScanDirection,
            ]
            .into_iter()
            .any(|direction| !useful_order(root, rel, index, direction).is_null())
    }
}

/// The order of an index's rows as pathkeys, cut to what the query can use, where it asks for any.
pub unsafe fn useful_order(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
    direction: pg_sys::ScanDirection::Type,
) -> *mut pg_sys::List {
    // SAFETY: the planner's own structures; the index's column count is put back before anybody else looks.
    unsafe {
        if (*index).sortopfamily.is_null() || !may_run(root, index, direction) {
            return std::ptr::null_mut();
        }
        let columns = (*index).nkeycolumns;
        let is_ordered =
            |at: &i32| keys::is_key_order_collation(*(*index).indexcollations.add(*at as usize));
        (*index).nkeycolumns = (0..columns).take_while(is_ordered).count() as i32;
        let order = pg_sys::build_index_pathkeys(root, index, direction);
        (*index).nkeycolumns = columns;
        if order.is_null() {
            return order;
        }
        pg_sys::truncate_useless_pathkeys(root, rel, order)
    }
}

/// Whether an order in this direction can be of use. Where the query itself asks for none, merge joins take ascending ones alone
/// (`right_merge_direction`); which column is the first that counts is not known here, for fixed ones do not.
unsafe fn may_run(
    root: *mut pg_sys::PlannerInfo,
    index: *mut pg_sys::IndexOptInfo,
    direction: pg_sys::ScanDirection::Type,
) -> bool {
    // SAFETY: the planner's own structures; an index with an order has a direction for each key column.
    unsafe {
        let descends = direction == pg_sys::ScanDirection::BackwardScanDirection;
        let columns = (*index).nkeycolumns as usize;
        !(*root).query_pathkeys.is_null()
            || std::slice::from_raw_parts((*index).reverse_sort, columns).contains(&descends)
    }
}
