//! The region: one large sparse mapping, made before the first fork and inherited at the same
//! address.
//!
//! Contract: a region is a memory file (memfd) mapped shared, its base aligned to a chunk, its
//! pages touched only when used. It is created once, in the process that forks all others, and
//! lives as long as that process. A kept one (kept.rs) is in a named file and outlives it. Fresh
//! and reset regions read as zero everywhere, which is what "unformatted" means to the arena.

use super::chunk::CHUNK_BYTES;
use super::kept::Kept;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// Whether to back the region with huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// Ordinary pages.
    Off,
    /// Reserved huge pages if the kernel has enough of them, else ask for transparent ones.
    Try,
    /// Reserved huge pages or failure.
    On,
}

/// Why a region could not be had or reset.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The size is zero or rounds up beyond the address space.
    #[error("an arena of {bytes} bytes cannot be addressed")]
    Size { bytes: usize },
    /// The kernel refuses the memory file or its mapping.
    #[error(
        "could not map {} MiB of shared memory for the arena: {source} (ask for a smaller arena, or lift the limit: \
         ulimit -v counts the whole arena at once)", bytes >> 20
    )]
    Map { bytes: usize, source: io::Error },
    /// The kernel has too few reserved huge pages.
    #[error(
        "could not map {} MiB of huge pages for the arena: {source} (set vm.nr_hugepages to at least {}, ask for a \
         smaller arena, or do not insist on huge pages)", bytes >> 20, bytes >> 21
    )]
    HugePages { bytes: usize, source: io::Error },
    /// The kernel refuses to take the pages back.
    #[error("could not give back {} MiB of the arena: {source}", bytes >> 20)]
    Reset { bytes: usize, source: io::Error },
}

/// No page is smaller.
const PAGE_BYTES_LEAST: usize = 4096;

/// The mapping. Dropping it unmaps it in this process.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    bytes: usize,
    huge_pages: bool,
    /// The kernel promises no more pages than it has (`vm.overcommit_memory` = 2), and counts those
    /// of such a mapping one by one as they are touched, not all at once. One too many would be a
    /// SIGBUS.
    counts_pages: bool,
    pub(super) collects_huge_pages: bool,
    pub(super) kept: Option<Kept>,
}

// SAFETY: a region is an address range; what may be done to its contents is the arena's contract.
unsafe impl Send for Region {}
// SAFETY: as above; `reset` is unsafe and names its own condition.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `bytes`, rounded up to whole chunks.
    pub fn create(bytes: usize, huge_pages: HugePages) -> Result<Region, RegionError> {
        let bytes = bytes
            .checked_next_multiple_of(CHUNK_BYTES)
            .filter(|&bytes| bytes > 0 && bytes <= isize::MAX as usize - CHUNK_BYTES)
            .ok_or(RegionError::Size { bytes })?;
        if huge_pages != HugePages::Off {
            match map(bytes, true) {
                Ok(base) => {
                    return Ok(Region {
                        base,
                        bytes,
                        huge_pages: true,
                        counts_pages: false,
                        collects_huge_pages: false,
                        kept: None,
                    });
                }
                Err(source) if huge_pages == HugePages::On => {
                    return Err(RegionError::HugePages { bytes, source });
                }
                Err(_) => {} // Try: ordinary pages below, and of each chunk a huge one if the kernel can.
            }
        }
        let base = map(bytes, false).map_err(|source| RegionError::Map { bytes, source })?;
        let mut region = Region {
            base,
            bytes,
            huge_pages: false,
            counts_pages: false,
            collects_huge_pages: false,
            kept: None,
        };
        region.counts_pages = counts_pages() && region.can_populate();
        if huge_pages == HugePages::Try {
            region.ask_for_huge_pages();
        }
        Ok(region)
    }

    /// A region of ordinary pages that is treated as one of reserved huge ones.
    #[cfg(test)]
    pub(super) fn create_as_if_reserved(bytes: usize) -> Region {
        let mut region = Region::create(bytes, HugePages::Off).unwrap();
        region.huge_pages = true;
        region
    }

    /// Whether the kernel knows how to find pages ahead (Linux 5.14).
    fn can_populate(&self) -> bool {
        // SAFETY: the first page of our own mapping.
        let asked = unsafe { populate_pages(self.base, PAGE_BYTES_LEAST) };
        asked.map_err(|error| error.raw_os_error()) != Err(Some(libc::EINVAL))
    }

    /// A region in a file that outlives this process: kept.rs.
    pub(super) fn of_file(base: NonNull<u8>, bytes: usize, kept: Kept) -> Region {
        Region {
            base,
            bytes,
            huge_pages: false,
            counts_pages: false,
            collects_huge_pages: false,
            kept: Some(kept),
        }
    }

    /// Asks for transparent huge pages, here and chunk by chunk (`collapse_pages`). A refusal
    /// leaves ordinary ones.
    pub(super) fn ask_for_huge_pages(&mut self) {
        self.collects_huge_pages = true;
        // SAFETY: the range is our own mapping; the advice changes no contents.
        unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, libc::MADV_HUGEPAGE) };
    }

    /// Whether pages must be asked for before they are touched: the file system can be full, or the
    /// kernel have promised all it has.
    pub fn needs_population(&self) -> bool {
        self.kept.is_some() || self.counts_pages
    }

    /// Whether it is in a file that outlives this process, and may hold what an earlier one left.
    pub fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Whether pages that were touched stay the region's. Reserved huge pages are given back with
    /// their reservation, and when another process has taken them the next touch is a SIGBUS.
    pub fn keeps_pages(&self) -> bool {
        self.huge_pages
    }

    /// Whether each chunk is to become a huge page when it is taken.
    pub fn collects_huge_pages(&self) -> bool {
        self.collects_huge_pages
    }

    /// First byte; a multiple of the chunk size.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Size in bytes, whole chunks.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives all pages back: the region reads as zero, unformatted, everywhere. Reserved huge pages
    /// it keeps, and writes the zeroes.
    ///
    /// # Safety
    /// No process or thread uses anything in the region, then or later, that was put there before.
    pub unsafe fn reset(&self) -> Result<(), RegionError> {
        if self.huge_pages {
            // A new file would have to find its pages beside those of the old one, which a process
            // that survives a crash (the logging collector) has mapped as well. SAFETY: the whole
            // of our own mapping, unused by the caller's promise.
            unsafe { self.base.write_bytes(0, self.bytes) };
            return Ok(());
        }
        // SAFETY: the whole of our own mapping, unused by the caller's promise.
        unsafe { give_back_pages(self.base, self.bytes) }.map_err(|source| RegionError::Reset {
            bytes: self.bytes,
            source,
        })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; handles into it promised (see `Memory::format`) not to
        // outlive it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
        if let Some(kept) = &self.kept {
            kept.unmap();
        }
    }
}

