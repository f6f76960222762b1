//! Walking rows for the keys of one index.

use super::keys::{Keys, Origin, Sorter};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::index::entry::append_row_id;
use crate::key::{FixedKey, IndexDefinition, KeyBuffer, encode_row, encode_row_if_any, is_outside};
use crate::row::{Anchor, Head, TxnStatus, VersionRef, resolve_maker, states_from};
use crate::session::Session;
use crate::table::{EntryForm, IndexRef, TableRef};
use std::ops::Range;

/// Row ids walked between two pins: memory retired meanwhile must not wait for a whole table.
pub(super) const ROW_IDS_PER_PIN: u64 = 1024;

pub(super) struct Collector<'a> {
    table: TableRef,
    index: IndexRef,
    definition: &'a IndexDefinition,
    fixed: Option<FixedKey>,
    /// Rows' newest states may have keys that are too long. Where the index is made they are
    /// refused; of older states it minds none.
    is_recovery: bool,
    /// What a committed transaction below this superseded is seen by no snapshot.
    horizon: Xid,
    key: KeyBuffer,
    /// Keys of a row with several versions.
    known: Vec<Vec<u8>>,
    /// A state without a key was met that a snapshot may see.
    pub(super) has_met_keyless: bool,
}

impl<'a> Collector<'a> {
    pub(super) fn new(
        session: &'a Session,
        table: TableRef,
        index: IndexRef,
        is_recovery: bool,
    ) -> Result<Self, EngineError> {
        let definition = session.definition(index)?;
        Ok(Collector {
            table,
            index,
            definition,
            fixed: FixedKey::of(definition),
            is_recovery,
            horizon: session.horizon(),
            key: KeyBuffer::new(),
            known: Vec::new(),
            has_met_keyless: false,
        })
    }

    /// The keys of about `count` rows all over the table, sorted, and their length in bytes.
    pub(super) fn sample(
        &mut self,
        session: &Session,
        count: usize,
    ) -> Result<(Keys, usize), EngineError> {
        let mut keys = Keys::default();
        let mut bytes = 0;
        let end = self.table.row_ids_end().0;
        let step = (end / count.max(1) as u64).max(1);
        for row_id in (0..end).step_by(step as usize).map(RowId) {
            let _pin = session.local.pin();
            let Some(anchor) = self.table.anchor(row_id) else {
                continue;
            };
            let newest = versions(anchor).find(|version| !version.is_tombstone());
            if let Some(version) = newest
                && let Some(pointed) = self.encode(row_id, version, false)?
            {
                let origin = Origin {
                    row_id,
                    live: false,
                    pointed,
                };
                keys.push(self.key.as_slice(), origin)?;
                bytes += self.key.len();
            }
        }
        keys.sort(&mut Sorter::default());
        Ok((keys, bytes))
    }

    /// Gives every key of the rows.
    pub(super) fn walk(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        row_ids: Range<u64>,
        mut take: impl FnMut(&[u8], Origin) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let _pin = session.local.pin();
        for row_id in row_ids.map(RowId) {
            if let Some(anchor) = self.table.anchor(row_id) {
                self.row(row_id, anchor, clock, &mut take)?;
            }
        }
        Ok(())
    }

    /// Gives every key of a row. The caller is pinned, or nothing else uses the row.
    pub(super) fn row(
        &mut self,
        row_id: RowId,
        anchor: &Anchor,
        clock: &impl Clock,
        take: &mut impl FnMut(&[u8], Origin) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        self.known.clear();
        let mut keys = 0;
        let mut has_keyless = false;
        let mut is_outside_once = false;
        let mut newest = true;
        let mut is_needed = true;
        for version in versions(anchor) {
            let status = resolve_maker(version, clock);
            if status == TxnStatus::Aborted {
                continue;
            }
            let is_newest = std::mem::replace(&mut newest, false);
            let live = is_newest && status != TxnStatus::Running;
            // Under a newer state of its own transaction, which alone would see it, it is not.
            let was_needed = is_needed && (is_newest || status != TxnStatus::Mine);
            is_needed &= status != TxnStatus::Committed || version.xid() >= self.horizon;
            if version.is_tombstone() {
                continue;
            }
            let Some(pointed) = self.encode(row_id, version, is_newest)? else {
                if is_outside(self.definition, version.body()) {
                    is_outside_once = true;
                    continue;
                }
                has_keyless = true;
                self.has_met_keyless |= was_needed;
                continue;
            };
            let key = self.key.as_slice();
            if self.known.iter().any(|known| known == key) {
                continue;
            }
            let origin = Origin {
                row_id,
                live,
                pointed,
            };
            take(key, origin)?;
            keys += 1;
            if version.next().is_some() {
                self.known
                    .try_reserve(1)
                    .map_err(|_| EngineError::OutOfProcessMemory)?;
                self.known.push(key.to_vec());
            }
        }
        if keys > 1 || has_keyless || (keys > 0 && is_outside_once) {
            // Changed while no index minded: from now on scans must compare, and pruning must
            // remove the entries of old versions.
            let mut latched = anchor.latch();
            latched.head = latched.head.with_flags(Head::KEYS_MOVED);
        }
        Ok(())
    }

    /// Encodes the version's key; whether it is pointed. `None`: it has none. A key that is too
    /// long is refused where the index `has_to_take` the version.
    fn encode(
        &mut self,
        row_id: RowId,
        version: VersionRef,
        has_to_take: bool,
    ) -> Result<Option<bool>, EngineError> {
        let body = version.body();
        let fixed = self.fixed.as_ref();
        let has_null = if fixed.is_some_and(|fixed| fixed.encode(body, &mut self.key)) {
            false
        } else if has_to_take && !self.is_recovery {
            encode_row(self.definition, body, &mut self.key)?.0
        } else {
            encode_row_if_any(self.definition, body, &mut self.key)?.0
        };
        if self.key.is_empty() {
            // The maker of the index can give its keys the mark. A standby's older states, and a
            // failed build's, have no entry.
            return match has_null && self.definition.computed.is_none() && !self.is_recovery {
                true => Err(EngineError::NullWithoutMark),
                false => Ok(None),
            };
        }
        let pointed = self.index.form(has_null) == EntryForm::Pointed;
        if !pointed {
            append_row_id(&mut self.key, row_id)?;
        }
        Ok(Some(pointed))
    }
}

/// The states in a chain, newest first.
fn versions(anchor: &Anchor) -> impl Iterator<Item = VersionRef> {
    states_from(anchor.head().version())
}
