//! Pause points: named steps at which a test stops a process, to try a race at its worst moment.
//!
//! They exist only with debug assertions (the profiles `dev` and `checked`); elsewhere [`reach`] is
//! an empty inline function and neither names nor hook are compiled. The list below is the only
//! one: the engine's steps and those of the server's side.
//!
//! Protocol:
//! - A thread that wants to be stopped sets its hook ([`set_hook`]); it is called at every point
//!   the thread reaches. The hook belongs to the thread: helper threads, which must call nothing
//!   of PostgreSQL's, have none.
//! - Threads that replay have a hook of their own ([`set_replay_hook`]), which knows that. It is
//!   called at their point alone ([`reach_in_replay`]).
//! - No latch is held at a point: the hook may wait, and may call PostgreSQL. Being pinned is fine.
//! - At a point that is [`Raise::Allowed`] the hook may unwind with an error, as a `Clock` or a
//!   `Log` may; what is half done there is what an error leaves behind. At one that is
//!   [`Raise::Forbidden`] PostgreSQL has decided already: the hook must return.
//! - At one that is [`Raise::AsResult`] no process stops: there the disk can be made to refuse an
//!   operation ([`allowed`]), as a real one does, and the caller gets the error as its result.
//!   Nothing was done then.

#[cfg(debug_assertions)]
use std::cell::Cell;
use std::io;
#[cfg(debug_assertions)]
use std::sync::OnceLock;

/// Whether an error may come out of a point.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Raise {
    /// The code must survive an error there.
    Allowed,
    /// After PostgreSQL's decision, or in a process that has no transaction: only waiting.
    Forbidden,
    /// The operation there answers an error.
    AsResult,
}

