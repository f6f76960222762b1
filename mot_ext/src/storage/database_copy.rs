//! The tables of a database in a copy of it: CREATE DATABASE.
//!
//! Core copies files, or their blocks, and the catalogs with them. The storages of the copy have
//! the names of the template's but for the database. They are made, filled and logged by the
//! transaction that makes the database, and go with it.
use super::build::build_each_index;
use crate::errors::{self, or_raise};
use crate::pg::{self, interrupts};
use crate::transaction::clock::PgClock;
use crate::transaction::{session, xact};
use mot_engine::transaction::{TableCopy, Which};
use mot_engine::{RelationKey, RowId, TableRef, Xid};

/// Makes a table of the template in the database `to`, with its indexes and the newest state of
/// each row. Raises if there is no memory for it.
///
/// No session is connected to the template, none of its transactions is prepared, and core's lock
/// keeps it so until this transaction ends. Hence every state is committed or aborted. No session
/// can connect to the copy before that: no snapshot sees an older state there.
pub fn copy_table(from: TableRef, to: u32) {
    if from.key().is_of_earlier_build() {
        errors::table_of_earlier_build();
    }
    let session = session::session();
    let key = RelationKey {
        database: to,
        ..from.key()
    };
    let xid = xact::write_xid();
    let made = xact::current().create_table_as(session, key, from.persistence(), xid);
    let made = or_raise(made);
    let mut copy = TableCopy::begin(session, &PgClock, from, made, xid);
    copy.raise_horizon(Xid(pg::next_full_xid()));
    for slot in 0..from.row_ids_end().0 {
        or_raise(copy.row(xact::current(), RowId(slot), Which::All, None));
        if interrupts::is_pending() {
            interrupts::check_for_interrupts();
        }
    }
    build_each_index(from, made, |_| {});
}
