//! A disk in memory that loses what was not synced.
//!
//! It stops at a chosen operation: that operation fails after perhaps doing part of its work, and
//! so do all later ones. `restart` gives the disk a rebooted machine would find: synced bytes, and
//! of the rest any mix of 512-byte sectors written, zero or old, at any length; directory changes
//! since the last `sync_directory` each done or not. All choices come from the seed. Besides,
//! single operations may fail while the machine continues, and the disk may be full.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Disk, DiskReader, DiskWriter};

const SECTOR_BYTES: usize = 512;

/// See the module.
#[derive(Clone)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Clone)]
struct State {
    random: u64,
    operations: u64,
    fails_at: Option<u64>,
    /// An operation that fails alone.
    fault: Option<(u64, io::ErrorKind)>,
    /// Bytes that all files together may have.
    capacity: u64,
    files: Vec<FileState>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Directory changes since the last sync.
    journal: Vec<DirectoryChange>,
}

#[derive(Clone, Default)]
struct FileState {
    bytes: Vec<u8>,
    durable_bytes: usize,
}

#[derive(Clone)]
enum DirectoryChange {
    Link(String, usize),
    Rename(String, String),
    Remove(String),
}

impl State {
    /// splitmix64.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn bytes_used(&self) -> u64 {
        let files = self.names.values();
        files.map(|file| self.files[*file].bytes.len() as u64).sum()
    }

    /// Counts an operation. Ok(false): it is the one that fails half done.
    fn operation(&mut self) -> io::Result<bool> {
        let number = self.operations;
        self.operations += 1;
        if let Some((at, kind)) = self.fault
            && number == at
        {
            return Err(kind.into());
        }
        match self.fails_at {
            Some(at) if number > at => Err(crashed()),
            Some(at) => Ok(number != at),
            None => Ok(true),
        }
    }
}

fn crashed() -> io::Error {
    io::Error::other("the simulated machine is down")
}

fn not_found() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

fn apply(names: &mut BTreeMap<String, usize>, change: &DirectoryChange) {
    match change {
        DirectoryChange::Link(name, file) => {
            names.insert(name.clone(), *file);
        }
        DirectoryChange::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        DirectoryChange::Remove(name) => {
            names.remove(name);
        }
    }
}

impl SimulatedDisk {
    /// An empty disk that never fails.
    pub fn new(seed: u64) -> Self {
        let state = State {
            random: seed,
            operations: 0,
            fails_at: None,
            fault: None,
            capacity: u64::MAX,
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            journal: Vec::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test thread panicked")
    }

    /// Lets the machine go down at operation number `at` (from 0, counted from now on).
    pub fn fail_at(&self, at: u64) {
        let mut state = self.state();
        state.operations = 0;
        state.fails_at = Some(at);
    }

    /// Lets operation number `at` (from 0, counted from now on) fail, doing nothing, and no other.
    pub fn fault_at(&self, at: u64, kind: io::ErrorKind) {
        let mut state = self.state();
        state.operations = 0;
        state.fault = Some((at, kind));
    }

    /// Bytes of all files that have a name.
    pub fn bytes_used(&self) -> u64 {
        self.state().bytes_used()
    }

    /// From now on all files together may have so many bytes.
    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = bytes;
    }