macro_rules! points {
    ($($(#[$doc:meta])+ $point:ident = $name:literal, $raise:ident;)+) => {
        /// A step at which a test can stop a process.
        #[derive(Copy, Clone, Eq, PartialEq, Debug)]
        #[repr(u8)]
        pub enum Point { $($(#[$doc])+ $point,)+ }

        #[cfg(debug_assertions)]
        impl Point {
            /// All points.
            pub const ALL: &'static [Point] = &[$(Point::$point,)+];

            /// Its name in SQL.
            pub fn name(self) -> &'static str {
                match self { $(Point::$point => $name,)+ }
            }

            /// Whether an error may come out of it.
            pub fn raise(self) -> Raise {
                match self { $(Point::$point => Raise::$raise,)+ }
            }
        }
    };
}

points! {
    /// Rows are chosen that get a key; the log has nothing of it.
    KeysBeforeLog = "keys-before-log", Allowed;
    /// The log has the keys; the rows have not. Checkpoints wait.
    KeysBeforeRows = "keys-before-rows", Allowed;
    /// An index is published beside writers; no row is entered.
    BuildBeforeRows = "build-before-rows", Allowed;
    /// An index is built beside writers; duplicates are not looked for.
    BuildBeforeDuplicates = "build-before-duplicates", Allowed;
    /// An index built beside writers is complete; it is not ready yet.
    BuildBeforeReady = "build-before-ready", Allowed;
    /// Every writer enters an index and asks it; it is not validated.
    ValidateBeforeRows = "validate-before-rows", Allowed;
    /// A change found its row free; its version is not published.
    WriteBeforePublish = "write-before-publish", Allowed;
    /// A version is published; its index entries are not made.
    WriteBeforeEntries = "write-before-entries", Allowed;
    /// All rows with the key were resolved free; the entry is not in.
    EnterAfterResolving = "enter-after-judging", Allowed;
    /// A lock found its row free; its entry is not published.
    LockBeforePublish = "lock-before-publish", Allowed;
    /// A row's owner is known; the waiter is not in the row's queue.
    WaitBeforeQueue = "wait-before-queue", Allowed;
    /// At the head of the row's queue; not waiting for the owner yet.
    WaitBeforeOwner = "wait-before-owner", Allowed;
    /// The owner has ended; the row is not examined again.
    WaitAfterOwner = "wait-after-owner", Allowed;
    /// READ COMMITTED knows that the row has changed; its newest state is not locked.
    RecheckBeforeLock = "recheck-before-lock", Allowed;
    /// Entries are read from an index; their rows are not examined. Pinned.
    ScanAfterEntries = "scan-after-entries", Allowed;
    /// A scan of all rows is about to read some.
    ScanBeforeRows = "scan-before-rows", Allowed;
    /// Which rows the processes of a parallel query share is settled; none was examined.
    ScanBeforeSharing = "scan-before-sharing", Allowed;
    /// PRE_COMMIT: nothing is logged.
    CommitBeforeLog = "commit-before-log", Allowed;
    /// A record is in the WAL; its rows are not marked as logged. Checkpoints wait.
    CommitBeforeMarks = "commit-before-marks", Allowed;
    /// PRE_COMMIT is through: logged and marked; PostgreSQL has not committed.
    CommitAfterLog = "commit-after-log", Allowed;
    /// PostgreSQL has committed, and others see it so; no version has its hint.
    CommitBeforeHints = "commit-before-hints", Forbidden;
    /// A row has its hint, others may not.
    CommitBetweenHints = "commit-between-hints", Forbidden;
    /// All have their hints; what was dropped is not unlinked.
    CommitBeforeRelease = "commit-before-doom", Forbidden;
    /// Prepared for PostgreSQL; the session still has the transaction.
    PrepareBeforeGivingUp = "prepare-before-giving-up", Forbidden;
    /// PostgreSQL has aborted, and others see it so; nothing is taken back.
    AbortBeforeUndo = "abort-before-undo", Forbidden;
    /// An operation is taken back, others may not be.
    AbortBetweenRows = "abort-between-rows", Forbidden;
    /// Versions left their chain (CLEANING is set); their index entries are still there.
    UnlinkBeforeEntries = "unlink-before-entries", Forbidden;
    /// The entries are gone; CLEANING is set and the row id not given back.
    UnlinkBeforeRowId = "unlink-before-row-id", Forbidden;
    /// A dead row's tombstone left its chain; the row id is not on the free list.
    UnlinkBeforeFree = "unlink-before-free", Forbidden;
    /// The reclaimer knows the horizon; it has swept nothing.
    ReclaimAfterHorizon = "reclaim-after-horizon", Forbidden;
    /// The reclaimer has resolved a row; it has not pruned it. Pinned.
    ReclaimBeforePrune = "reclaim-before-prune", Forbidden;
    /// The reclaimer found a row quiescent; it has not looked again whether its KEYS_MOVED may be
    /// cleared. Pinned.
    ReclaimBeforeKeys = "reclaim-before-keys", Forbidden;
    /// The reclaimer is about to free dropped tables and indexes.
    ReclaimBeforeFree = "reclaim-before-doomed", Forbidden;
    /// A round of the reclaimer found nothing to do; no session can see yet that it sleeps.
    ReclaimBeforeNap = "reclaim-before-nap", Forbidden;
    /// A thread that replays has a record; it has applied nothing of it. Nothing else stops there.
    ReplayBeforeRecord = "replay-before-record", Forbidden;
    /// The checkpoint worker knows its redo position; it has examined no row.
    CheckpointAfterRedo = "checkpoint-after-redo", Allowed;
    /// A file of rows is written; it is to be made durable.
    CheckpointSyncRows = "checkpoint-sync-rows", AsResult;
    /// The files of rows are durable; their names are to be.
    CheckpointSyncRowsDirectory = "checkpoint-sync-rows-directory", AsResult;
    /// The manifest's draft is written; it is to be made durable.
    CheckpointSyncManifest = "checkpoint-sync-manifest", AsResult;
    /// The manifest has its name; that is to be made durable.
    CheckpointSyncManifestDirectory = "checkpoint-sync-manifest-directory", AsResult;
    /// The rows are written, some of transactions that may be open; the commit log is to be asked
    /// what has become of these.
    CheckpointBeforeOutcomes = "checkpoint-before-outcomes", Forbidden;
}

/// Whether a test wants the operation at a point refused.
#[cfg(debug_assertions)]
pub type Refuses = fn(Point) -> bool;

#[cfg(debug_assertions)]
thread_local! {
    static HOOK: Cell<Option<fn(Point)>> = const { Cell::new(None) };
    static REFUSES: Cell<Option<Refuses>> = const { Cell::new(None) };
}

/// What this thread does at every point from now on.
#[cfg(debug_assertions)]
pub fn set_hook(hook: Option<fn(Point)>) {
    HOOK.with(|this| this.set(hook));
}

/// This thread has reached a point.
#[cfg(debug_assertions)]
pub fn reach(point: Point) {
    debug_assert_eq!(
        crate::memory::latches_held(),
        0,
        "a pause point under a latch: {}",
        point.name()
    );
    if let Some(hook) = HOOK.with(Cell::get) {
        hook(point);
    }
}

/// Nothing, in builds that users run.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn reach(_: Point) {}

#[cfg(debug_assertions)]
static REPLAY_HOOK: OnceLock<fn()> = OnceLock::new();

/// What the threads of this process that replay do before each record. It calls nothing of
/// PostgreSQL's, and returns. The first one counts.
#[cfg(debug_assertions)]
pub fn set_replay_hook(hook: fn()) {
    REPLAY_HOOK.get_or_init(|| hook);
}

/// A thread that replays has reached [`Point::ReplayBeforeRecord`].
#[cfg(debug_assertions)]
pub(crate) fn reach_in_replay() {
    if let Some(hook) = REPLAY_HOOK.get() {
        hook();
    }
}

/// Nothing, in builds that users run.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn reach_in_replay() {}

/// Asked in this thread from now on whether the operation at a point is refused.
#[cfg(debug_assertions)]
pub fn set_refusals(refuses: Option<Refuses>) {
    REFUSES.with(|this| this.set(refuses));
}

/// Before an operation of the disk's: an error if a test wants it refused.
#[cfg(debug_assertions)]
pub fn allowed(point: Point) -> io::Result<()> {
    match REFUSES.with(Cell::get) {
        Some(refuses) if refuses(point) => Err(io::Error::from_raw_os_error(libc::EIO)),
        _ => Ok(()),
    }
}

/// Always, in builds that users run.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn allowed(_: Point) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_numbers_are_places_in_the_list() {
        let names: HashSet<_> = Point::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), Point::ALL.len());
        for (place, point) in Point::ALL.iter().enumerate() {
            assert_eq!(*point as usize, place);
        }
    }
}
