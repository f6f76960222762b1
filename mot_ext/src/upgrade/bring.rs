//! Taking over the rows of the old cluster of a `pg_upgrade`.
use super::table_files::{read_note, remove_note, with_file};
use super::{AWAITS_ROWS, HAS_NOTES, is_binary_upgrade, is_marked};
use crate::errors;
use mot_engine::EngineError;
use mot_engine::checkpoint::{
    DIRECTORY, Manifest, SourceNote, generations, next_generation, parse_manifest, read_manifest,
    rows_name, seal, with_rows_of,
};
use mot_engine::disk::{DirectoryDisk, Disk};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Name under which a file of rows is until it is whole.
const DRAFT: &str = "upgrade-draft";

/// In the postmaster, which holds the lock of the data directory, before anything else of ours
/// runs. Stops the start where the rows cannot be had.
pub fn at_start() {
    if is_marked(AWAITS_ROWS)
        && let Err(why) = bring_rows()
    {
        errors::rows_not_brought(&why);
    }
    if is_marked(HAS_NOTES)
        && !is_binary_upgrade()
        && let Err(why) = remove_notes()
    {
        errors::report_notes_stay(&why);
    }
}

/// Writes a checkpoint with the rows of the old cluster.
fn bring_rows() -> Result<(), String> {
    let disk = open(Path::new(DIRECTORY))?;
    let own = newest(&disk, read_manifest)?;
    let source = source_of(&own)?;
    let directory = source.data_directory.join(DIRECTORY);
    if !directory.is_dir() {
        return Err(format!("\"{}\" is not there", directory.display()));
    }
    let old = newest(&open(&directory)?, read_manifest)?;
    if old.system_id == own.system_id {
        return Err("the cluster to take them from is this very one".into());
    }
    let is_other = |noted| noted != (old.system_id, old.generation);
    if source.checkpoint.is_some_and(is_other) {
        return Err(format!(
            "the server of \"{}\" has run since",
            source.data_directory.display()
        ));
    }
    let next = next_generation(&disk).map_err(|error| error.to_string())?;
    let generation = next.max(old.generation + 1);
    let brought = with_rows_of(&own, &old, generation).map_err(|error| error.to_string())?;
    for file in &old.files {
        let name = rows_name(file.generation, file.number);
        put_in_place(
            source.bring,
            &directory.join(&name),
            &Path::new(DIRECTORY).join(&name),
        )
        .map_err(|error| format!("file \"{name}\": {error}"))?;
    }
    let finish = || {
        disk.sync_directory()?;
        seal(&disk, &brought.manifest).map_err(io::Error::other)?;
        disk.rename(AWAITS_ROWS, HAS_NOTES)?;
        disk.sync_directory()
    };
    finish().map_err(|error| error.to_string())?;
    let from = source.data_directory.display().to_string();
    errors::report_rows_brought(&from, &brought.left_out);
    Ok(())
}

fn open(directory: &Path) -> Result<DirectoryDisk, String> {
    let opened = DirectoryDisk::open(directory);
    opened.map_err(|error| format!("\"{}\": {error}", directory.display()))
}

/// The newest checkpoint in a directory.
fn newest(
    disk: &DirectoryDisk,
    read: impl Fn(&dyn Disk, u64) -> Result<Manifest, EngineError>,
) -> Result<Manifest, String> {
    let generations = generations(disk).map_err(|error| error.to_string())?;
    let newest = generations.first().ok_or("there is no checkpoint")?;
    read(disk, *newest).map_err(|error| error.to_string())
}

/// How a file of rows comes from one directory into another.
type BringFile = fn(&Path, &Path) -> io::Result<()>;

/// Where rows come from.
struct Source {
    data_directory: PathBuf,
    /// System identifier and generation of the newest checkpoint there; `None`: an administrator
    /// answers for it.
    checkpoint: Option<(u64, u64)>,
    bring: BringFile,
}

/// What an administrator has written into the mark, or else the note that the files of all tables
/// have.
fn source_of(own: &Manifest) -> Result<Source, String> {
    let mark = fs::read(Path::new(DIRECTORY).join(AWAITS_ROWS));
    let mark = mark.map_err(|error| format!("file \"{AWAITS_ROWS}\": {error}"))?;
    if !mark.trim_ascii().is_empty() {
        return Ok(Source {
            data_directory: OsString::from_vec(mark.trim_ascii().to_vec()).into(),
            checkpoint: None,
            bring: copy_file,
        });
    }
    let (note, bring) = note_of(own)?;
    Ok(Source {
        checkpoint: Some((note.system_id, note.generation)),
        data_directory: OsString::from_vec(note.directory).into(),
        bring,
    })
}

/// The note, and how `pg_upgrade` has brought the files that have it: by copies the clusters have
/// nothing in common afterwards.
fn note_of(own: &Manifest) -> Result<(SourceNote, BringFile), String> {
    let mut found: Option<(SourceNote, BringFile)> = None;
    for table in &own.tables {
        // Dropped or rolled back meanwhile: the old cluster is asked for it if it is not.
        let Some(read) = with_file(table.key, read_note)? else {
            continue;
        };
        let read = read.ok_or("the old server has left no note in their files")?;
        let note = read.note.map_err(|damage| damage.0)?;
        let bring: BringFile = if read.is_linked { link_file } else { copy_file };
        let (first, _) = found.get_or_insert_with(|| (note.clone(), bring));
        if *first != note {
            return Err("their files name several clusters".into());
        }
    }
    found.ok_or_else(|| "there are no tables".into())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to).map(drop)
}

/// Links a file, which the server never changes; copies it to another file system.
fn link_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|_| copy_file(from, to))
}

/// Brings a file, which is durable before it has its name.
fn put_in_place(bring: BringFile, from: &Path, to: &Path) -> io::Result<()> {
    let draft = Path::new(DIRECTORY).join(DRAFT);
    remove_if_there(&draft)?;
    bring(from, &draft)?;
    File::open(&draft)?.sync_all()?;
    fs::rename(&draft, to)?;
    // It stays where the two are one file.
    remove_if_there(&draft)
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Empties the files of tables. The tables are those of the server that left the notes: none has
/// run since but for `pg_upgrade`.
fn remove_notes() -> Result<(), String> {
    let disk = open(Path::new(DIRECTORY))?;
    let mut failed = Ok(());
    for table in &newest(&disk, parse_manifest)?.tables {
        let removed = with_file(table.key, remove_note);
        failed = failed.and(removed.map(drop));
    }
    failed?;
    let unmark = || {
        disk.remove(HAS_NOTES)?;
        disk.sync_directory()
    };
    unmark().map_err(|error| error.to_string())
}
