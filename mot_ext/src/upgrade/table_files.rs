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
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Does something with the file of a table, relative to the data directory. `None`: there is none,
/// since the relation or its database is gone, and the storage has stayed. An error names the file.
pub(super) fn with_file<T>(
    table: RelationKey,
    act: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<Option<T>, String> {
    let directory = match table.tablespace {
        0 => own_directory(table.database).map_err(|error| error.to_string())?,
        tablespace => Some(directory_of(table.database, tablespace.into())),
    };
    let Some(directory) = directory else {
        return Ok(None);
    };
    let file = directory.join(table.relation.to_string());
    match act(&file) {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("file \"{}\": {error}", file.display())),
    }
}

/// The directory of a database in a tablespace.
fn directory_of(database: u32, tablespace: pg_sys::Oid) -> PathBuf {
    // SAFETY: core allocates a string, which stays until the memory context goes.
    let path = unsafe { CStr::from_ptr(pg_sys::GetDatabasePath(database.into(), tablespace)) };
    PathBuf::from(path.to_string_lossy().into_owned())
}

/// The directory of a database in its own tablespace: only that has the file of its version.
fn own_directory(database: u32) -> io::Result<Option<PathBuf>> {
    let mut tablespaces = vec![pg_sys::DEFAULTTABLESPACE_OID];
    for entry in fs::read_dir("pg_tblspc")? {
        let name = entry?.file_name();
        let oid = name.to_str().and_then(|name| name.parse::<u32>().ok());
        tablespaces.extend(oid.map(pg_sys::Oid::from));
    }
    let mut directories = tablespaces
        .into_iter()
        .map(|tablespace| directory_of(database, tablespace));
    Ok(directories.find(|directory| directory.join("PG_VERSION").exists()))
}

/// Writes a note into the file of a table. An error leaves it empty.
pub(super) fn write_note(file: &Path, note: &SourceNote) -> io::Result<()> {
    let page = page::with_special(&note.to_bytes())?;
    let mut file = OpenOptions::new().write(true).truncate(true).open(file)?;
    file.write_all(&page.0).or_else(|error| {
        file.set_len(0)?;
        Err(error)
    })
}

/// What the file of a table says.
pub(super) struct FoundNote {
    pub(super) note: Result<SourceNote, Damage>,
    /// The file is the old cluster's, too.
    pub(super) is_linked: bool,
}

/// The note in the file of a table; `None`: it has none.
pub(super) fn read_note(file: &Path) -> io::Result<Option<FoundNote>> {
    let file = File::open(file)?;
    let mut page = Page::default();
    let about = file.metadata()?;
    if about.len() != page.0.len() as u64 {
        return Ok(None);
    }
    (&file).read_exact(&mut page.0)?;
    Ok(page::special(&page).map(|special| FoundNote {
        note: SourceNote::from_bytes(special),
        is_linked: about.nlink() > 1,
    }))
}

/// Empties the file of a table that has a note, and no other.
pub(super) fn remove_note(file: &Path) -> io::Result<()> {
    match read_note(file)? {
        Some(FoundNote { note: Ok(_), .. }) => {
            OpenOptions::new().write(true).open(file)?.set_len(0)
        }
        _ => Ok(()),
    }
}
