//! What a CREATE TABLE has made, as told by the object access hook.
//!
//! The name does not tell: with IF NOT EXISTS core passes by a table that another session, or an event trigger, has made under it since it was looked up,
//! and such a table is nobody's to touch: it is not locked, and may be another user's. Nor does the transaction that made it, which an event trigger's
//! statements share.
use super::identity;
use pgrx::pg_sys;
use std::cell::RefCell;

struct Noted(RefCell<Option<Vec<pg_sys::Oid>>>);
// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for Noted {}

/// The relations made since the innermost watch began; `None`: nobody watches.
static NOTED: Noted = Noted(RefCell::new(None));

/// Notes the relations that are made while it lives. A statement of an event trigger that makes a memory-optimized table has a watch of its own.
pub struct Watch {
    outer: Option<Vec<pg_sys::Oid>>,
}

impl Watch {
    /// Begins to note.
    pub fn begin() -> Watch {
        Watch {
            outer: NOTED.0.replace(Some(Vec::new())),
        }
    }

    /// The memory-optimized table that was made, if it is still there.
    pub fn made(&self) -> Option<pg_sys::Oid> {
        let noted = NOTED.0.borrow().clone().unwrap_or_default();
        noted
            .into_iter()
            .find(|relation| identity::is_mot_table(*relation))
    }

    /// Whether no relation at all was made.
    pub fn is_nothing_made(&self) -> bool {
        NOTED.0.borrow().as_ref().is_none_or(Vec::is_empty)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        NOTED.0.replace(self.outer.take());
    }
}

/// A relation has been made. Calls nothing of PostgreSQL.
pub fn note(relation: pg_sys::Oid) {
    if let Some(noted) = NOTED.0.borrow_mut().as_mut() {
        noted.push(relation);
    }
}
