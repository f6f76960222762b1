//! Scans of indexes, as core describes them to an access method, and their conditions.
use super::argument::Argument;
use super::relation::Relation;
use super::snapshot::Snapshot;
use pgrx::pg_sys;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A condition that core asks an index for. What its argument leads to is live for `'p`.
#[derive(Clone, Copy)]
pub struct ScanKey<'p>(&'p pg_sys::ScanKeyData);

impl<'p> ScanKey<'p> {
    /// Its flags.
    #[inline]
    pub fn flags(self) -> i32 {
        self.0.sk_flags
    }

    /// Whether it has one of some flags.
    #[inline]
    pub fn has(self, flags: u32) -> bool {
        self.0.sk_flags as u32 & flags != 0
    }

    /// The index's column, from 1.
    #[inline]
    pub fn number(self) -> pg_sys::AttrNumber {
        self.0.sk_attno
    }

    /// Whether it is of an index's column, from 0.
    #[inline]
    pub fn is_of(self, column: usize) -> bool {
        usize::from(self.0.sk_attno as u16) == column + 1
    }

    /// The operator's place in its family.
    #[inline]
    pub fn strategy(self) -> pg_sys::StrategyNumber {
        self.0.sk_strategy
    }

    /// The type of the argument; invalid: that of the column.
    #[inline]
    pub fn argument_type(self) -> pg_sys::Oid {
        self.0.sk_subtype
    }

    /// The argument, which may be NULL.
    #[inline]
    pub fn argument(self) -> (pg_sys::Datum, bool) {
        (self.0.sk_argument, self.has(pg_sys::SK_ISNULL))
    }

    /// The members of a comparison of rows, from first to last; none: it is no such comparison.
    pub fn members(self) -> impl Iterator<Item = ScanKey<'p>> {
        let is_of_row = self.has(pg_sys::SK_ROW_HEADER);
        let mut next = is_of_row.then(|| self.0.sk_argument.cast_mut_ptr::<pg_sys::ScanKeyData>());
        std::iter::from_fn(move || {
            let place = next?;
            // SAFETY: the header's argument is an array of conditions, of which the last says so.
            let member = ScanKey(unsafe { &*place });
            // SAFETY: another one follows.
            next = (!member.has(pg_sys::SK_ROW_END)).then(|| unsafe { place.add(1) });
            Some(member)
        })
    }
}

/// The conditions of a scan, in the order of the index's columns.
#[derive(Clone, Copy)]
pub struct ScanKeys<'p>(&'p [pg_sys::ScanKeyData]);

impl<'p> ScanKeys<'p> {
    /// How many there are.
    #[inline]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// One by its place, from 0.
    #[inline]
    pub fn get(self, place: usize) -> ScanKey<'p> {
        ScanKey(&self.0[place])
    }

    /// All.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = ScanKey<'p>> + Clone {
        self.0.iter().map(ScanKey)
    }
}

/// A scan of an index for the time `'p`.
#[derive(Clone, Copy)]
pub struct IndexScan<'p> {
    scan: NonNull<pg_sys::IndexScanDescData>,
    time: PhantomData<&'p pg_sys::IndexScanDescData>,
}

impl Argument<pg_sys::IndexScanDesc> for IndexScan<'_> {
    #[inline]
    unsafe fn of(passed: pg_sys::IndexScanDesc) -> Self {
        // SAFETY: core gives no other conditions before the callback returns.
        unsafe { IndexScan::enter(passed) }
    }
}

