//! Removes a transaction's own states from a row, all at once.
//!
//! They lie one below the other: while a transaction owns a row, no other transaction puts a state
//! on it, and only row locks come in between. Removed one by one, each of n states with a key of
//! its own would be searched among those left. That is n²/2 steps, in a commit, which cannot stop.
//!
//! What stays in between (locks, states that were rolled back before) divides the states into runs.
//! The removed states keep their own addresses, so a reader on one walks on. A run is walked after
//! it is unlinked. Others may remove what stays meanwhile, so no run is walked beyond its end.

use super::clean::{Uncounted, end_cleaning, leave, remove_entry, without_stale_lock_flag};
use crate::ids::RowId;
use crate::index::RemainingKeys;
use crate::key::KeyBuffer;
use crate::memory::Purpose;
use crate::pause::{Point, reach};
use crate::row::{Anchor, Head, VersionRef, flags};
use crate::session::Session;
use crate::sync::is_broken;
use crate::table::TableRef;
use std::sync::atomic::Ordering;

/// Versions taken out, and versions left, up to which each key of the former is looked for among
/// the latter.
const FEW: usize = 16;

/// What a version is to the code that takes states out of a row.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum Part {
    /// To be taken out.
    Meant,
    /// It stays.
    Kept,
    /// It stays, and so does all below it.
    End,
}

/// States to be taken out, one right below the other.
#[derive(Copy, Clone)]
pub(super) struct Run {
    pub(super) first: VersionRef,
    /// What follows the last of them.
    pub(super) end: Option<VersionRef>,
}

impl Run {
    fn iter(self) -> impl Iterator<Item = VersionRef> {
        std::iter::successors(Some(self.first), VersionRef::next)
            .take_while(move |version| Some(*version) != self.end)
    }
}

/// Runs that are taken out in one go. There is room for one, and with process memory for all.
#[derive(Default)]
pub(super) struct Runs {
    first: Option<Run>,
    more: Vec<Run>,
}

impl Runs {
    pub(super) fn one(run: Run) -> Runs {
        Runs {
            first: Some(run),
            more: Vec::new(),
        }
    }

    fn with_room_for(count: usize) -> Runs {
        let mut runs = Runs::default();
        // Without memory there are more rounds.
        let _: Result<(), _> = runs.more.try_reserve(count.saturating_sub(1));
        runs
    }

    /// Adds a run, if there is room. Allocates nothing.
    fn add(&mut self, run: Run) -> bool {
        if self.first.is_none() {
            self.first = Some(run);
            return true;
        }
        let has_room = self.more.len() < self.more.capacity();
        if has_room {
            self.more.push(run);
        }
        has_room
    }

    fn iter(&self) -> impl Iterator<Item = Run> {
        self.first.into_iter().chain(self.more.iter().copied())
    }

    fn versions(&self) -> impl Iterator<Item = VersionRef> {
        self.iter().flat_map(Run::iter)
    }
}

/// Finds the runs of a chain, which only lies still if it is latched. `false` from `each` ends it.
fn each_run(
    head: Head,
    part: impl Fn(VersionRef) -> Part,
    mut each: impl FnMut(Option<VersionRef>, Run) -> bool,
) {
    let mut above = None;
    let mut has_run = false;
    let mut at = head.version();
    while let Some(version) = at {
        match part(version) {
            Part::End => return,
            // Only locks and what was taken back come in between.
            Part::Kept if has_run && !may_lie_between(version) => return,
            Part::Kept => {
                above = Some(version);
                at = version.next();
            }
            Part::Meant => {
                at = version.next();
                let broken = is_broken("reclaim: what stays of own versions");
                while let Some(below) = at.filter(|below| {
                    part(*below) == Part::Meant || (broken && may_lie_between(*below))
                }) {
                    at = below.next();
                }
                has_run = true;
                let run = Run {
                    first: version,
                    end: at,
                };
                if !each(above, run) {
                    return;
                }
            }
        }
    }
}

fn may_lie_between(version: VersionRef) -> bool {
    version.flags() & (flags::LOCK_ONLY | flags::ABORTED) != 0
}

