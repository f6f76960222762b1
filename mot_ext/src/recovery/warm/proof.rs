//! The proof that a memory file and a data directory belong together: words made at the end of one
//! server and again at the start of the next one, from files alone. The memory is taken over only
//! if every word is the same.
use crate::checkpoint::files;
use mot_engine::memory::{MARK_WORDS, Mark};
use pgrx::pg_sys;
use std::ffi::{CStr, OsStr};
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Under PGDATA, the working directory.
const CONTROL_FILE: &str = "global/pg_control";
/// Files whose presence makes PostgreSQL recover though it was shut down cleanly.
const RECOVERY_FILES: [&str; 3] = ["backup_label", "recovery.signal", "standby.signal"];

/// The words, in order, and what it means when one differs.
const MEANING: [&str; MARK_WORDS] = [
    "mot's library is another one",
    "mot's library is another one",
    "the data directory is another cluster's",
    "the server has run since",
    "the server has run since, or pg_control was changed",
    "the data directory was copied or restored since",
    "the data directory was changed, copied or restored since",
    "the checkpoint files were changed since",
    "the checkpoint files were changed since",
    "the checkpoint files were changed since",
];
const GENERATION: usize = 7;

/// The library that runs: whatever it is named and says of itself, another build is another file.
#[derive(Clone, Copy)]
pub struct Library {
    crc: u32,
    bytes: u64,
}

impl Library {
    /// Reads the file that this code was loaded from. Called while the server starts, right after
    /// it was loaded.
    pub fn find() -> std::io::Result<Library> {
        let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        let own = Library::find as *const std::ffi::c_void;
        // SAFETY: any address may be asked about; the answer is filled in if the call succeeds.
        let name = unsafe {
            if libc::dladdr(own, found.as_mut_ptr()) == 0 {
                return Err(std::io::ErrorKind::NotFound.into());
            }
            CStr::from_ptr(found.assume_init().dli_fname)
        };
        let content = std::fs::read(OsStr::from_bytes(name.to_bytes()))?;
        Ok(Library {
            crc: crc32c::crc32c(&content),
            bytes: content.len() as u64,
        })
    }
}

/// The words as of now. Says why there are none: the server was not shut down, or a file is not as
/// it should be.
pub fn make(library: &Library) -> Result<Mark, String> {
    let failed = |error: std::io::Error| format!("\"{CONTROL_FILE}\" cannot be read: {error}");
    let content = std::fs::read(CONTROL_FILE).map_err(failed)?;
    let metadata = std::fs::metadata(CONTROL_FILE).map_err(failed)?;
    let control = Control(&content);
    let crc = control.checked_crc().ok_or("pg_control is damaged")?;
    if !control.is_shut_down() {
        return Err("the server was not shut down cleanly".into());
    }
    let newest = files::fingerprint().map_err(|error| error.to_string())?;
    let (generation, manifest) = newest.ok_or("there is no checkpoint")?;
    let changed = (metadata.ctime() as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(metadata.ctime_nsec() as u64);
    let word = |at| control.u64(at).ok_or("pg_control is too short");
    Ok([
        u64::from(library.crc),
        library.bytes,
        word(offset_of!(pg_sys::ControlFileData, system_identifier))?,
        word(offset_of!(pg_sys::ControlFileData, checkPoint))?,
        u64::from(crc),
        metadata.ino(),
        changed,
        generation,
        u64::from(crc32c::crc32c(&manifest)),
        manifest.len() as u64,
    ])
}

/// The generation a proof speaks of.
pub fn generation(mark: &Mark) -> u64 {
    mark[GENERATION]
}

/// Says what differs.
pub fn compare(marked: &Mark, now: &Mark) -> Result<(), String> {
    match (0..MARK_WORDS).find(|&word| marked[word] != now[word]) {
        None => Ok(()),
        Some(word) => Err(MEANING[word].into()),
    }
}

/// Whether pg_control says that the server was shut down, and nothing asks for a recovery: whether
/// core keeps what unlogged tables had. Before the start that follows has a child.
pub fn follows_shutdown() -> bool {
    let content = std::fs::read(CONTROL_FILE).unwrap_or_default();
    let control = Control(&content);
    control.checked_crc().is_some() && control.is_shut_down() && no_recovery_is_asked_for().is_ok()
}

/// Whether the next start recovers, whatever pg_control says.
pub fn no_recovery_is_asked_for() -> Result<(), String> {
    let asks = |name: &&&str| !matches!(Path::new(name).try_exists(), Ok(false));
    match RECOVERY_FILES.iter().find(asks) {
        None => Ok(()),
        Some(name) => Err(format!("\"{name}\" asks for recovery")),
    }
}

/// FNV-1a, 64 bits: the same in every version of the library, for names.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01B3;
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    bytes.iter().fold(OFFSET, mix)
}

/// pg_control as it is on disk: fields at PostgreSQL's offsets.
struct Control<'a>(&'a [u8]);

impl Control<'_> {
    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..)?.first_chunk()?;
        Some(u32::from_ne_bytes(*bytes))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let bytes = self.0.get(at..)?.first_chunk()?;
        Some(u64::from_ne_bytes(*bytes))
    }

    /// Whether the server was shut down, and not while it recovered.
    fn is_shut_down(&self) -> bool {
        let state = self.u32(offset_of!(pg_sys::ControlFileData, state));
        state == Some(pg_sys::DBState::DB_SHUTDOWNED)
    }

    /// The checksum of the whole content that counts, if it is right.
    fn checked_crc(&self) -> Option<u32> {
        let at = offset_of!(pg_sys::ControlFileData, crc);
        let crc = self.u32(at)?;
        (crc32c::crc32c(self.0.get(..at)?) == crc).then_some(crc)
    }
}
