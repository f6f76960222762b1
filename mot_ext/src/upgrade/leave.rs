//! What the old server of a `pg_upgrade` leaves for the new one.
use super::table_files::{with_file, write_note};
use super::{AWAITS_ROWS, HAS_NOTES, is_binary_upgrade, is_marked, mark};
use crate::errors;
use crate::pg;
use mot_engine::checkpoint::{DIRECTORY, SourceNote, generations, read_manifest};
use mot_engine::disk::DirectoryDisk;
use std::os::unix::ffi::OsStringExt;

/// In the checkpoint worker, behind the last checkpoint of a server that runs for `pg_upgrade`. Not
/// in one whose own tables wait for rows. A server that is stopped before its tables are loaded
/// leaves notes, too: its newest checkpoint is still the final one.
pub fn leave_notes() {
    if !is_binary_upgrade() || is_marked(AWAITS_ROWS) {
        return;
    }
    if let Err(why) = pg::catch(try_leave_notes).and_then(|left| left) {
        errors::report_notes_missing(&why);
    }
}

fn try_leave_notes() -> Result<(), String> {
    let disk = DirectoryDisk::open(DIRECTORY).map_err(|error| error.to_string())?;
    let newest = generations(&disk).map_err(|error| error.to_string())?;
    let Some(generation) = newest.first().copied() else {
        return Ok(());
    };
    let manifest = read_manifest(&disk, generation).map_err(|error| error.to_string())?;
    if !manifest.is_final {
        return Err("the last checkpoint was not written".into());
    }
    // Every process of the server works in the data directory.
    let directory = std::env::current_dir().map_err(|error| error.to_string())?;
    let note = SourceNote {
        system_id: manifest.system_id,
        generation,
        directory: directory.into_os_string().into_vec(),
    };
    mark(HAS_NOTES).map_err(|error| error.to_string())?;
    for table in &manifest.tables {
        with_file(table.key, |file| write_note(file, &note))?;
    }
    Ok(())
}