/// Takes the states of a row that `part` means out of its chain, with the index entries only they
/// needed, retires them, and gives the row id back if the chain is empty then. If another process
/// is cleaning the row they stay behind for the sweeper. `note` is called for each, latched, before
/// that, and may change the head's flags; what it does must not change `part`'s answer. Neither
/// asks a `Clock`. The caller is pinned, and the log is not being replayed.
pub(crate) fn take_states_out(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    part: impl Fn(VersionRef) -> Part,
    mut note: impl FnMut(&mut Head, VersionRef),
) {
    debug_assert!(session.local.is_pinned());
    let Some(anchor) = table.anchor(row_id) else {
        return;
    };
    let _charge = session.charge(table);
    loop {
        // Most operations on a row that was changed often find nothing more: the first one has
        // removed the states of all.
        let mut count = 0;
        each_run(anchor.head(), &part, |_, _| {
            count += 1;
            true
        });
        if count == 0 {
            return;
        }
        let mut taken = Runs::with_room_for(count);
        match cut_off(table, row_id, anchor, &part, &mut note, &mut taken) {
            Cut::Off { cleaning, all } => {
                finish(session, table, row_id, anchor, &taken, cleaning);
                // Another look would walk all that is below.
                if all {
                    return;
                }
            }
            Cut::Refused => {
                table.set_dirty(row_id);
                return;
            }
        }
    }
}

enum Cut {
    Off {
        cleaning: bool,
        /// None is left for another round.
        all: bool,
    },
    /// Another process is cleaning the row.
    Refused,
}

/// Takes runs out of the chain.
fn cut_off(
    table: TableRef,
    row_id: RowId,
    anchor: &Anchor,
    part: &impl Fn(VersionRef) -> Part,
    note: &mut impl FnMut(&mut Head, VersionRef),
    taken: &mut Runs,
) -> Cut {
    let mut latched = anchor.latch();
    let mut head = latched.head;
    let mut have_keys = false;
    each_run(head, part, |_, run| {
        for version in run.iter() {
            note(&mut head, version);
            have_keys |= version.has_keys();
        }
        true
    });
    let others_have_keys = || {
        // If KEYS_MOVED is not set they are the same keys.
        std::iter::successors(head.version(), VersionRef::next)
            .any(|version| version.has_keys() && part(version) != Part::Meant)
    };
    let cleaning = have_keys && (head.has(Head::KEYS_MOVED) || !others_have_keys());
    if cleaning && head.has(Head::CLEANING) {
        latched.head = head;
        return Cut::Refused;
    }
    let start = head;
    let mut all = true;
    each_run(start, part, |above, run| {
        let has_room = taken.add(run);
        all = has_room;
        if has_room {
            match above {
                Some(above) => above.replace_next(run.end),
                None => head = head.with_address(run.end.map_or(0, VersionRef::address)),
            }
        }
        has_room
    });
    head = without_stale_lock_flag(head);
    if cleaning {
        head = head.with_flags(Head::CLEANING);
    }
    if taken.first.is_some() {
        leave(table, row_id, latched, head);
    } else {
        latched.head = head;
    }
    Cut::Off { cleaning, all }
}

/// Removes the entries of what was cut off, retires it, and ends the CLEANING. Returns how many
/// versions it was.
pub(super) fn finish(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    anchor: &Anchor,
    taken: &Runs,
    cleaning: bool,
) -> usize {
    if cleaning {
        reach(Point::UnlinkBeforeEntries);
    }
    let complete = !cleaning || remove_all_entries(session, table, row_id, anchor, taken);
    let mut uncounted = Uncounted::default();
    let (mut removed, mut superseded) = (0, 0);
    for version in taken.versions() {
        removed += 1;
        superseded += i64::from(version.flags() & flags::ABORTED == 0);
        uncounted.add(version, false);
        // SAFETY: cut off under the latch, by us alone; what it points to stays while we are
        // pinned.
        unsafe {
            session
                .local
                .retire(version.block(), version.block_bytes(), Purpose::Rows)
        };
    }
    if cleaning {
        end_cleaning(table, row_id, anchor, complete);
    }
    if superseded > 0 {
        let stale = &table.counters().stale_versions;
        stale.fetch_sub(superseded, Ordering::Relaxed);
    }
    uncounted.take_back(table);
    removed
}

/// Removes the entries that only versions cut off needed; `false` if a key could not be computed.
fn remove_all_entries(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    anchor: &Anchor,
    taken: &Runs,
) -> bool {
    let versions = || taken.versions().filter(|version| version.has_keys());
    // Few among few are looked for sooner than gathered.
    let mut chain = std::iter::successors(anchor.head().version(), VersionRef::next);
    let are_many = versions().nth(FEW).is_some() && chain.nth(FEW).is_some();
    let mut key = KeyBuffer::new();
    let mut scratch = KeyBuffer::new();
    let mut complete = true;
    for index in table.all_indexes() {
        let definition = are_many.then(|| session.definition(index).ok()).flatten();
        let remaining = definition.and_then(|its| RemainingKeys::of(anchor.head(), its));
        for version in versions() {
            let keys = [&mut key, &mut scratch];
            let remaining = remaining.as_ref();
            let removed = remove_entry(session, table, row_id, version, index, keys, remaining);
            complete &= removed.is_ok();
        }
    }
    complete
}
