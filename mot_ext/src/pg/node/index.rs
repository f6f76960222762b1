//! Fields of what core says of an index that is built or changed.
use super::views;
use pgrx::pg_sys;

views! {
    IndexInfo = T_IndexInfo {
        value ii_Concurrent: bool,
        value ii_Unique: bool,
        has ii_Predicate,
        set ii_BrokenHotChain / set_broken_chains: bool,
    }
    IndexAmRoutine = T_IndexAmRoutine {}
}
