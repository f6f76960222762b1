//! `pg_upgrade` of a cluster with memory-optimized tables: their rows come along.
//!
//! `pg_upgrade` makes the tables anew in the new cluster, and copies or links one file for each
//! from the old. Rows are not in these files. So the old server leaves a *note* in them that says
//! where its rows are, and the new one follows it.
//!
//! | file | what |
//! |---|---|
//! | `table_files` | where a table's file is, and the note in it |
//! | `leave` | in the old cluster: leaves the notes |
//! | `bring` | in the new cluster: takes the rows over; removes notes that are needed no more |
//!
//! Both servers run with `-b`, alone with `pg_upgrade`:
//!
//! 1. The old server stops. Behind its last checkpoint the worker leaves a note in the file of each
//!    table (`leave_notes`): data directory, system identifier, generation. Not where the tables
//!    could not be loaded.
//! 2. In the new one `CREATE TABLE` leaves the mark `AWAITS_ROWS` in the directory of checkpoints
//!    before the first table is there. That server stops, with a last checkpoint of its own.
//! 3. `pg_upgrade` replaces the files of tables by the old cluster's, and starts the new server.
//! 4. The postmaster finds the mark before anything else runs (`at_start`). It copies the old
//!    checkpoint's files of rows, or links them where `pg_upgrade` has linked the tables' files. It
//!    writes a checkpoint that names them (`mot_engine`'s `checkpoint/upgraded.rs`). That is the
//!    point of no return.
//! 5. `AWAITS_ROWS` becomes `HAS_NOTES`. The first start without `-b` empties the files that have
//!    notes, in either cluster, as far as they are there.
//!
//! Invariants:
//! - With the mark no server starts but with the files of rows. So `pg_upgrade` fails where they
//!   are not to be had, and says so before anybody removes the old cluster. Their content is read,
//!   and verified, when the tables are loaded.
//! - A note is followed only if its checkpoint is the newest of that cluster, and a final one. So
//!   no server has run there since. A stale note is refused.
//! - Everything may be done again after a crash: the files of rows never change, and the notes stay
//!   until the mark is gone.
//! - Of the old cluster's rows nothing is changed. It gets notes and their mark, and so does the
//!   new one when it stops with `-b`. Both lose them at their next start.
//! - A server with `-b` holds nothing back and frees nothing by itself. `pg_upgrade` has counted
//!   the old one's transactions before, and freezes the new one's catalogs right after its start
//!   (`transaction::horizon::outcome_bound`).
//!
//! Called by `transaction`, `table_am`, `reclaim` and `workers`; calls `errors` and `pg`.
mod bring;
mod leave;
mod table_files;

pub use bring::at_start;
pub use leave::leave_notes;

use crate::errors;
use mot_engine::checkpoint::DIRECTORY;
use mot_engine::disk::{DirectoryDisk, Disk};
use pgrx::pg_sys;
use std::io;
use std::path::Path;

/// File in the directory of checkpoints: the tables are those of an old cluster, whose rows are not
/// here yet. An administrator may write the path of the old data directory into it, where the
/// tables' files have no notes.
const AWAITS_ROWS: &str = "upgrade-awaits-rows";
/// File there: files of tables have notes.
const HAS_NOTES: &str = "upgrade-has-notes";

/// Whether this server runs for `pg_upgrade`.
pub fn is_binary_upgrade() -> bool {
    // SAFETY: a plain variable of this process.
    unsafe { pg_sys::IsBinaryUpgrade }
}

/// Called before a table is made: in a server that runs for `pg_upgrade` its rows are in the old
/// cluster.
pub fn expect_rows() {
    if !is_binary_upgrade() || is_marked(AWAITS_ROWS) {
        return;
    }
    if let Err(error) = mark(AWAITS_ROWS) {
        errors::upgrade_mark_failed(&error);
    }
}

fn is_marked(name: &str) -> bool {
    Path::new(DIRECTORY).join(name).exists()
}

/// Leaves a mark, durably.
fn mark(name: &str) -> io::Result<()> {
    let disk = DirectoryDisk::open(DIRECTORY)?;
    disk.create(name)?.sync()?;
    disk.sync_directory()
}
