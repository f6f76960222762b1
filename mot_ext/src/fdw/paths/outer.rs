//! Whose values could be keys: the sets of other relations that parameterized paths are offered for.
use crate::fdw::conditions;
use crate::fdw::private::items;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Sets of outer relations tried for parameterized paths; more only cost planning time.
const OUTER_SETS_MAX: usize = 16;

/// Sets of other relations whose values could be keys here: each that a join clause or an equivalence offers, and their unions.
pub unsafe fn outer_sets(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    indexes: &[*mut pg_sys::IndexOptInfo],
) -> Vec<pg_sys::Relids> {
    let mut sets: Vec<pg_sys::Relids> = Vec::new();
    // SAFETY: the planner's own structures.
    unsafe {
        if indexes.is_empty() {
            return sets;
        }
        let mut clauses: Vec<*mut pg_sys::RestrictInfo> = items((*rel).joininfo);
        clauses.retain(|clause| pg_sys::join_clause_is_movable_to(*clause, rel));
        if (*rel).has_eclass_joins {
            for (at, index) in indexes.iter().enumerate() {
                for column in 0..(**index).nkeycolumns {
                    let attribute = *(**index).indexkeys.add(column as usize);
                    if is_asked_for(&indexes[..at], attribute) {
                        continue;
                    }
                    let mut wanted = Wanted {
                        index: *index,
                        column,
                    };
                    clauses.extend(items::<pg_sys::RestrictInfo>(
                        pg_sys::generate_implied_equalities_for_column(
                            root,
                            rel,
                            Some(is_wanted_member),
                            (&raw mut wanted).cast(),
                            (*rel).lateral_referencers,
                        ),
                    ));
                }
            }
        }
        for clause in clauses {
            let outer = pg_sys::bms_del_member(
                pg_sys::bms_copy((*clause).clause_relids),
                (*rel).relid as i32,
            );
            if outer.is_null() || sets.len() >= OUTER_SETS_MAX {
                continue;
            }
            let known = sets.clone();
            add_set(&mut sets, outer);
            for other in known {
                add_set(&mut sets, pg_sys::bms_union(other, outer));
            }
        }
    }
    sets.truncate(OUTER_SETS_MAX);
    sets
}

/// Whether one of these indexes has the column: what it is equal to is the same for all.
unsafe fn is_asked_for(indexes: &[*mut pg_sys::IndexOptInfo], attribute: i32) -> bool {
    indexes.iter().any(|index| {
        // SAFETY: an index of the planner's has an attribute for each key column.
        unsafe {
            let columns = (**index).nkeycolumns as usize;
            std::slice::from_raw_parts((**index).indexkeys, columns).contains(&attribute)
        }
    })
}

unsafe fn add_set(sets: &mut Vec<pg_sys::Relids>, set: pg_sys::Relids) {
    // SAFETY: bitmap sets of the planner.
    let is_known = |known: &pg_sys::Relids| unsafe { pg_sys::bms_equal(*known, set) };
    if !sets.iter().any(is_known) {
        sets.push(set);
    }
}

/// The index column whose equivalences are looked for.
struct Wanted {
    index: *mut pg_sys::IndexOptInfo,
    column: i32,
}

#[pg_guard]
unsafe extern "C-unwind" fn is_wanted_member(
    _root: *mut pg_sys::PlannerInfo,
    _rel: *mut pg_sys::RelOptInfo,
    _class: *mut pg_sys::EquivalenceClass,
    member: *mut pg_sys::EquivalenceMember,
    wanted: *mut std::ffi::c_void,
) -> bool {
    // SAFETY: `wanted` is the Wanted of the caller above, alive during the call.
    unsafe {
        let wanted = &*wanted.cast::<Wanted>();
        conditions::is_member_for(wanted.index, wanted.column as usize, member)
    }
}
