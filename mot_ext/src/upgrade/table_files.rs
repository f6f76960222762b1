//! The file of a table, in the data directory, and the note in it.
//!
//! A note fills the special space of one page, so that what reads pages (base backups, which
//! verify checksums) finds a valid one.
use crate::pg::page::{self, Page};
use mot_engine::RelationKey;
use mot_engine::checkpoint::{Damage, SourceNote};
use pgrx::pg_sys;
use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Does something with the file of a table. An error names it.
pub(super) fn with_file<T>(
    table: RelationKey,
    act: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<T, String> {
    let file = file_of(table).map_err(|error| error.to_string())?;
    act(&file).map_err(|error| format!("file \"{}\": {error}", file.display()))
}

/// The file that a table has, relative to the data directory.
fn file_of(table: RelationKey) -> io::Result<PathBuf> {
    let directory = match table.tablespace {
        0 => own_directory(table.database)?,
        tablespace => directory_of(table.database, tablespace.into()),
    };
    Ok(directory.join(table.relation.to_string()))
}

/// The directory of a database in a tablespace.
fn directory_of(database: u32, tablespace: pg_sys::Oid) -> PathBuf {
    // SAFETY: core allocates a string, which stays until the memory context goes.
    let path = unsafe { CStr::from_ptr(pg_sys::GetDatabasePath(database.into(), tablespace)) };
    PathBuf::from(path.to_string_lossy().into_owned())
}

/// The directory of a database in its own tablespace: only that has the file of its version.
fn own_directory(database: u32) -> io::Result<PathBuf> {
    let mut tablespaces = vec![pg_sys::DEFAULTTABLESPACE_OID];
    for entry in fs::read_dir("pg_tblspc")? {
        let name = entry?.file_name();
        let oid = name.to_str().and_then(|name| name.parse::<u32>().ok());
        tablespaces.extend(oid.map(pg_sys::Oid::from));
    }
    let mut directories = tablespaces
        .into_iter()
        .map(|tablespace| directory_of(database, tablespace));
    let own = directories.find(|directory| directory.join("PG_VERSION").exists());
    own.ok_or_else(|| io::Error::other(format!("database {database} has no directory")))
}

/// Writes a note into the file of a table, which is there.
pub(super) fn write_note(file: &Path, note: &SourceNote) -> io::Result<()> {
    let page = page::with_special(&note.to_bytes())?;
    let mut file = OpenOptions::new().write(true).truncate(true).open(file)?;
    file.write_all(&page.0)
}

/// The note in the file of a table; `None`: it has none.
pub(super) fn read_note(file: &Path) -> io::Result<Option<Result<SourceNote, Damage>>> {
    let file = File::open(file)?;
    let mut page = Page::default();
    if file.metadata()?.len() != page.0.len() as u64 {
        return Ok(None);
    }
    (&file).read_exact(&mut page.0)?;
    Ok(page::special(&page).map(SourceNote::from_bytes))
}

/// Empties the file of a table that has a note, and no other.
pub(super) fn remove_note(file: &Path) -> io::Result<()> {
    match read_note(file) {
        Ok(Some(Ok(_))) => OpenOptions::new().write(true).open(file)?.set_len(0),
        Ok(Some(Err(_)) | None) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