/// Makes the kernel find pages for a range of a mapped file, or say that it cannot.
///
/// # Safety
/// The range is in a shared, writable mapping of the caller's, on page boundaries.
pub(super) unsafe fn populate_pages(at: NonNull<u8>, bytes: usize) -> io::Result<()> {
    loop {
        // SAFETY: the caller's promise; no contents change.
        match unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) } {
            0 => return Ok(()),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Makes one huge page of each chunk of the range, now, whatever the machine's settings for
/// transparent ones say. Contents stay. What the kernel cannot do stays as it is.
///
/// # Safety
/// The range is chunks of a mapped region.
pub(super) unsafe fn collapse_pages(at: NonNull<u8>, bytes: usize) -> io::Result<()> {
    // SAFETY: the caller's promise; no contents change.
    match unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_COLLAPSE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Punches a hole: the pages go back to the kernel for every process and read as zero afterwards.
///
/// # Safety
/// The range is in a region, on page boundaries (huge page boundaries if it has such), and no
/// process uses its contents.
pub(super) unsafe fn give_back_pages(at: NonNull<u8>, bytes: usize) -> io::Result<()> {
    // SAFETY: the caller's promise. MADV_REMOVE acts on the file behind the mapping, so it works
    // from any process.
    match unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_REMOVE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the kernel promises no more memory than it has.
fn counts_pages() -> bool {
    const NEVER: &str = "2";
    std::fs::read_to_string("/proc/sys/vm/overcommit_memory")
        .is_ok_and(|policy| policy.trim() == NEVER)
}

fn map(bytes: usize, huge: bool) -> io::Result<NonNull<u8>> {
    let file = memory_file(bytes, huge)?;
    // Without reserved pages for all of it, a huge page missing later would be a SIGBUS: so no
    // NORESERVE there.
    let reserve = if huge { 0 } else { libc::MAP_NORESERVE };
    // The kernel aligns to its own page size only: reserve one chunk more and map at the boundary
    // inside.
    let slack_bytes = bytes + CHUNK_BYTES;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let slack = unsafe {
        libc::mmap(
            ptr::null_mut(),
            slack_bytes,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if slack == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let slack = slack.cast::<u8>();
    let head_bytes = slack.addr().next_multiple_of(CHUNK_BYTES) - slack.addr();
    // SAFETY: stays within the reservation, which is one chunk larger.
    let base = unsafe { slack.add(head_bytes) };
    // SAFETY: MAP_FIXED replaces a part of our own, unused reservation.
    let mapped = unsafe {
        libc::mmap(
            base.cast(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_FIXED | reserve,
            file.as_raw_fd(),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        // SAFETY: our own reservation, of which nothing is used.
        unsafe { libc::munmap(slack.cast(), slack_bytes) };
        return Err(error);
    }
    let tail_bytes = slack_bytes - head_bytes - bytes;
    // SAFETY: head and tail of our own reservation, outside the mapping just made. The lengths are
    // whole pages.
    unsafe {
        if head_bytes > 0 {
            libc::munmap(slack.cast(), head_bytes);
        }
        if tail_bytes > 0 {
            libc::munmap(base.add(bytes).cast(), tail_bytes);
        }
    }
    Ok(NonNull::new(base).expect("a mapping is not at address 0"))
}

/// The file is closed once it is mapped: the mappings keep it alive, and no backend inherits a
/// descriptor.
fn memory_file(bytes: usize, huge: bool) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC
        | if huge {
            libc::MFD_HUGETLB | libc::MFD_HUGE_2MB
        } else {
            0
        };
    // SAFETY: the name is a valid C string.
    let fd = unsafe { libc::memfd_create(c"mot arena".as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor just opened, with no other owner.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the descriptor is open; the size fits (checked by `create`).
    match unsafe { libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) } {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_aligned_zero_and_resettable() {
        let region = Region::create((1 << 36) + 1, HugePages::Off).unwrap();
        assert_eq!(region.bytes(), (1 << 36) + CHUNK_BYTES);
        assert_eq!(region.base().addr().get() % CHUNK_BYTES, 0);
        let last = region.bytes() - 1;
        // SAFETY: inside the mapping, which only this test uses.
        unsafe {
            for at in [0, CHUNK_BYTES + 7, last] {
                let byte = region.base().add(at);
                assert_eq!(byte.read(), 0);
                byte.write(7);
            }
            region.reset().unwrap();
            for at in [0, CHUNK_BYTES + 7, last] {
                assert_eq!(region.base().add(at).read(), 0);
            }
        }
    }

    /// With reserved huge pages if the machine has some that are free, else with ordinary ones in
    /// their place.
    #[test]
    fn reserved_huge_pages_stay_with_a_reset() {
        let is_resident = |region: &Region| {
            let mut resident = 0;
            // SAFETY: asks about one page of the mapping.
            let asked = unsafe {
                let at = region.base().add(CHUNK_BYTES).as_ptr();
                libc::mincore(at.cast(), PAGE_BYTES_LEAST, &raw mut resident)
            };
            assert_eq!(asked, 0);
            resident & 1 == 1
        };
        let reserved = Region::create(4 * CHUNK_BYTES, HugePages::On)
            .unwrap_or_else(|_| Region::create_as_if_reserved(4 * CHUNK_BYTES));
        let ordinary = Region::create(4 * CHUNK_BYTES, HugePages::Off).unwrap();
        for (region, stays) in [(reserved, true), (ordinary, false)] {
            assert!(!is_resident(&region));
            // SAFETY: inside the mapping, which only this test uses.
            unsafe {
                region.base().add(CHUNK_BYTES).write(7);
                region.reset().unwrap();
                assert_eq!(is_resident(&region), stays);
                assert_eq!(region.base().add(CHUNK_BYTES).read(), 0);
            }
        }
    }

    #[test]
    fn impossible_sizes_say_what_to_do() {
        assert!(matches!(
            Region::create(0, HugePages::Off),
            Err(RegionError::Size { bytes: 0 })
        ));
        assert!(matches!(
            Region::create(usize::MAX, HugePages::Off),
            Err(RegionError::Size { bytes: usize::MAX })
        ));
        let error = Region::create(1 << 60, HugePages::Off).unwrap_err();
        assert!(matches!(error, RegionError::Map { .. }));
        assert!(error.to_string().contains("smaller arena"), "{error}");
    }

    #[test]
    fn huge_pages_on_fails_clearly_or_works() {
        // More than any machine has reserved: `on` must refuse at once, `try` must fall back.
        let bytes = 1 << 42;
        let error = Region::create(bytes, HugePages::On).unwrap_err();
        assert!(matches!(error, RegionError::HugePages { .. }));
        assert!(error.to_string().contains("vm.nr_hugepages"), "{error}");
        let region = Region::create(bytes, HugePages::Try).unwrap();
        assert!(!region.huge_pages);
        // SAFETY: inside the mapping, which only this test uses.
        unsafe { region.base().write(1) };
    }
}
