//! Orphans: garbage whose process has gone or may be idle from now on, kept in shared memory until anyone may free it.
//!
//! Contract: a retired block may still be read, so nothing is written into it; orphans are noted down in pages of
//! their own, linked from the header under one latch. The header brings a stock of pages so that this works in a full
//! arena, too; further pages come from the arena's reserve. Only if the arena has not one block left and the stock is used
//! up is the garbage given up, and counted as lost. A page is freed as a whole when its youngest entry may be.

use super::account::Purpose;
use super::arena::Memory;
use super::epoch::EPOCHS_TO_SAFETY;
use super::garbage::Retired;
use super::latch::Latch;
use super::word::{Word32, Word64};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a page, a size class.
pub(super) const ORPHAN_PAGE_BYTES: usize = 4096;
/// Blocks that a page tells of.
pub(super) const ORPHANS_PER_PAGE: usize = (ORPHAN_PAGE_BYTES - 32) / 24;
/// Pages in the header: room for 10,816 blocks, what some hundred processes leave behind.
const STOCK_PAGES: usize = 64;
/// Pages freed by one visit: bounds what one process does for others.
pub(super) const PAGES_PER_VISIT: usize = 4;

/// Whether the header's pages may be used up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stock {
    Use,
    /// They are for those who cannot keep their garbage.
    Spare,
}

/// The purpose sits in the top byte of the size.
const PURPOSE_SHIFT: u32 = 56;

#[repr(C)]
struct Entry {
    at: Word64,
    bytes_and_purpose: Word64,
    stamp: Word64,
}

/// A page of entries. Under the orphans' latch while in a list, else its holder's.
#[repr(C, align(64))]
pub(super) struct OrphanPage {
    /// Address of the next page, or 0.
    next: Word64,
    youngest_stamp: Word64,
    count: Word32,
    _pad: Word32,
    _pad2: Word64,
    entries: [Entry; ORPHANS_PER_PAGE],
}
const _: () = assert!(size_of::<OrphanPage>() <= ORPHAN_PAGE_BYTES);

#[repr(C, align(64))]
pub(super) struct Orphans {
    latch: Latch,
    /// Address of the page last put in, or 0.
    head: AtomicU64,
    /// Unused stock pages.
    stock: Word64,
    pub(super) blocks: Word64,
    pub(super) bytes: Word64,
    pub(super) lost_bytes: AtomicU64,
    pages: [OrphanPage; STOCK_PAGES],
}

impl Orphans {
    /// Nobody is in the middle of something.
    pub(super) fn is_at_rest(&self) -> bool {
        self.latch.is_free()
    }
}

impl OrphanPage {
    fn reset(&self) {
        self.next.set(0);
        self.youngest_stamp.set(0);
        self.count.set(0);
    }

    fn address(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }

    fn entry(&self, number: usize) -> Retired {
        let entry = &self.entries[number];
        let packed = entry.bytes_and_purpose.get();
        Retired {
            at: NonNull::new(entry.at.get() as *mut u8).expect("blocks are not at address 0"),
            bytes: (packed & ((1 << PURPOSE_SHIFT) - 1)) as usize,
            purpose: Purpose::ALL[(packed >> PURPOSE_SHIFT) as usize],
        }
    }
}