    /// Number of operations since `new`, `restart` or `fail_at`.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// A copy of the whole state: what one test starts from again and again.
    pub fn fork(&self, seed: u64) -> Self {
        let mut state = self.state().clone();
        state.random = seed;
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// What is found after the machine came up again.
    pub fn restart(&self) -> Self {
        let mut state = self.state().clone();
        let journal = std::mem::take(&mut state.journal);
        let mut names = std::mem::take(&mut state.durable_names);
        // Mostly in order, as a journaling file system would; sometimes any of them.
        let ordered = !state.draw().is_multiple_of(4);
        let kept = state.draw() as usize % (journal.len() + 1);
        for (index, change) in journal.iter().enumerate() {
            let done = if ordered {
                index < kept
            } else {
                state.draw().is_multiple_of(2)
            };
            if done {
                apply(&mut names, change);
            }
        }
        for index in 0..state.files.len() {
            let mut file = std::mem::take(&mut state.files[index]);
            let unsynced = file.bytes.len() - file.durable_bytes;
            let length = file.durable_bytes + state.draw() as usize % (unsynced + 1);
            file.bytes.truncate(length);
            let mut start = file.durable_bytes;
            while start < length {
                let end = (start / SECTOR_BYTES + 1) * SECTOR_BYTES;
                if state.draw().is_multiple_of(2) {
                    file.bytes[start..end.min(length)].fill(0);
                }
                start = end;
            }
            file.durable_bytes = length;
            state.files[index] = file;
        }
        state.names = names.clone();
        state.durable_names = names;
        state.operations = 0;
        state.fails_at = None;
        state.fault = None;
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// A file's bytes.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        Some(state.files[*state.names.get(name)?].bytes.clone())
    }

    /// Puts bytes in a file's place, durably.
    pub fn overwrite(&self, name: &str, bytes: Vec<u8>) {
        let mut state = self.state();
        let file = *state.names.get(name).expect("the file exists");
        state.files[file] = FileState {
            durable_bytes: bytes.len(),
            bytes,
        };
    }
}

impl Disk for SimulatedDisk {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskWriter>> {
        let mut state = self.state();
        let whole = state.operation()?;
        let file = state.files.len();
        state.files.push(FileState::default());
        let change = DirectoryChange::Link(name.to_owned(), file);
        apply(&mut state.names, &change);
        state.journal.push(change);
        if !whole {
            return Err(crashed());
        }
        Ok(Box::new(Writer {
            disk: self.clone(),
            file,
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskReader>> {
        let mut state = self.state();
        if !state.operation()? {
            return Err(crashed());
        }
        let file = *state.names.get(name).ok_or_else(not_found)?;
        Ok(Box::new(Reader {
            bytes: state.files[file].bytes.clone(),
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        let whole = state.operation()?;
        if !state.names.contains_key(from) {
            return Err(not_found());
        }
        let change = DirectoryChange::Rename(from.to_owned(), to.to_owned());
        apply(&mut state.names, &change);
        state.journal.push(change);
        if whole { Ok(()) } else { Err(crashed()) }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        let whole = state.operation()?;
        if !state.names.contains_key(name) {
            return Err(not_found());
        }
        let change = DirectoryChange::Remove(name.to_owned());
        apply(&mut state.names, &change);
        state.journal.push(change);
        if whole { Ok(()) } else { Err(crashed()) }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state();
        if !state.operation()? {
            return Err(crashed());
        }
        Ok(state.names.keys().cloned().collect())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.state();
        if !state.operation()? {
            return Err(crashed());
        }
        state.durable_names = state.names.clone();
        state.journal.clear();
        Ok(())
    }
}

struct Writer {
    disk: SimulatedDisk,
    file: usize,
}

impl DiskWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        let whole = state.operation()?;
        let room = state.capacity.saturating_sub(state.bytes_used());
        if room < bytes.len() as u64 {
            state.files[self.file]
                .bytes
                .extend_from_slice(&bytes[..room as usize]);
            return Err(io::ErrorKind::StorageFull.into());
        }
        let length = if whole {
            bytes.len()
        } else {
            state.draw() as usize % (bytes.len() + 1)
        };
        state.files[self.file]
            .bytes
            .extend_from_slice(&bytes[..length]);
        if whole { Ok(()) } else { Err(crashed()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
        if !state.operation()? {
            return Err(crashed());
        }
        let file = &mut state.files[self.file];
        file.durable_bytes = file.bytes.len();
        Ok(())
    }
}

struct Reader {
    bytes: Vec<u8>,
}

impl DiskReader for Reader {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let source = self
            .bytes
            .get(start..)
            .and_then(|rest| rest.get(..buffer.len()))
            .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        buffer.copy_from_slice(source);
        Ok(())
    }
}

#[test]
fn restart_keeps_what_was_synced_and_may_lose_the_rest() {
    let (mut lost, mut kept, mut torn) = (false, false, false);
    for seed in 0..200 {
        let disk = SimulatedDisk::new(seed);
        let mut writer = disk.create("a").expect("creates");
        writer.append(&[1; 700]).expect("writes");
        writer.sync().expect("syncs");
        disk.sync_directory().expect("syncs");
        writer.append(&[2; 2000]).expect("writes");
        disk.create("b").expect("creates");
        let after = disk.restart();
        let bytes = after.contents("a").expect("was synced");
        assert_eq!(bytes[..700], [1; 700], "seed {seed}");
        torn |= bytes[700..].contains(&0);
        match after.contents("b") {
            None => lost = true,
            Some(_) => kept = true,
        }
    }
    assert!(lost && kept && torn);
}
