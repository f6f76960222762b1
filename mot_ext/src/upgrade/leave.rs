//! What the old server of a `pg_upgrade` leaves for the new one.
use super::table_files::{with_file, write_note};
use super::{AWAITS_ROWS, HAS_NOTES, is_binary_upgrade, is_marked, mark};
use crate::errors;
use crate::pg;
use mot_engine::checkpoint::{Manifest, SourceNote};
use std::os::unix::ffi::OsStringExt;

/// In the checkpoint worker, behind the last checkpoint of a server that runs for `pg_upgrade`. Not
/// in one whose own tables wait for rows. `newest` finds the checkpoint that the next start would
/// load, and is an error if that could not be.
pub fn leave_notes(newest: impl FnOnce() -> Result<Option<Manifest>, String>) {
    if !is_binary_upgrade() || is_marked(AWAITS_ROWS) {
        return;
    }
    let leave = || newest().and_then(leave_notes_of);
    if let Err(why) = pg::catch(leave).and_then(|left| left) {
        errors::report_notes_missing(&why);
    }
}

fn leave_notes_of(newest: Option<Manifest>) -> Result<(), String> {
    let Some(manifest) = newest else {
        return Ok(());
    };
    if !manifest.is_final {
        return Err("the last checkpoint was not written".into());
    }
    // Every process of the server works in the data directory.
    let directory = std::env::current_dir().map_err(|error| error.to_string())?;
    let note = SourceNote {
        system_id: manifest.system_id,
        generation: manifest.generation,
        directory: directory.into_os_string().into_vec(),
    };
    mark(HAS_NOTES).map_err(|error| error.to_string())?;
    for table in &manifest.tables {
        with_file(table.key, |file| write_note(file, &note))?;
    }
    Ok(())
}
