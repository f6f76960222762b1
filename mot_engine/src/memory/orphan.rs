//! Orphans: garbage that no process keeps for itself, in shared memory, to be freed by the process
//! that collects next.
//!
//! A process that leaves has its garbage here, and so has a session that may be idle from now on.
//! A retired block may still be read, so nothing is written into it: pages of their own note them.
//!
//! Contract:
//! - **The list** of pages is under one latch, and its holder examines a fixed number of
//!   pages. New pages and new notes come in at its tail, pages to be freed go out at its head. Head
//!   and tail are both 0 or neither is, and the tail's link is 0.
//! - **Only the tail is written to.** All other pages in the list stay as they are.
//! - **A page is freed as a whole**, when its youngest note may be. A visit stops at the first page
//!   that is too young. Pages of several processes are mixed, so an old one may lie behind a
//!   younger. All stamps in the list are at most the epoch of that moment. Two epochs later all
//!   pages of then are old, but the tail if it got new notes. So an old page waits two epochs at
//!   most.
//! - **A page in use by one process alone** is in no list: before it is linked, and after a visit
//!   took it out.
//! - **Memory.** The header brings a stock of pages, so that a process can leave a full arena, too.
//!   Further pages of one that leaves come from the arena, its reserve included. Only when all that
//!   is used up is garbage given up, and counted as lost.
//! - **A process that only may be idle** gets no page of the stock, and keeps its garbage if it
//!   gets no page. It gets one while much memory is free, twice the reserve, or while orphans have
//!   few pages: half the reserve in all. So its notes take that much from others at most where
//!   memory is short. No process holds a latch between the question and the allocation: each
//!   process exceeds by one page at most.

use super::account::{PURPOSES, Purpose};
use super::arena::Memory;
use super::chunk::SPAN_BYTES;
use super::epoch::EPOCHS_TO_SAFETY;
use super::garbage::Retired;
use super::latch::Latch;
use super::size_class::BLOCK_ALIGN;
use super::word::{Word32, Word64};
use crate::steps::step;
use crate::sync::is_broken;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a page, a size class.
pub(super) const ORPHAN_PAGE_BYTES: usize = 4096;
/// Blocks that a page names.
pub(super) const ORPHANS_PER_PAGE: usize = if cfg!(feature = "model") {
    // Few, so that models reach the ends of pages.
    2
} else {
    (ORPHAN_PAGE_BYTES - 32) / size_of::<Word64>()
};
/// Pages in the header: room for 32,512 blocks, what some hundred processes leave behind.
const STOCK_PAGES: usize = 64;
/// Pages freed by one visit: bounds what one process does for others.
pub(super) const PAGES_PER_VISIT: usize = 2;

/// A note is a block's address, whose low bits hold the purpose. The span directory knows the size.
const PURPOSE_BITS: u64 = BLOCK_ALIGN as u64 - 1;
const _: () = assert!(PURPOSES <= BLOCK_ALIGN);

/// A page of notes. Under the orphans' latch while in a list, else its holder's.
#[repr(C, align(64))]
pub(super) struct OrphanPage {
    /// Address of the next page, or 0.
    next: Word64,
    youngest_stamp: Word64,
    /// Of all its blocks.
    bytes: Word64,
    count: Word32,
    _pad: Word32,
    notes: [Word64; ORPHANS_PER_PAGE],
}
const _: () = assert!(size_of::<OrphanPage>() <= ORPHAN_PAGE_BYTES);

#[repr(C, align(64))]
pub(super) struct Orphans {
    latch: Latch,
    /// Address of the page put in first, or 0.
    head: AtomicU64,
    /// Address of the page put in last, or 0.
    tail: Word64,
    /// Unused stock pages.
    stock: Word64,
    /// Pages in the list that are not of the stock.
    pages_of_arena: Word64,
    pub(super) blocks: Word64,
    pub(super) bytes: Word64,
    pub(super) lost_bytes: AtomicU64,
    pages: [OrphanPage; STOCK_PAGES],
}

