//! Bitmaps of tuple ids: how their pages are handed out, and read ahead.
use crate::pg::guard::guarded;
use crate::pg::relation::Relation;
use pgrx::pg_sys;

/// Rows of a page at most (`MaxHeapTuplesPerPage`).
pub const OFFSETS_MAX: usize = 291;

/// A page of a bitmap.
pub struct Page<'a> {
    /// Its number.
    pub number: pg_sys::BlockNumber,
    /// Offsets of rows, ascending from 1 on; `None`: any row of the page may be meant.
    pub offsets: Option<&'a [pg_sys::OffsetNumber]>,
}

/// A table's rows by the pages of a bitmap, and the callbacks that core has for that: until 17 it
/// takes the pages out of the bitmap itself.
pub trait Pages {
    /// Begins a page.
    ///
    /// # Safety
    /// A bitmap scan that core has begun. So for the others.
    unsafe fn begin_page(scan: pg_sys::TableScanDesc, page: &Page<'_>);

    /// The next row of the page; false: there is none.
    ///
    /// # Safety
    /// And a slot of the table's.
    unsafe fn next_of_page(scan: pg_sys::TableScanDesc, slot: *mut pg_sys::TupleTableSlot) -> bool;

    /// `scan_bitmap_next_block`.
    ///
    /// # Safety
    /// As core calls it.
    #[cfg(not(feature = "pg18"))]
    unsafe fn next_page(scan: pg_sys::TableScanDesc, found: *mut pg_sys::TBMIterateResult) -> bool {
        // SAFETY: core's page, whose count says how many offsets follow.
        unsafe {
            let count = (*found).ntuples;
            let page = Page {
                number: (*found).blockno,
                offsets: usize::try_from(count)
                    .ok()
                    .map(|count| (*found).offsets.as_slice(count)),
            };
            Self::begin_page(scan, &page);
        }
        true
    }

    /// `scan_bitmap_next_tuple`: of the page.
    ///
    /// # Safety
    /// As core calls it.
    #[cfg(not(feature = "pg18"))]
    unsafe fn next_row(
        scan: pg_sys::TableScanDesc,
        _found: *mut pg_sys::TBMIterateResult,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        // SAFETY: the caller's.
        unsafe { Self::next_of_page(scan, slot) }
    }

    /// `scan_bitmap_next_tuple`: of all pages.
    ///
    /// # Safety
    /// As core calls it.
    #[cfg(feature = "pg18")]
    unsafe fn next_row(
        scan: pg_sys::TableScanDesc,
        slot: *mut pg_sys::TupleTableSlot,
        tests_again: *mut bool,
        whole_pages: *mut u64,
        exact_pages: *mut u64,
    ) -> bool {
        // SAFETY: the caller's.
        unsafe {
            *tests_again = true;
            loop {
                if Self::next_of_page(scan, slot) {
                    return true;
                }
                let mut offsets = [0; OFFSETS_MAX];
                let Some(page) = next_page(scan, &mut offsets) else {
                    // Core empties the slot.
                    return false;
                };
                match page.offsets {
                    Some(_) => *exact_pages += 1,
                    None => *whole_pages += 1,
                }
                Self::begin_page(scan, &page);
            }
        }
    }
}

/// Sets the callbacks of bitmap scans.
pub fn set_pages<T: Pages>(routine: &mut pg_sys::TableAmRoutine) {
    #[cfg(not(feature = "pg18"))]
    {
        routine.scan_bitmap_next_block = Some(guarded!(T::next_page(scan, found)));
        routine.scan_bitmap_next_tuple = Some(guarded!(T::next_row(scan, found, slot)));
    }
    #[cfg(feature = "pg18")]
    {
        routine.scan_bitmap_next_tuple =
            Some(guarded!(T::next_row(scan, slot, again, whole, exact)));
    }
}

/// The next page of the bitmap that a scan reads.
///
/// # Safety
/// A bitmap scan that core has begun.
#[cfg(feature = "pg18")]
unsafe fn next_page<'a>(
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

/// Whether core asks for pages of a table's file before it reads their rows (until 17).
pub const READS_AHEAD: bool = cfg!(not(feature = "pg18"));

/// Keeps core from asking for pages of the files of certain tables: visits all nodes of a query
/// that has begun.
///
/// # Safety
/// A started query.
pub unsafe fn read_nothing_ahead(
    query: *mut pg_sys::QueryDesc,
    is_concerned: fn(Relation<'_>) -> bool,
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

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn look_at(
    state: *mut pg_sys::PlanState,
    concerned: *mut std::ffi::c_void,
) -> bool {
    // SAFETY: a tree of plan states, cast by tag; the function is the caller's, and lives.
    unsafe {
        if (*state).type_ == pg_sys::NodeTag::T_BitmapHeapScanState {
            let scan = state.cast::<pg_sys::BitmapHeapScanState>();
            let is_concerned = *concerned.cast::<fn(Relation<'_>) -> bool>();
            if is_concerned(Relation::enter((*scan).ss.ss_currentRelation)) {
                #[cfg(not(feature = "pg18"))]
                {
                    (*scan).prefetch_maximum = 0;
                }
            }
        }
        pg_sys::planstate_tree_walker(state, Some(look_at), concerned)
    }
}
