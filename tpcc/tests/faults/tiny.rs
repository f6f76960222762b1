//! A disk that is soon full.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tmpfs over a directory; unmounted when dropped.
pub struct Tiny {
    path: PathBuf,
}

impl Tiny {
    /// Mounts a disk of so many KiB over `path` and copies its files there.
    pub fn mount_over(path: &Path, kib: u64) -> Tiny {
        let owner = fs::metadata(path).expect("exists");
        let read = |entry: std::io::Result<fs::DirEntry>| {
            let path = entry.expect("reads").path();
            // Of a directory the name alone.
            let bytes = path.is_file().then(|| fs::read(&path).expect("reads"));
            (path, bytes)
        };
        let files: Vec<_> = fs::read_dir(path).expect("reads").map(read).collect();
        let options = format!(
            "size={kib}k,mode=0700,uid={},gid={}",
            owner.uid(),
            owner.gid()
        );
        mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], path);
        for (path, bytes) in files {
            match bytes {
                Some(bytes) => fs::write(&path, bytes).expect("fits"),
                None => fs::create_dir(&path).expect("fits"),
            }
            chown(&path, Some(owner.uid()), Some(owner.gid())).expect("root may");
        }
        Tiny { path: path.into() }
    }

    /// Changes its size.
    pub fn resize(&self, kib: u64) {
        mount(&["-o", &format!("remount,size={kib}k")], &self.path);
    }

    /// Fills it to the last byte with a file, whose path it gives.
    pub fn fill(&self) -> PathBuf {
        let path = self.path.join("filler");
        let mut file = fs::File::create(&path).expect("creates");
        while file.write_all(&[0; 4096]).is_ok() {}
        path
    }
}

fn mount(arguments: &[&str], path: &Path) {
    let mounted = Command::new("mount").args(arguments).arg(path).status();
    let done = mounted.is_ok_and(|status| status.success());
    assert!(
        done,
        "the tests of full disks mount a tmpfs, which needs root"
    );
}

impl Drop for Tiny {
    fn drop(&mut self) {
        // Best effort: there is nobody left to tell.
        let _ = Command::new("umount").arg(&self.path).status();
    }
}