impl Orphans {
    /// No process is in the middle of a change.
    pub(super) fn is_quiescent(&self) -> bool {
        self.latch.is_free()
    }
}

impl OrphanPage {
    fn reset(&self) {
        self.next.set(0);
        self.youngest_stamp.set(0);
        self.bytes.set(0);
        self.count.set(0);
    }

    fn is_full(&self) -> bool {
        self.count.get() as usize == ORPHANS_PER_PAGE
    }

    fn note(&self, retired: Retired, stamp: u64) {
        let address = retired.at.addr().get() as u64;
        debug_assert_eq!(address & PURPOSE_BITS, 0);
        let note = address | retired.purpose as u64;
        self.notes[self.count.get() as usize].set(note);
        self.count.add(1);
        self.bytes.add(retired.bytes as u64);
        let youngest = self.youngest_stamp.get().max(stamp);
        if !is_broken("orphans: the youngest stamp of a page") || self.count.get() == 1 {
            self.youngest_stamp.set(youngest);
        }
    }

    fn address(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
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

    /// Counts a block that could not be noted down, and that no process will free.
    pub(super) fn lose(self, retired: Retired) {
        self.orphans()
            .lost_bytes
            .fetch_add(retired.bytes as u64, Ordering::Relaxed);
    }

    /// Notes a block down. `new_page` is asked for memory, without the latch, when no page has
    /// room; false if there is none.
    #[must_use]
    pub(super) fn push_orphan(
        self,
        retired: Retired,
        stamp: u64,
        mut new_page: impl FnMut() -> Option<NonNull<u8>>,
    ) -> bool {
        let orphans = self.orphans();
        let mut fresh: Option<&OrphanPage> = None;
        loop {
            let guard = orphans.latch.lock();
            if let Some(page) = fresh.take() {
                self.link_page(page);
            }
            let tail = self.page(orphans.tail.get());
            let page = tail.filter(|page| !page.is_full()).or_else(|| {
                let page = self.page(orphans.stock.get())?;
                orphans.stock.set(page.next.get());
                page.reset();
                self.link_page(page);
                Some(page)
            });
            if let Some(page) = page {
                page.note(retired, stamp);
                orphans.blocks.add(1);
                orphans.bytes.add(retired.bytes as u64);
                return true;
            }
            drop(guard);
            let Some(memory) = new_page() else {
                return false;
            };
            fresh = Some(empty_page(memory));
        }
    }

    /// Notes down in a page of the arena what `next` gives, with its stamps, until there is no more
    /// of it or no more room.
    pub(super) fn push_orphan_page(
        self,
        memory: NonNull<u8>,
        mut next: impl FnMut() -> Option<(Retired, u64)>,
    ) {
        let page = empty_page(memory);
        while !page.is_full()
            && let Some((retired, stamp)) = next()
        {
            page.note(retired, stamp);
        }
        let orphans = self.orphans();
        let _guard = orphans.latch.lock();
        self.link_page(page);
        orphans.blocks.add(u64::from(page.count.get()));
        orphans.bytes.add(page.bytes.get());
    }

    /// Whether one that could keep its garbage may take a page of the arena to note it down in.
    pub(super) fn spares_orphan_page(self) -> bool {
        let reserve = self.reserve_spans();
        let pages_max = reserve / 2 * (SPAN_BYTES / ORPHAN_PAGE_BYTES) as u64;
        self.header().chunk_pool.spans_free.get() >= 2 * reserve
            || self.orphans().pages_of_arena.get() < pages_max
    }

    /// Whether there is anything to collect; one plain load.
    pub(super) fn has_orphans(self) -> bool {
        self.orphans().head.load(Ordering::Relaxed) != 0
    }

    /// How many blocks there are, about.
    pub(super) fn orphan_blocks(self) -> usize {
        self.orphans().blocks.get() as usize
    }

    /// Hands some of what may be freed in epoch `now` to `free`: blocks, and pages that came from
    /// the arena. Does nothing while another process is at it.
    pub(super) fn collect_orphans(self, now: u64, mut free: impl FnMut(Retired)) -> usize {
        let mut freed = 0;
        let mut taken = self.take_old_pages(now);
        while let Some(page) = self.page(taken) {
            taken = page.next.get();
            let notes = &page.notes[..page.count.get() as usize];
            notes.iter().for_each(|note| free(self.noted(note.get())));
            freed += notes.len();
            self.return_page(page, &mut free);
        }
        freed
    }

    /// The block that a note is about: its span keeps its size until all its blocks are free.
    fn noted(self, note: u64) -> Retired {
        let at = (note & !PURPOSE_BITS) as *mut u8;
        let at = NonNull::new(at).expect("blocks are not at address 0");
        Retired {
            at,
            bytes: self.bytes_in_use(at),
            purpose: Purpose::ALL[(note & PURPOSE_BITS) as usize],
        }
    }

    /// Takes old pages out at the head; the result is the first of them.
    fn take_old_pages(self, now: u64) -> u64 {
        let orphans = self.orphans();
        let Some(_guard) = orphans.latch.try_lock() else {
            return 0;
        };
        let first = orphans.head.load(Ordering::Relaxed);
        let mut last: Option<&OrphanPage> = None;
        let mut next = first;
        for _ in 0..PAGES_PER_VISIT {
            step();
            let Some(page) = self.page(next) else {
                break;
            };
            let is_young = page.youngest_stamp.get() + EPOCHS_TO_SAFETY > now;
            if is_young && !is_broken("orphans: the stop at a young page") {
                break;
            }
            orphans.blocks.sub(u64::from(page.count.get()));
            orphans.bytes.sub(page.bytes.get());
            if !self.is_of_stock(page) {
                orphans.pages_of_arena.sub(1);
            }
            next = page.next.get();
            last = Some(page);
        }
        let Some(last) = last else {
            return 0;
        };
        last.next.set(0);
        orphans.head.store(next, Ordering::Relaxed);
        if next == 0 && !is_broken("orphans: the tail of an emptied list") {
            orphans.tail.set(0);
        }
        first
    }

    fn return_page(self, page: &'static OrphanPage, free: &mut impl FnMut(Retired)) {
        let orphans = self.orphans();
        if self.is_of_stock(page) {
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

    fn is_of_stock(self, page: &OrphanPage) -> bool {
        let stock = self.orphans().pages.as_ptr_range();
        stock.contains(&std::ptr::from_ref(page))
    }

    /// Puts a page in at the tail. Under the latch.
    fn link_page(self, page: &OrphanPage) {
        let orphans = self.orphans();
        page.next.set(0);
        match self.page(orphans.tail.get()) {
            Some(tail) => tail.next.set(page.address()),
            None => orphans.head.store(page.address(), Ordering::Relaxed),
        }
        orphans.tail.set(page.address());
        if !self.is_of_stock(page) {
            orphans.pages_of_arena.add(1);
        }
    }

    /// The page at an address from one of the lists, none at 0.
    fn page(self, address: u64) -> Option<&'static OrphanPage> {
        let page = NonNull::new(address as *mut OrphanPage)?;
        debug_assert!(self.contains(page.cast()));
        // SAFETY: list heads and links hold 0 or addresses of pages, which stay pages while they
        // are in a list.
        Some(unsafe { page.as_ref() })
    }
}

/// A page without notes, in memory of the arena that is the caller's alone.
fn empty_page(memory: NonNull<u8>) -> &'static OrphanPage {
    // SAFETY: a block of ORPHAN_PAGE_BYTES, 64-aligned, ours alone; a page consists of atomics
    // only.
    let page: &'static OrphanPage = unsafe { memory.cast().as_ref() };
    page.reset();
    page
}
