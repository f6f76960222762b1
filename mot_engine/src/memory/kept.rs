//! A region in a named memory file that outlives the process, so that the next one can take its
//! contents over.
//!
//! ```text
//! file:     [ head: one chunk, of which a page is used | the region ]
//! mapped:   at base - CHUNK_BYTES                        at base
//! head:     u64 words: magic, format, clean, region bytes, base, inode, mtime, ctime,
//!           the caller's mark, CRC32C
//! ```
//!
//! Protocol:
//! - One server at a time: the file is locked (`flock`) before anything in it is examined, and the
//!   lock lasts until the last process that inherited the descriptor is gone. So no child of a dead
//!   server can still be writing.
//! - Plain pointers lie in the region, so it is always mapped at the base its file was made for, or
//!   not at all.
//! - `open` takes the mark off before any process can change the region, whatever happens later;
//!   only [`Region::mark`] sets it, with everything written before. Memory files have no durability
//!   beyond the kernel's own life: a store is enough.
//! - Times and inode are part of what is marked: a process that wrote to the file meanwhile, or put
//!   another in its place, shows.
//! - A page of such a file may not be had when it is touched, which is a SIGBUS: pages are asked
//!   for (`populate`) first.
//! - A file that is not taken over is emptied, never read.

use super::chunk::CHUNK_BYTES;
use super::region::{HugePages, Region, populate_pages};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// "motKEPT\0" in memory order.
const MAGIC: u64 = u64::from_le_bytes(*b"motKEPT\0");
/// Raised with every change of the head.
const FORMAT: u64 = 1;
const CLEAN: u64 = 1;

/// What the caller wants to find again: proof that the contents fit what it finds elsewhere.
pub type Mark = [u64; MARK_WORDS];
/// Words of a mark.
pub const MARK_WORDS: usize = 10;

/// What says where the file is, and where it is mapped.
#[derive(Clone, Copy, Debug)]
pub struct KeptPlace<'a> {
    /// The file, on a memory file system.
    pub path: &'a Path,
    /// Address of the region, a multiple of the chunk size.
    pub base: usize,
}

/// Why there is no such region. The file is gone, unless it is another owner's.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    #[error("its file cannot be used: {0}")]
    Io(#[from] io::Error),
    #[error("its file is in use by another process")]
    InUse,
    #[error("its file belongs to another user or is open to others")]
    Foreign,
    #[error("its file is not on a memory file system")]
    NotMemory,
    #[error(
        "its file system has room for {} MiB, not for {} MiB: make it larger or the arena smaller",
        free >> 20, bytes >> 20
    )]
    NoRoom { free: u64, bytes: u64 },
    #[error("the address it needs is taken: {0}")]
    Address(io::Error),
    #[error("the kernel cannot set pages aside (MADV_POPULATE_WRITE): {0}")]
    Populate(io::Error),
}

/// Why nothing can be taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmarked {
    #[error("there is no memory of an earlier run")]
    New,
    #[error("the server was not shut down cleanly")]
    NotClean,
    #[error("the memory is of another size or was made by another version")]
    Otherwise,
    #[error("the memory was changed or damaged since the shutdown")]
    Changed,
}

/// What was found in the file. In the first case the region is as it was marked, else it is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Marked(Mark),
    Nothing(Unmarked),
}

#[repr(C)]
struct Head {
    magic: AtomicU64,
    format: AtomicU64,
    clean: AtomicU64,
    bytes: AtomicU64,
    base: AtomicU64,
    inode: AtomicU64,
    mtime: AtomicU64,
    ctime: AtomicU64,
    mark: [AtomicU64; MARK_WORDS],
    crc: AtomicU64,
}
const HEAD_WORDS: usize = size_of::<Head>() / size_of::<u64>();
const CLEAN_WORD: usize = std::mem::offset_of!(Head, clean) / size_of::<u64>();
/// What is populated of the head's chunk: a multiple of every page size.
const HEAD_BYTES: usize = 64 << 10;
const _: () = assert!(size_of::<Head>() <= HEAD_BYTES && HEAD_BYTES <= CHUNK_BYTES);

/// The head's words as they lie in the file.
type Words = [u64; HEAD_WORDS];

/// A region's file.
#[derive(Debug)]
pub(super) struct Kept {
    file: File,
    path: PathBuf,
    head: NonNull<Head>,
}

impl Kept {
    fn head(&self) -> &Head {
        // SAFETY: mapped by `open_kept` until the region is dropped; populated, and nothing but
        // atomics.
        unsafe { self.head.as_ref() }
    }

