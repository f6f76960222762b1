//! Timelines: which one a position is on, and in which one's file of local WAL.
//!
//! What is before a fork is in files of two timelines: the new one begins with a copy of the
//! segment in which it forks. The old one's file may be gone by that name: a promotion with
//! archiving on calls it `.partial`. PostgreSQL's own replay looks for each segment in all
//! timelines of the history that it heads for, newest first; its routine for local WAL, which we
//! read with, knows only the timeline of the replay position.
use pgrx::pg_sys;
use std::ffi::{c_char, c_int};
use std::path::Path;

/// `TimeLineHistoryEntry` of `access/timeline.h`.
#[repr(C)]
struct HistoryEntry {
    timeline: pg_sys::TimeLineID,
    begin: u64,
    end: u64,
}

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn read_local_xlog_page_no_wait(
        state: *mut pg_sys::XLogReaderState,
        page: u64,
        bytes: c_int,
        record: u64,
        buffer: *mut c_char,
    ) -> c_int;
    fn wal_segment_open(
        state: *mut pg_sys::XLogReaderState,
        segment: u64,
        timeline: *mut pg_sys::TimeLineID,
    );
    fn wal_segment_close(state: *mut pg_sys::XLogReaderState);
    fn readTimeLineHistory(timeline: u32) -> *mut pg_sys::List;
    fn tliOfPointInHistory(position: u64, history: *mut pg_sys::List) -> u32;
}

/// The timeline of `position`, in the history of `timeline`. May raise; the history is
/// read from PGDATA into the current memory context.
pub fn timeline_of(position: u64, timeline: u32) -> u32 {
    // SAFETY: both take plain values and the list just made; errors pass the guard.
    #[allow(ffi_unwind_calls)]
    unsafe {
        let history = pg_sys::ffi::pg_guard_ffi_boundary(|| readTimeLineHistory(timeline));
        pg_sys::ffi::pg_guard_ffi_boundary(|| tliOfPointInHistory(position, history))
    }
}

/// PostgreSQL's own routine for reading local WAL, as bare function pointers for its reader, but
/// for how it finds a segment.
pub fn local_wal_routine() -> pg_sys::XLogReaderRoutine {
    pg_sys::XLogReaderRoutine {
        page_read: Some(read_local_xlog_page_no_wait),
        segment_open: Some(open_segment),
        segment_close: Some(wal_segment_close),
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn open_segment(
    state: *mut pg_sys::XLogReaderState,
    segment: u64,
    timeline: *mut pg_sys::TimeLineID,
) {
    // SAFETY: PostgreSQL's reader hands over itself and a place. The timeline that it asked for
    // stays there: it is what the reader compares with when it asks whether it has the file
    // already. Errors pass the guard.
    #[allow(ffi_unwind_calls)]
    unsafe {
        let bytes = u64::from((*state).segcxt.ws_segsize.unsigned_abs());
        let mut found = timeline_with(segment, *timeline, bytes);
        pg_sys::ffi::pg_guard_ffi_boundary(|| wal_segment_open(state, segment, &mut found));
    }
}

/// The timeline whose file has what `timeline` has in a segment: itself, or if there is no such
/// file the newest one of the history that recovery heads for whose fork is in the segment. May
/// raise.
///
/// Asked only for positions in that history: nothing is read that `timeline` has behind the fork.
fn timeline_with(segment: u64, timeline: u32, segment_bytes: u64) -> u32 {
    if is_there(segment, timeline, segment_bytes) {
        return timeline;
    }
    // SAFETY: a plain variable of this process: of the startup process, 0 in others.
    let target = unsafe { pg_sys::recoveryTargetTLI };
    if target <= timeline {
        return timeline;
    }
    // SAFETY: takes a plain value; the list just made, of entries as above, newest first. Errors
    // pass the guard.
    #[allow(ffi_unwind_calls)]
    let history: Vec<(u32, u64)> = unsafe {
        let history = pg_sys::ffi::pg_guard_ffi_boundary(|| readTimeLineHistory(target));
        let entry = |i: i32| {
            (*(*history).elements.add(i as usize))
                .ptr_value
                .cast::<HistoryEntry>()
        };
        (0..(*history).length)
            .map(|i| ((*entry(i)).timeline, (*entry(i)).begin))
            .collect()
    };
    if !history.iter().any(|&(of, _)| of == timeline) {
        return timeline;
    }
    history
        .iter()
        .filter(|&&(of, begin)| of > timeline && begin / segment_bytes == segment)
        .map(|&(of, _)| of)
        .find(|&of| is_there(segment, of, segment_bytes))
        .unwrap_or(timeline)
}

/// Whether `pg_wal` has a timeline's file of a segment.
fn is_there(segment: u64, timeline: u32, segment_bytes: u64) -> bool {
    let per_number = (1 << 32) / segment_bytes;
    let (high, low) = (segment / per_number, segment % per_number);
    Path::new(&format!("pg_wal/{timeline:08X}{high:08X}{low:08X}")).exists()
}
