//! What a SELECT's targets are, asked when it is compiled.
use super::shape::Target;
use crate::pg::version;
use pgrx::pg_sys;

/// Whether targets, which are plain, are the columns of the row type and no others:
/// `tlist_matches_tupdesc`.
pub fn are_all_columns(targets: &[Target<'_>], columns: &[pg_sys::FormData_pg_attribute]) -> bool {
    let is_column = |(position, target): (usize, &Target<'_>)| {
        let attribute = &columns[position];
        let column = target.expression().cast::<pg_sys::Var>();
        column.is_some_and(|column| {
            column.varattno() == position as i16 + 1
                && version::is_of_the_row(&column.fields())
                && !attribute.attisdropped
                && !attribute.atthasmissing
                && column.vartype() == attribute.atttypid
                && [attribute.atttypmod, -1].contains(&column.vartypmod())
        })
    };
    targets.len() == columns.len() && targets.iter().enumerate().all(is_column)
}

/// Whether a target is more than a column or a constant.
pub fn do_compute(targets: &[Target<'_>]) -> bool {
    use pg_sys::NodeTag::{T_Const, T_Param, T_Var};
    let kind = |target: &Target<'_>| target.expression().tag();
    (targets.iter()).any(|target| ![T_Var, T_Const, T_Param].contains(&kind(target)))
}
