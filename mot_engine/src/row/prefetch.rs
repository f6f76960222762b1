//! Prefetches anchors and versions: a scan knows which rows come next, and most of a row's cost is
//! waiting for its cache lines.
//!
//! A prefetch of any address is harmless, so an anchor is enough: its row need not be there any
//! more. Only a prefetch of what is below a version follows that version, and its caller is
//! pinned.

use super::anchor::Anchor;
use super::version::{Version, VersionRef};

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;
/// Lines of a version asked for: its header, which is the tuple's, and the first columns.
const VERSION_LINES: usize = 2;

#[inline]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch neither faults nor changes anything, whatever the address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for an anchor.
#[inline]
pub(crate) fn prefetch_anchor(anchor: &Anchor) {
    prefetch((&raw const *anchor).cast());
}

/// Asks for the newest version of a row whose anchor should be here by now.
#[inline]
pub(crate) fn prefetch_version(anchor: &Anchor) {
    prefetch_lines(anchor.head().address());
}

/// Asks for a version, with its first columns.
#[inline]
pub(crate) fn prefetch_state(version: VersionRef) {
    prefetch_lines(version.address());
}

/// The lines of a version at an address; 0 is none.
#[inline]
fn prefetch_lines(address: u64) {
    if address != 0 {
        let at = address as *const u8;
        for line in 0..VERSION_LINES {
            prefetch(at.wrapping_add(line * LINE_BYTES));
        }
    }
}

/// Asks for the header of a version that is, or was, at an address.
#[inline]
pub(crate) fn prefetch_at(address: u64) {
    prefetch(address as *const u8);
}

/// Asks for the header of the version below the newest one of a row; both the anchor and the newest
/// one should be here by now. The caller is pinned.
#[inline]
pub(crate) fn prefetch_below(anchor: &Anchor) {
    if let Some(below) = anchor.head().version().and_then(|newest| newest.next()) {
        prefetch_at(below.address());
    }
}

/// Asks for the header alone of the newest version, of a row whose anchor is here.
#[inline]
pub(crate) fn prefetch_header(anchor: &Anchor) {
    prefetch_at(anchor.head().address());
}

const _: () = assert!(size_of::<Version>() < LINE_BYTES);
