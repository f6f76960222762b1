//! What a SELECT's targets are, asked when it is compiled.
use crate::pg::version;
use pgrx::pg_sys;

/// Whether targets, which are plain, are the columns of the row type and no others:
/// `tlist_matches_tupdesc`.
///
/// # Safety
/// Entries of the target list of a finished plan, and a row type.
pub unsafe fn are_all_columns(
    targets: &[*mut pg_sys::TargetEntry],
    row_type: pg_sys::TupleDesc,
) -> bool {
    // SAFETY: entries of a target list; the table's row type.
    unsafe {
        let attributes = version::attributes(row_type);
        targets.len() == (*row_type).natts as usize
            && targets.iter().enumerate().all(|(position, target)| {
                let attribute = &*attributes.add(position);
                let column = (**target).expr.cast::<pg_sys::Var>();
                (*column.cast::<pg_sys::Node>()).type_ == pg_sys::NodeTag::T_Var
                    && (*column).varattno == position as i16 + 1
                    && version::is_of_the_row(&*column)
                    && !attribute.attisdropped
                    && !attribute.atthasmissing
                    && (*column).vartype == attribute.atttypid
                    && [attribute.atttypmod, -1].contains(&(*column).vartypmod)
            })
    }
}

/// Whether a target is more than a column or a constant.
///
/// # Safety
/// Entries of the target list of a finished plan.
pub unsafe fn do_compute(targets: &[*mut pg_sys::TargetEntry]) -> bool {
    use pg_sys::NodeTag::{T_Const, T_Param, T_Var};
    // SAFETY: entries of a target list.
    let kind = |target: &*mut pg_sys::TargetEntry| unsafe { (*(**target).expr).type_ };
    (targets.iter()).any(|target| ![T_Var, T_Const, T_Param].contains(&kind(target)))
}