impl<'p> IndexScan<'p> {
    /// A view of a scan.
    ///
    /// # Safety
    /// Core has begun it, and does not end it in `'p`. Core gives it no other conditions meanwhile.
    #[inline]
    pub unsafe fn enter(scan: pg_sys::IndexScanDesc) -> IndexScan<'p> {
        debug_assert!(!scan.is_null());
        IndexScan {
            // SAFETY: a live scan (caller).
            scan: unsafe { NonNull::new_unchecked(scan) },
            time: PhantomData,
        }
    }

    /// The same of a scan that begins anew: it keeps a copy of these conditions, if there are any.
    ///
    /// # Safety
    /// As of [`IndexScan::enter`]. NULL, or as many conditions as the scan has, live for `'p`.
    pub unsafe fn begin_anew(
        scan: pg_sys::IndexScanDesc,
        keys: pg_sys::ScanKey,
        count: i32,
    ) -> IndexScan<'p> {
        if !keys.is_null() && count > 0 {
            // SAFETY: the scan has room for so many (caller), and nobody has a view of those there.
            unsafe { std::ptr::copy(keys, (*scan).keyData, count as usize) };
        }
        // SAFETY: the caller's.
        unsafe { IndexScan::enter(scan) }
    }

    /// The scan, for calls of core.
    #[inline]
    pub fn as_ptr(self) -> pg_sys::IndexScanDesc {
        self.scan.as_ptr()
    }

    /// The index.
    #[inline]
    pub fn index(self) -> Relation<'p> {
        // SAFETY: a live scan's index is open.
        unsafe { Relation::enter((*self.as_ptr()).indexRelation) }
    }

    /// The table; `None`: the scan is for a bitmap, and knows its index alone.
    #[inline]
    pub fn table(self) -> Option<Relation<'p>> {
        // SAFETY: a live scan's table is open, if it has one.
        unsafe {
            let table = (*self.as_ptr()).heapRelation;
            (!table.is_null()).then(|| Relation::enter(table))
        }
    }

    /// The snapshot, which stays registered until the scan ends. It is there from the first row
    /// asked for on.
    #[inline]
    pub fn snapshot(self) -> Snapshot<'p> {
        // SAFETY: a live scan.
        let snapshot = unsafe { Snapshot::enter_if_any((*self.as_ptr()).xs_snapshot) };
        snapshot.expect("a scan has its snapshot from the first row on")
    }

    /// The conditions.
    #[inline]
    pub fn keys(self) -> ScanKeys<'p> {
        // SAFETY: a live scan has so many conditions, which stay (`enter`).
        ScanKeys(unsafe {
            let scan = self.as_ptr();
            match (*scan).numberOfKeys {
                ..=0 => &[],
                count => std::slice::from_raw_parts((*scan).keyData, count as usize),
            }
        })
    }

    /// What the access method keeps; `None`: nothing yet.
    ///
    /// # Safety
    /// It is of this type, and nobody else uses it in `'p`.
    #[inline]
    pub unsafe fn state<S>(self) -> Option<&'p mut S> {
        // SAFETY: NULL, or what the caller says.
        unsafe { (*self.as_ptr()).opaque.cast::<S>().as_mut() }
    }

    /// Sets what the access method keeps; NULL: nothing.
    #[inline]
    pub fn set_state<S>(self, state: *mut S) {
        // SAFETY: a live scan, whose field core only hands on.
        unsafe { (*self.as_ptr()).opaque = state.cast() };
    }

    /// What the table's access method keeps from one fetch to the next; `None`: the scan fetches
    /// nothing.
    ///
    /// # Safety
    /// It is of this type, and nobody else uses it in `'p`.
    #[inline]
    pub unsafe fn fetch<F>(self) -> Option<&'p mut F> {
        // SAFETY: NULL, or what the caller says.
        unsafe { (*self.as_ptr()).xs_heapfetch.cast::<F>().as_mut() }
    }

    /// Says which row was found.
    #[inline]
    pub fn set_row(self, tid: pg_sys::ItemPointerData) {
        // SAFETY: a live scan, to which nobody holds a reference.
        unsafe { (*self.as_ptr()).xs_heaptid = tid };
    }

    /// Says whether core is to evaluate the conditions over the row.
    #[inline]
    pub fn set_recheck(self, is_inexact: bool) {
        // SAFETY: a live scan, to which nobody holds a reference.
        unsafe { (*self.as_ptr()).xs_recheck = is_inexact };
    }

    /// Gives the index's columns as NULL, in the memory of the scan, to a scan that wants them and
    /// has none yet.
    ///
    /// # Safety
    /// The current memory context lives as long as the scan.
    pub unsafe fn give_null_columns(self) {
        let scan = self.as_ptr();
        // SAFETY: a live scan.
        unsafe {
            if !(*scan).xs_want_itup || !(*scan).xs_hitup.is_null() {
                return;
            }
        }
        let columns = self.index().row_type();
        let count = self.index().index_columns().len();
        let mut values = vec![pg_sys::Datum::null(); count];
        let mut nulls = vec![true; count];
        // SAFETY: the description has so many columns, and is the open index's.
        unsafe {
            (*scan).xs_hitupdesc = columns;
            (*scan).xs_hitup =
                pg_sys::heap_form_tuple(columns, values.as_mut_ptr(), nulls.as_mut_ptr());
        }
    }
}
