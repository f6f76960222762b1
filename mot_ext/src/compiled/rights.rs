//! Whether the user may do what a plan does: core's answer, kept for as long as nothing it rests on
//! changes.
//!
//! The answer depends on the plan, on the user, and on catalog entries that core reads through its
//! caches. Core itself gives the old answer until the message of a change arrives and empties those
//! caches; the same message moves [`watch::rights`] on, so the kept answer lives exactly as long. A
//! refusal is an error, and not kept. With another library's `ExecutorCheckPerms_hook`, core and
//! the hook are asked every time.
use super::watch;
use crate::pg::node::Node;
use crate::pg::{self, executor, version};
use pgrx::pg_sys;

/// The last answer about one plan.
pub struct Rights {
    user: pg_sys::Oid,
    /// [`watch::rights`] when it was given; 0: never.
    generation: u64,
}

impl Rights {
    /// Not asked yet.
    pub fn unknown() -> Rights {
        Rights {
            user: pg_sys::InvalidOid,
            generation: 0,
        }
    }

    /// Raises 42501 if the current user may not do what the plan does.
    #[inline]
    pub fn check(&mut self, plan: Node<'_, pg_sys::PlannedStmt>) {
        let user = pg::user();
        let generation = watch::rights();
        if self.generation == generation && self.user == user && !executor::has_rights_hook() {
            return;
        }
        // What was read before a change that arrives during the check must not count as read after
        // it.
        self.generation = 0;
        version::check_permissions(plan);
        self.user = user;
        self.generation = generation;
    }
}
