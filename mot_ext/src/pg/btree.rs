//! btree's own functions, for indexes that have btree's operator classes.
use pgrx::pg_sys;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    /// Estimates the cost of a scan from statistics; may raise.
    #[link_name = "btcostestimate"]
    fn bt_cost_estimate(
        root: *mut pg_sys::PlannerInfo,
        path: *mut pg_sys::IndexPath,
        loop_count: f64,
        startup_cost: *mut pg_sys::Cost,
        total_cost: *mut pg_sys::Cost,
        selectivity: *mut pg_sys::Selectivity,
        correlation: *mut f64,
        pages: *mut f64,
    );
    /// Parses an index's options; raises for one that btree does not know.
    #[link_name = "btoptions"]
    fn bt_options(options: pg_sys::Datum, validate: bool) -> *mut pg_sys::bytea;
}

/// `BTMetaPageData` of access/nbtree.h: what btree keeps of a tree in an index's entry of the
/// relation cache.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Tree {
    magic: u32,
    version: u32,
    root: pg_sys::BlockNumber,
    level: u32,
    fast_root: pg_sys::BlockNumber,
    fast_level: u32,
    deleted_pages: u32,
    heap_tuples: f64,
    are_equal_images: bool,
}

/// A tree that has no more than its root. Builds of core with assertions read all of it that is
/// not 0.
pub const LOW_TREE: Tree = Tree {
    magic: 0x05_3162,
    version: 4,
    root: 1,
    level: 0,
    fast_root: 1,
    fast_level: 0,
    deleted_pages: 0,
    heap_tuples: 0.0,
    are_equal_images: false,
};

/// `amcostestimate` of btree.
pub fn cost_estimate() -> unsafe extern "C-unwind" fn(
    *mut pg_sys::PlannerInfo,
    *mut pg_sys::IndexPath,
    f64,
    *mut pg_sys::Cost,
    *mut pg_sys::Cost,
    *mut pg_sys::Selectivity,
    *mut f64,
    *mut f64,
) {
    bt_cost_estimate
}

/// `amoptions` of btree.
pub fn options() -> unsafe extern "C-unwind" fn(pg_sys::Datum, bool) -> *mut pg_sys::bytea {
    bt_options
}
