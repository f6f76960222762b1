//! Scans that may go on after the savepoint they began under was rolled back.
//!
//! A statement sees what its own transaction has made so far, under a savepoint, too; and ROLLBACK TO frees that at once. Core has ended by then what began under the
//! savepoint, but for what a SQL function that gives its rows one by one began while a portal ran that is older than the savepoint: that lives as long as the portal.
//! Such a scan looks no row up before it is asked for, and hands out copies. What is left is the storage, or the index, that was made under the savepoint and is gone with it: the
//! scan looks for both again whenever a storage may have changed, and raises if they are others now. A state that was rolled back is none that its snapshot sees, so it
//! goes on with the rows as they are without it, as on heap tables.

use super::source::Source;
use crate::errors;
use crate::pg;
use crate::relation;
use mot_engine::{IndexId, Session, TableId, TableRef};
use pgrx::pg_sys;

/// What such a scan reads.
pub(super) struct Outliving {
    table: TableId,
    index: Option<(pg_sys::Oid, IndexId)>,
    /// Under which they were found ([`relation::generation`]).
    generation: u64,
}

impl Outliving {
    /// Whether a scan that begins now may be such a one. It is asked of others that are run by such a portal as well, which end before the savepoint does.
    pub(super) fn may() -> bool {
        pg::is_in_portal_older_than_savepoint()
    }

    /// Of a scan that has not begun.
    pub(super) fn new(table: TableRef, source: &mut Source) -> Outliving {
        if let Source::Rows(rows) = source {
            rows.is_one_by_one = true;
        }
        Outliving {
            table: table.id(),
            index: match source {
                Source::Index(source) => Some(source.ids()),
                _ => None,
            },
            generation: relation::generation(),
        }
    }

    /// Of a scan that is none any more.
    pub(super) fn end(source: &mut Source) {
        if let Source::Rows(rows) = source {
            rows.is_one_by_one = false;
        }
    }

    /// Raises 55000 if what is read was rolled back.
    pub(super) fn check(&mut self, session: &Session, oid: pg_sys::Oid) {
        let generation = relation::generation();
        if self.generation == generation {
            return;
        }
        let table = relation::find(oid).filter(|table| table.id() == self.table);
        let is_there = table.is_some_and(|table| {
            self.index.is_none_or(|(index, id)| {
                let found = session.find_index(table, index.to_u32(), &crate::clock::PgClock);
                found.is_some_and(|index| index.id() == id)
            })
        });
        if !is_there {
            errors::rolled_back_while_read();
        }
        self.generation = relation::generation();
    }
}
