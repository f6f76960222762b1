//! Bitmaps of tuple ids: how their pages are handed out, and read ahead.
use pgrx::pg_sys;

/// A page of a bitmap.
pub struct Page<'a> {
    /// Its number.
    pub number: pg_sys::BlockNumber,
    /// Offsets of rows, ascending from 1 on; `None`: any row of the page may be meant.
    pub offsets: Option<&'a [pg_sys::OffsetNumber]>,
}

/// A page that core has taken out of a bitmap.
///
/// # Safety
/// As core hands it to a callback.
#[cfg(not(feature = "pg18"))]
pub unsafe fn page<'a>(found: *const pg_sys::TBMIterateResult) -> Page<'a> {
    // SAFETY: the caller's page, whose count says how many offsets follow.
    unsafe {
        let count = (*found).ntuples;
        Page {
            number: (*found).blockno,
            offsets: usize::try_from(count)
                .ok()
                .map(|count| (*found).offsets.as_slice(count)),
        }
    }
}

/// The next page of the bitmap that a scan reads.
///
/// # Safety
/// A bitmap scan that core has begun.
#[cfg(feature = "pg18")]
pub unsafe fn next_page<'a>(
    scan: pg_sys::TableScanDesc,
    offsets: &'a mut [pg_sys::OffsetNumber],
) -> Option<Page<'a>> {
    // SAFETY: the caller's scan; a page has no more offsets than it has rows.
    unsafe {
        let iterator = &raw mut (*scan).st.rs_tbmiterator;
        let mut found = pg_sys::TBMIterateResult::default();
        if !pg_sys::tbm_iterate(iterator, &raw mut found) {
            return None;
        }
        let offsets = match found.lossy {
            true => None,
            false => {
                let most = offsets.len() as u32;
                let count =
                    pg_sys::tbm_extract_page_tuple(&raw mut found, offsets.as_mut_ptr(), most);
                assert!(count >= 0 && count as u32 <= most);
                Some(&offsets[..count as usize])
            }
        };
        Some(Page {
            number: found.blockno,
            offsets,
        })
    }
}

/// Keeps core from asking for pages of the files of certain tables (until 17): looks at all nodes
/// of a query that has begun.
///
/// # Safety
/// A started query.
#[cfg(not(feature = "pg18"))]
pub unsafe fn read_nothing_ahead(
    query: *mut pg_sys::QueryDesc,
    is_concerned: unsafe fn(pg_sys::Relation) -> bool,
) {
    // SAFETY: a started query (caller): lists of plan states.
    unsafe {
        let mut concerned = is_concerned;
        let concerned = (&raw mut concerned).cast();
        if !(*query).planstate.is_null() {
            look_at((*query).planstate, concerned);
        }
        let estate = (*query).estate;
        for list in [(*estate).es_subplanstates, (*estate).es_auxmodifytables] {
            for state in pgrx::PgList::<pg_sys::PlanState>::from_pg(list).iter_ptr() {
                if !state.is_null() {
                    look_at(state, concerned);
                }
            }
        }
    }
}

#[cfg(not(feature = "pg18"))]
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn look_at(
    state: *mut pg_sys::PlanState,
    concerned: *mut std::ffi::c_void,
) -> bool {
    // SAFETY: a tree of plan states, cast by tag; the function is the caller's, and lives.
    unsafe {
        if (*state).type_ == pg_sys::NodeTag::T_BitmapHeapScanState {
            let scan = state.cast::<pg_sys::BitmapHeapScanState>();
            let is_concerned = *concerned.cast::<unsafe fn(pg_sys::Relation) -> bool>();
            if is_concerned((*scan).ss.ss_currentRelation) {
                (*scan).prefetch_maximum = 0;
            }
        }
        pg_sys::planstate_tree_walker(state, Some(look_at), concerned)
    }
}
