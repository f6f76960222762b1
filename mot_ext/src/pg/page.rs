//! Pages of files that hold no tuples.
use pgrx::pg_sys;
use std::io;

/// Where a page's header says where its special space begins.
const SPECIAL: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_special);

/// A page, aligned as core asks for.
#[repr(C, align(8))]
pub struct Page(pub [u8; pg_sys::BLCKSZ as usize]);

impl Default for Page {
    fn default() -> Self {
        Page([0; pg_sys::BLCKSZ as usize])
    }
}

/// The first page of a file, with `content` in its special space, and with a checksum where the
/// cluster has them. An error if it is too long.
pub fn with_special(content: &[u8]) -> io::Result<Page> {
    let mut page = Page::default();
    let bytes = content
        .len()
        .next_multiple_of(pg_sys::MAXIMUM_ALIGNOF as usize);
    if bytes > page.0.len() / 2 {
        return Err(io::Error::other("too long for a page"));
    }
    let start = page.0.len() - bytes;
    let pointer = page.0.as_mut_ptr().cast();
    // SAFETY: a page of that size, aligned, of which the special space is half at most.
    unsafe { pg_sys::PageInit(pointer, page.0.len(), bytes) };
    page.0[start..][..content.len()].copy_from_slice(content);
    // SAFETY: as above.
    unsafe { pg_sys::PageSetChecksumInplace(page.0.as_mut_ptr().cast(), 0) };
    Ok(page)
}

/// The special space of a page; `None`: its header says nothing of one.
pub fn special(page: &Page) -> Option<&[u8]> {
    let start = u16::from_ne_bytes(*page.0[SPECIAL..].first_chunk()?);
    page.0.get(usize::from(start)..).filter(|_| start != 0)
}