    /// Unmaps the head; the region beside it is unmapped by its owner.
    pub(super) fn unmap(&self) {
        // SAFETY: our own mapping, which no code uses after the region.
        unsafe { libc::munmap(self.head.as_ptr().cast(), CHUNK_BYTES) };
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> u64 {
    (seconds as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(nanoseconds as u64)
}

fn modified(metadata: &Metadata) -> u64 {
    nanoseconds(metadata.mtime(), metadata.mtime_nsec())
}

fn changed(metadata: &Metadata) -> u64 {
    nanoseconds(metadata.ctime(), metadata.ctime_nsec())
}

fn crc_of(words: &[u64]) -> u64 {
    let add = |crc, word: &u64| crc32c::crc32c_append(crc, &word.to_le_bytes());
    u64::from(words.iter().fold(0, add))
}

impl Region {
    /// Opens the region in a named file, or makes it. A caller that gets a mark decides by it
    /// whether to take the contents over or to `reset`.
    pub fn open_kept(
        place: KeptPlace<'_>,
        bytes: usize,
        huge_pages: HugePages,
    ) -> Result<(Region, Found), KeptError> {
        let file = open_locked(place.path, true)?;
        open_region(file, place, bytes, huge_pages).inspect_err(|_| {
            // Locked and ours: nothing else can be using it. If it cannot be removed, its mark
            // is still checked.
            let _ = std::fs::remove_file(place.path);
        })
    }

    /// Marks a kept region: the next `open_kept` hands `mark` out. No process changes the region
    /// any more, and none is left that could.
    pub fn mark(&self, mark: &Mark) -> io::Result<()> {
        let kept = self.kept.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let head = kept.head();
        // Before the times are read: the first store may count as a write to the file.
        head.clean.store(0, Ordering::SeqCst);
        let metadata = kept.file.metadata()?;
        let pairs = [
            (&head.magic, MAGIC),
            (&head.format, FORMAT),
            (&head.bytes, self.bytes() as u64),
            (&head.base, self.base().addr().get() as u64),
            (&head.inode, metadata.ino()),
            (&head.mtime, modified(&metadata)),
            (&head.ctime, changed(&metadata)),
        ];
        for (word, value) in pairs.into_iter().chain(head.mark.iter().zip(*mark)) {
            word.store(value, Ordering::Relaxed);
        }
        let mut words = Words::default();
        read_head(&kept.file, &mut words)?;
        words[CLEAN_WORD] = CLEAN;
        head.crc
            .store(crc_of(&words[..HEAD_WORDS - 1]), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        head.clean.store(CLEAN, Ordering::SeqCst);
        Ok(())
    }

    /// Removes a kept region's file: the memory lasts only as long as its mappings. Nothing happens
    /// to a file that took its place.
    pub fn forget(&self) -> io::Result<()> {
        let Some(kept) = &self.kept else {
            return Ok(());
        };
        match std::fs::symlink_metadata(&kept.path) {
            Ok(named) if named.ino() == kept.file.metadata()?.ino() => {
                std::fs::remove_file(&kept.path)
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Removes a file that an earlier run left; true if there was one.
pub fn remove_kept(path: &Path) -> Result<bool, KeptError> {
    match open_locked(path, false) {
        Ok(_locked) => {
            std::fs::remove_file(path)?;
            Ok(true)
        }
        Err(KeptError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a file that is this user's alone and that no other process has open this way.
fn open_locked(path: &Path, create: bool) -> Result<File, KeptError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(create)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?;
    let metadata = file.metadata()?;
    // SAFETY: no preconditions.
    let own = metadata.uid() == unsafe { libc::geteuid() };
    if !metadata.is_file() || !own || metadata.mode() & 0o077 != 0 {
        return Err(KeptError::Foreign);
    }
    // SAFETY: an open descriptor.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let error = io::Error::last_os_error();
        return Err(if error.kind() == io::ErrorKind::WouldBlock {
            KeptError::InUse
        } else {
            error.into()
        });
    }
    // Its name may have been taken away before we had the lock; hard links would be another user's
    // trick.
    if file.metadata()?.nlink() != 1 {
        return Err(KeptError::InUse);
    }
    Ok(file)
}

fn open_region(
    file: File,
    place: KeptPlace<'_>,
    bytes: usize,
    huge_pages: HugePages,
) -> Result<(Region, Found), KeptError> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let bytes = bytes
        .checked_next_multiple_of(CHUNK_BYTES)
        .filter(|&bytes| bytes > 0 && bytes <= isize::MAX as usize - CHUNK_BYTES)
        .ok_or_else(invalid)?;
    if !place.base.is_multiple_of(CHUNK_BYTES) || place.base < 2 * CHUNK_BYTES {
        return Err(invalid().into());
    }
    let found = examine(&file, place.base, bytes)?;
    let length = (CHUNK_BYTES + bytes) as u64;
    if let Found::Nothing(_) = found {
        file.set_len(0)?;
        file.set_len(length)?;
    }
    check_room(&file, length)?;
    let head = map(&file, place.base, bytes)?;
    // SAFETY: one chunk further in the mapping just made.
    let base = unsafe { head.cast::<u8>().add(CHUNK_BYTES) };
    let path = place.path.to_owned();
    let mut region = Region::of_file(base, bytes, Kept { file, path, head });
    // SAFETY: the head of our own mapping.
    unsafe { populate_pages(head.cast(), HEAD_BYTES) }.map_err(KeptError::Populate)?;
    if let Some(kept) = &region.kept {
        kept.head().clean.store(0, Ordering::SeqCst);
    }
    if huge_pages != HugePages::Off {
        region.ask_for_huge_pages();
    }
    Ok((region, found))
}

/// What the file says of itself.
fn examine(file: &File, base: usize, bytes: usize) -> Result<Found, KeptError> {
    let metadata = file.metadata()?;
    if metadata.len() == 0 {
        return Ok(Found::Nothing(Unmarked::New));
    }
    let mut words = Words::default();
    if metadata.len() < size_of::<Words>() as u64 {
        return Ok(Found::Nothing(Unmarked::Changed));
    }
    read_head(file, &mut words)?;
    let [
        magic,
        format,
        clean,
        its_bytes,
        its_base,
        inode,
        mtime,
        ctime,
        ..,
    ] = words;
    if clean != CLEAN {
        return Ok(Found::Nothing(Unmarked::NotClean));
    }
    if words[HEAD_WORDS - 1] != crc_of(&words[..HEAD_WORDS - 1]) || magic != MAGIC {
        return Ok(Found::Nothing(Unmarked::Changed));
    }
    if format != FORMAT || its_bytes != bytes as u64 || its_base != base as u64 {
        return Ok(Found::Nothing(Unmarked::Otherwise));
    }
    let as_marked = metadata.len() == (CHUNK_BYTES + bytes) as u64
        && inode == metadata.ino()
        && mtime == modified(&metadata)
        && ctime == changed(&metadata);
    if !as_marked {
        return Ok(Found::Nothing(Unmarked::Changed));
    }
    let mut mark = Mark::default();
    mark.copy_from_slice(&words[HEAD_WORDS - 1 - MARK_WORDS..HEAD_WORDS - 1]);
    Ok(Found::Marked(mark))
}

fn read_head(file: &File, words: &mut Words) -> io::Result<()> {
    let mut bytes = [0; size_of::<Words>()];
    file.read_exact_at(&mut bytes, 0)?;
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(size_of::<u64>())) {
        *word = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    }
    Ok(())
}

/// The file system must be one of memory, with room for what the file does not have yet.
fn check_room(file: &File, length: u64) -> Result<(), KeptError> {
    let mut system = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: an open descriptor and room for the answer.
    if unsafe { libc::fstatfs(file.as_raw_fd(), system.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error().into());
    }
    // SAFETY: filled in by the call.
    let system = unsafe { system.assume_init() };
    if system.f_type != libc::TMPFS_MAGIC {
        return Err(KeptError::NotMemory);
    }
    /// Unit of a file's block count, whatever the file system.
    const BLOCK: u64 = 512;
    let own = file.metadata()?.blocks().saturating_mul(BLOCK);
    let free = system.f_bavail.saturating_mul(system.f_bsize as u64);
    // A file system without a limit says that it has no blocks at all.
    if system.f_blocks != 0 && free.saturating_add(own) < length {
        let bytes = length;
        return Err(KeptError::NoRoom { free, bytes });
    }
    Ok(())
}

/// Maps head and region where they belong.
fn map(file: &File, base: usize, bytes: usize) -> Result<NonNull<Head>, KeptError> {
    let wanted = base - CHUNK_BYTES;
    let length = CHUNK_BYTES + bytes;
    // SAFETY: a new mapping that replaces none.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::without_provenance_mut(wanted),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
            file.as_raw_fd(),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(KeptError::Address(io::Error::last_os_error()));
    }
    if mapped.addr() != wanted {
        // A kernel that takes the address for a hint.
        // SAFETY: the mapping just made.
        unsafe { libc::munmap(mapped, length) };
        return Err(KeptError::Address(io::ErrorKind::AddrInUse.into()));
    }
    Ok(NonNull::new(mapped.cast()).expect("a mapping is not at address 0"))
}
