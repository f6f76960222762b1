//! What a checkpoint needs of a file system, as a trait, so that tests can crash it anywhere.
//!
//! Contract:
//! - All files lie in one directory and are named without slashes. A file is written once, from
//!   start to end, by one writer, and never changed after.
//! - Nothing is promised to survive a crash but: a file's bytes after its `sync`, and the
//!   creations, renames and removals before a `sync_directory` (of files that exist).
//! - Every error is an `io::Error`; the callers add the file's name. Nothing is retried: after a
//!   failed sync the kernel may have dropped the pages, so the file must be given up.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

#[cfg(test)]
pub mod simulated;

/// A directory of files.
pub trait Disk: Sync {
    /// Creates a file for writing, replacing one of that name.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskWriter>>;
    /// Opens a file for reading.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskReader>>;
    /// Gives a file another name, replacing one of that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// The names of all files, in no order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals so far durable.
    fn sync_directory(&self) -> io::Result<()>;
}

/// A file being written.
pub trait DiskWriter: Send {
    /// Appends all of `bytes`.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes everything appended durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file being read, by any number of threads.
pub trait DiskReader: Send + Sync {
    /// Its length in bytes.
    fn bytes(&self) -> io::Result<u64>;
    /// Reads exactly `buffer.len()` bytes at `offset`; `UnexpectedEof` if there are not that many.
    ///
    /// Reading, not mapping: a bad sector then is an error with a file name, where a mapping would
    /// kill the process.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// A directory of the operating system's.
pub struct DirectoryDisk {
    path: PathBuf,
}

impl DirectoryDisk {
    /// Uses `path`, creating the directory (readable by the owner only) if it is missing; its
    /// parent must exist and is synced when the directory is new. A symbolic link is refused,
    /// wherever it leads: a copy of what is around the directory may pass over links without a
    /// word, and loses the files.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let path = path.into();
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {
                if let Some(parent) = path.parent() {
                    let parent = if parent == Path::new("") {
                        Path::new(".")
                    } else {
                        parent
                    };
                    File::open(parent)?.sync_all()?;
                }
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) if path.is_symlink() => {
                let what = "it is a symbolic link, which backups pass over";
                return Err(io::Error::other(what));
            }
            Err(_) => {}
        }
        Ok(Self { path })
    }
}

impl Disk for DirectoryDisk {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskWriter>> {
        use std::os::unix::fs::OpenOptionsExt;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.path.join(name))?;
        Ok(Box::new(GrowingFile {
            file,
            bytes: 0,
            begun: 0,
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskReader>> {
        Ok(Box::new(File::open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // Names that are not text are not of our files.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// After so many bytes the kernel is asked to begin writing them: else a sync of everything at once
/// keeps the device from others, which wait for the write-ahead log there. As PostgreSQL's
/// checkpoint_flush_after.
const WRITE_BACK_BYTES: u64 = 256 << 10;

/// A file being written.
struct GrowingFile {
    file: File,
    bytes: u64,
    /// The kernel has been asked to write what is before.
    begun: u64,
}

impl GrowingFile {
    #[cfg(target_os = "linux")]
    fn begin_write_back(&self) {
        use std::os::fd::AsRawFd;
        // A hint: what it does not write, or could not, is for `sync` to write and to report.
        // SAFETY: the descriptor is open.
        unsafe {
            libc::sync_file_range(
                self.file.as_raw_fd(),
                self.begun as i64,
                (self.bytes - self.begun) as i64,
                libc::SYNC_FILE_RANGE_WRITE,
            );
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn begin_write_back(&self) {}
}

impl DiskWriter for GrowingFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // In pieces, so that the first are on their way before the last are copied.
        for piece in bytes.chunks(WRITE_BACK_BYTES as usize) {
            self.file.write_all(piece)?;
            self.bytes += piece.len() as u64;
            if self.bytes - self.begun >= WRITE_BACK_BYTES {
                self.begin_write_back();
                self.begun = self.bytes;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }
}

impl DiskReader for File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exercise(disk: &dyn Disk) {
        let mut writer = disk.create("a").expect("creates");
        writer.append(b"hello ").expect("writes");
        writer.append(b"world").expect("writes");
        writer.sync().expect("syncs");
        disk.rename("a", "b").expect("renames");
        disk.create("c").expect("creates").sync().expect("syncs");
        disk.sync_directory().expect("syncs");
        let mut names = disk.list().expect("lists");
        names.sort();
        assert_eq!(names, ["b", "c"]);
        let reader = disk.open("b").expect("opens");
        assert_eq!(reader.bytes().expect("length"), 11);
        let mut bytes = [0; 5];
        reader.read_at(6, &mut bytes).expect("reads");
        assert_eq!(&bytes, b"world");
        let error = reader.read_at(7, &mut bytes).expect_err("is too short");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(
            disk.open("a").err().expect("is gone").kind(),
            io::ErrorKind::NotFound
        );
        disk.remove("b").expect("removes");
        assert_eq!(disk.list().expect("lists"), ["c"]);
        assert!(disk.remove("b").is_err());
    }

    #[test]
    fn directories_behave() {
        let scratch = tempfile::tempdir().expect("a directory");
        let disk = DirectoryDisk::open(scratch.path().join("mot")).expect("creates");
        exercise(&disk);
        let again = DirectoryDisk::open(&disk.path).expect("exists");
        assert_eq!(again.list().expect("lists"), ["c"]);
    }

    #[test]
    fn a_link_is_no_directory() {
        use std::os::unix::fs::symlink;
        let scratch = tempfile::tempdir().expect("a directory");
        let (elsewhere, link) = (scratch.path().join("elsewhere"), scratch.path().join("mot"));
        fs::create_dir(&elsewhere).expect("creates");
        symlink(&elsewhere, &link).expect("links");
        let error = DirectoryDisk::open(&link).err().expect("is refused");
        assert!(error.to_string().contains("symbolic link"), "{error}");
        fs::remove_file(&link).expect("removes");
        symlink(scratch.path().join("nowhere"), &link).expect("links");
        let error = DirectoryDisk::open(&link).err().expect("is refused");
        assert!(error.to_string().contains("symbolic link"), "{error}");
        // The parent may be reached by one.
        let parent = scratch.path().join("parent");
        symlink(&elsewhere, &parent).expect("links");
        DirectoryDisk::open(parent.join("mot")).expect("creates");
        assert!(elsewhere.join("mot").is_dir());
    }

    #[test]
    fn simulated_disks_behave() {
        exercise(&simulated::SimulatedDisk::new(1));
    }
}
