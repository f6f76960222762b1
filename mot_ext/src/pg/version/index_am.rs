//! Index access methods: what differs in their description.
use pgrx::pg_sys;

/// `BTNProcs` of access/nbtree.h.
pub const BTREE_SUPPORT_FUNCTIONS: u16 = if cfg!(feature = "pg18") { 6 } else { 5 };

/// `BTOPTIONS_PROC` of access/nbtree.h.
pub const BTREE_OPTIONS_FUNCTION: u16 = 5;

/// Says what 18 does not take for granted of an index with btree's classes.
#[cfg_attr(not(feature = "pg18"), allow(unused_variables))]
pub fn describe(routine: &mut pg_sys::IndexAmRoutine) {
    #[cfg(feature = "pg18")]
    {
        routine.amconsistentequality = true;
        routine.amconsistentordering = true;
        crate::pg::btree::set_translations(routine);
    }
}
