//! Whether another row already has the key. Asked of each row id in an entry, before the leaf is
//! latched.

use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::key::{IndexDefinition, KeyBuffer, encode_row_if_any};
use crate::row::{Anchor, Head, TxnStatus, resolve_maker};
use crate::table::TableRef;
use std::cell::Cell;

/// What a candidate means for an inserter of the key.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum Candidate {
    /// No live version has the key.
    Free,
    /// An unfinished transaction decides.
    Busy(Xid),
    /// A live version has the key.
    Taken,
}

/// Resolves one row against a key (the rule of _bt_check_unique with a dirty snapshot). The head it
/// was resolved at is returned: the answer holds while the head is the same. That a key is taken is
/// final, so it is said of a chain that still is the same afterwards: a transaction may have put
/// another state on top before it ended, and then the one that was examined never was the row's.
pub(crate) fn resolve_candidate(
    anchor: &Anchor,
    clock: &impl Clock,
    definition: &IndexDefinition,
    key: &[u8],
    scratch: &mut KeyBuffer,
) -> Result<(Candidate, Head), EngineError> {
    loop {
        let (candidate, head) = resolve_chain(anchor, clock, definition, key, scratch)?;
        if candidate != Candidate::Taken || anchor.head().same_chain(head) {
            return Ok((candidate, head));
        }
    }
}

/// Resolves a chain as it was a moment ago.
fn resolve_chain(
    anchor: &Anchor,
    clock: &impl Clock,
    definition: &IndexDefinition,
    key: &[u8],
    scratch: &mut KeyBuffer,
) -> Result<(Candidate, Head), EngineError> {
    let head = anchor.head();
    let mut at = head.version();
    let mut running: Option<Xid> = None;
    let mut key_below_running = false;
    while let Some(version) = at {
        at = version.next();
        if version.is_lock() {
            continue;
        }
        let status = resolve_maker(version, clock);
        if status == TxnStatus::Aborted {
            continue;
        }
        let has_key = !version.is_tombstone() && {
            encode_row_if_any(definition, version.body(), scratch)?;
            scratch.as_slice() == key
        };
        match (status, running) {
            (TxnStatus::Running, _) => {
                running.get_or_insert(version.xid());
                key_below_running |= has_key;
            }
            (TxnStatus::Committed | TxnStatus::Mine, None) => {
                let candidate = if has_key {
                    Candidate::Taken
                } else {
                    Candidate::Free
                };
                return Ok((candidate, head));
            }
            (TxnStatus::Committed | TxnStatus::Mine, Some(_)) => {
                key_below_running |= has_key;
                break;
            }
            (TxnStatus::Aborted, _) => unreachable!("passed over above"),
        }
    }
    let candidate = match running {
        Some(xid) if key_below_running => Candidate::Busy(xid),
        _ => Candidate::Free,
    };
    Ok((candidate, head))
}

/// The heads that candidates were resolved free at, in the order in which an entry names them: each
/// is found where the one before was.
#[derive(Default)]
pub(crate) struct ResolvedHeads {
    heads: Vec<(RowId, Head)>,
    /// Behind the one found last.
    next: Cell<usize>,
}

impl ResolvedHeads {
    /// Remembers the head of a row id that has none yet.
    pub(crate) fn push(&mut self, row_id: RowId, head: Head) -> Result<(), EngineError> {
        self.heads
            .try_reserve(1)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        self.heads.push((row_id, head));
        Ok(())
    }

    /// The head at which the row id was resolved free, if its chain still is the one resolved.
    /// Usable under a latch.
    pub(crate) fn still_free(&self, table: TableRef, row_id: RowId) -> Option<Head> {
        let now = table.anchor(row_id).map_or(Head::empty(), Anchor::head);
        if now.is_empty() {
            return Some(now);
        }
        let (before, after) = self.heads.split_at(self.next.get().min(self.heads.len()));
        let mut in_turn = after.iter().chain(before);
        let found = in_turn.position(|(known, head)| {
            crate::steps::step();
            *known == row_id && head.same_chain(now)
        })?;
        self.next
            .set((self.next.get() + found) % self.heads.len() + 1);
        Some(now)
    }
}