impl Memory {
    fn orphans(self) -> &'static Orphans {
        &self.header().orphans
    }

    pub(super) fn format_orphans(self) {
        let orphans = self.orphans();
        for page in &orphans.pages {
            page.reset();
            page.next.set(orphans.stock.get());
            orphans.stock.set(page.address());
        }
    }

    /// Counts a block that could not be noted down, and that nobody will free.
    pub(super) fn lose(self, retired: Retired) {
        self.orphans()
            .lost_bytes
            .fetch_add(retired.bytes as u64, Ordering::Relaxed);
    }

    /// Notes a block down. `new_page` is asked for memory, without the latch, when no page has room; false if there is
    /// none.
    #[must_use]
    pub(super) fn push_orphan(
        self,
        retired: Retired,
        stamp: u64,
        stock: Stock,
        mut new_page: impl FnMut() -> Option<NonNull<u8>>,
    ) -> bool {
        let orphans = self.orphans();
        let mut fresh: Option<&OrphanPage> = None;
        loop {
            let guard = orphans.latch.lock();
            if let Some(page) = fresh.take() {
                self.link_page(page);
            }
            let head = self.page(orphans.head.load(Ordering::Relaxed));
            let page = head.filter(|page| (page.count.get() as usize) < ORPHANS_PER_PAGE);
            let page = page.or_else(|| {
                let first = (stock == Stock::Use).then(|| orphans.stock.get())?;
                let page = self.page(first)?;
                orphans.stock.set(page.next.get());
                page.reset();
                self.link_page(page);
                Some(page)
            });
            if let Some(page) = page {
                let entry = &page.entries[page.count.get() as usize];
                entry.at.set(retired.at.addr().get() as u64);
                let purpose = (retired.purpose as u64) << PURPOSE_SHIFT;
                entry.bytes_and_purpose.set(retired.bytes as u64 | purpose);
                entry.stamp.set(stamp);
                page.count.add(1);
                page.youngest_stamp
                    .set(page.youngest_stamp.get().max(stamp));
                orphans.blocks.add(1);
                orphans.bytes.add(retired.bytes as u64);
                return true;
            }
            drop(guard);
            let Some(memory) = new_page() else {
                return false;
            };
            // SAFETY: a block of ORPHAN_PAGE_BYTES, 64-aligned, ours alone; a page consists of atomics only.
            let page: &'static OrphanPage = unsafe { memory.cast().as_ref() };
            page.reset();
            fresh = Some(page);
        }
    }

    /// Whether there is anything to collect; one plain load.
    pub(super) fn has_orphans(self) -> bool {
        self.orphans().head.load(Ordering::Relaxed) != 0
    }

    /// How many blocks there are, about.
    pub(super) fn orphan_blocks(self) -> usize {
        self.orphans().blocks.get() as usize
    }

    /// Hands some of what may be freed in epoch `now` to `free`: entries, and pages that came from the arena. Does
    /// nothing while another process is at it.
    pub(super) fn collect_orphans(self, now: u64, mut free: impl FnMut(Retired)) -> usize {
        let mut freed = 0;
        let mut taken = self.take_old_pages(now);
        while let Some(page) = self.page(taken) {
            taken = page.next.get();
            let count = page.count.get() as usize;
            for number in 0..count {
                free(page.entry(number));
            }
            freed += count;
            self.return_page(page, &mut free);
        }
        freed
    }

    /// Unlinks old pages; the result is the first of them.
    fn take_old_pages(self, now: u64) -> u64 {
        let orphans = self.orphans();
        let Some(_guard) = orphans.latch.try_lock() else {
            return 0;
        };
        let (mut taken, mut pages) = (0, 0);
        let mut previous: Option<&OrphanPage> = None;
        let mut next = orphans.head.load(Ordering::Relaxed);
        while let Some(page) = self.page(next) {
            next = page.next.get();
            if page.youngest_stamp.get() + EPOCHS_TO_SAFETY > now {
                previous = Some(page);
                continue;
            }
            match previous {
                Some(previous) => previous.next.set(next),
                None => orphans.head.store(next, Ordering::Relaxed),
            }
            page.next.set(taken);
            taken = page.address();
            orphans.blocks.sub(u64::from(page.count.get()));
            let bytes =
                (0..page.count.get() as usize).map(|number| page.entry(number).bytes as u64);
            orphans.bytes.sub(bytes.sum());
            pages += 1;
            if pages == PAGES_PER_VISIT {
                break;
            }
        }
        taken
    }

    fn return_page(self, page: &'static OrphanPage, free: &mut impl FnMut(Retired)) {
        let orphans = self.orphans();
        if orphans
            .pages
            .as_ptr_range()
            .contains(&std::ptr::from_ref(page))
        {
            let _guard = orphans.latch.lock();
            page.reset();
            page.next.set(orphans.stock.get());
            orphans.stock.set(page.address());
        } else {
            let at = NonNull::from(page).cast();
            free(Retired {
                at,
                bytes: ORPHAN_PAGE_BYTES,
                purpose: Purpose::Other,
            });
        }
    }

    fn link_page(self, page: &OrphanPage) {
        let orphans = self.orphans();
        page.next.set(orphans.head.load(Ordering::Relaxed));
        orphans.head.store(page.address(), Ordering::Relaxed);
    }

    /// The page at an address from one of the lists, none at 0.
    fn page(self, address: u64) -> Option<&'static OrphanPage> {
        let page = NonNull::new(address as *mut OrphanPage)?;
        debug_assert!(self.contains(page.cast()));
        // SAFETY: list heads and links hold 0 or addresses of pages, which stay pages while they are in a list.
        Some(unsafe { page.as_ref() })
    }
}
