//! Epochs: when no process can be reading a retired block any more.
//!
//! Contract, after Fraser and crossbeam-epoch, with LMDB's idea of a reader table in shared memory:
//! - A reader *pins*: it publishes the global epoch in its line of the table, then a full fence,
//!   and only then follows shared pointers. It unpins with a release store.
//! - A remover makes a block unreachable first, then retires it. A retired block is stamped with
//!   the global epoch read after a full fence that follows the removal.
//! - The global epoch moves from e to e + 1 only if every pinned process is pinned in e. So
//!   a process that could still hold a pointer to a block of e is gone when the epoch is e + 2.
//! - Lines are claimed and released by their process alone. The table never shrinks; lines are
//!   claimed lowest first, and a scan stops behind the highest line ever claimed.

use super::account::EpochReport;
use super::arena::{Memory, Padded};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, is_broken};

/// Processes and threads that can use the arena at once: PostgreSQL's own practical bound on
/// connections, 128 KiB.
pub const EPOCH_PARTICIPANTS_MAX: usize = 2048;

/// Epochs after which a retired block is unreachable.
pub(super) const EPOCHS_TO_SAFETY: u64 = 2;

/// The first epoch; 0 in a line means "not pinned".
const FIRST_EPOCH: u64 = 1;

/// Every line of the epoch table is taken that the caller may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {max} processes or threads use the arena at once")]
pub struct TooManyParticipants {
    /// The lines that it may have.
    pub max: usize,
}

/// One line: written by its owner alone.
#[repr(C, align(64))]
pub(super) struct Participant {
    /// The epoch its owner is pinned in, or 0.
    pinned: AtomicU64,
    /// Process id of the owner, or 0.
    owner: AtomicU32,
}
const _: () = assert!(size_of::<Participant>() == 64);

/// The table in the header.
#[repr(C, align(64))]
pub(super) struct EpochTable {
    global: Padded<AtomicU64>,
    /// Lines from here on were never claimed.
    end: Padded<AtomicU32>,
    participants: [Participant; EPOCH_PARTICIPANTS_MAX],
}

impl Participant {
    /// Publishes `epoch`. Afterwards shared pointers may be followed.
    #[inline]
    pub(super) fn pin(&self, epoch: u64) {
        if is_broken("epochs: the fence of a pin") {
            self.pinned.store(epoch, Ordering::Relaxed);
        } else if cfg!(target_arch = "x86_64") {
            // A locked exchange is a full fence here and about half the price of mfence (crossbeam
            // does the same).
            self.pinned.swap(epoch, Ordering::SeqCst);
            std::sync::atomic::compiler_fence(Ordering::SeqCst);
        } else {
            self.pinned.store(epoch, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    }

    /// Ends the pin. Shared pointers got under it are dead.
    #[inline]
    pub(super) fn unpin(&self) {
        self.pinned.store(0, Ordering::Release);
    }
}

impl EpochTable {
    /// The epoch to pin in. May be old by the time it is published: that only holds the epoch back.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.global.0.load(Ordering::Relaxed)
    }

    /// The stamp for blocks made unreachable before this call.
    pub(super) fn stamp(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.global.0.load(Ordering::Relaxed)
    }

    /// Advances the epoch if every process allows it. What was stamped `EPOCHS_TO_SAFETY` before
    /// the result is unreachable.
    pub(super) fn try_advance(&self) -> u64 {
        let epoch = self.global.0.load(Ordering::Acquire);
        fence(Ordering::SeqCst);
        let end = self.end.0.load(Ordering::Relaxed) as usize;
        for participant in &self.participants[..end] {
            let pinned = participant.pinned.load(Ordering::Relaxed);
            if pinned != 0 && pinned != epoch && !is_broken("epochs: waiting for who is pinned") {
                return epoch;
            }
        }
        // A process seen unpinned is done with its reads before we continue.
        fence(Ordering::Acquire);
        match self
            .global
            .0
            .compare_exchange(epoch, epoch + 1, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => epoch + 1,
            Err(moved) => moved,
        }
    }
}

impl Memory {
    pub(super) fn format_epochs(self) {
        self.header()
            .epochs
            .global
            .0
            .store(FIRST_EPOCH, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn epochs(self) -> &'static EpochTable {
        &self.header().epochs
    }

    /// Takes the lowest free line for this process, of the first `max`.
    pub(super) fn claim_participant(
        self,
        max: usize,
    ) -> Result<&'static Participant, TooManyParticipants> {
        let table = self.epochs();
        for (number, participant) in table.participants.iter().take(max).enumerate() {
            let claimed = participant.owner.load(Ordering::Relaxed) == 0
                && participant
                    .owner
                    .compare_exchange(0, std::process::id(), Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok();
            if claimed {
                if !is_broken("epochs: telling of a new participant") {
                    table.end.0.fetch_max(number as u32 + 1, Ordering::SeqCst);
                }
                return Ok(participant);
            }
        }
        Err(TooManyParticipants { max })
    }

    /// Gives a line back.
    pub(super) fn release_participant(self, participant: &Participant) {
        participant.unpin();
        participant.owner.store(0, Ordering::Release);
    }

    pub(super) fn epoch_report(self) -> EpochReport {
        let table = self.epochs();
        let end = table.end.0.load(Ordering::Relaxed) as usize;
        let lines = &table.participants[..end];
        let pinned = lines.iter().map(|line| line.pinned.load(Ordering::Relaxed));
        let owned = lines
            .iter()
            .filter(|line| line.owner.load(Ordering::Relaxed) != 0);
        let orphans = &self.header().orphans;
        EpochReport {
            epoch: table.now(),
            oldest_pinned: pinned.filter(|&epoch| epoch != 0).min(),
            participants: owned.count() as u64,
            orphan_blocks: orphans.blocks.get(),
            orphan_bytes: orphans.bytes.get(),
            lost_bytes: orphans.lost_bytes.load(Ordering::Relaxed),
        }
    }
}
