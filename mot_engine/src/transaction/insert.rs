//! New rows.

use super::{Kind, Transaction};
use crate::errors::EngineError;
use crate::ids::{CommandId, Ordinal, RowId, Xid};
use crate::limits::ROW_BYTES_MAX;
use crate::memory::{Purpose, Urgency};
use crate::row::{BODY_BYTES_MIN, Head, STAMP_BYTES, VersionRef, block_bytes, flags};
use crate::session::Session;
use crate::table::TableRef;
use std::sync::atomic::Ordering;

impl Transaction {
    /// Puts a new row under a free row id. No other transaction sees it before commit; `enter`
    /// makes its index entries.
    pub fn insert(
        &mut self,
        session: &Session,
        table: TableRef,
        body: &[u8],
        xid: Xid,
        cid: CommandId,
    ) -> Result<(RowId, VersionRef), EngineError> {
        check_length(body)?;
        self.begin_operation(table.key(), xid)?;
        let _charge = session.charge(table);
        let _pin = session.local.pin();
        let row_id = session
            .batches
            .borrow_mut()
            .take(&session.local, session.catalog(), table)?;
        let bytes = block_bytes(body.len());
        let block = match session
            .local
            .allocate(bytes, Purpose::Rows, Urgency::Ordinary)
        {
            Ok(block) => block,
            Err(full) => {
                crate::table::free_row_id(table, row_id);
                return Err(full.into());
            }
        };
        // SAFETY: the block is fresh and large enough; the body's length was checked.
        let version = unsafe { VersionRef::write(block, body, xid, cid, flags::KEYS_CHANGED) };
        version.put_ordinal(Ordinal(0));
        let anchor = table
            .anchor(row_id)
            .expect("a row id that was handed out has an anchor");
        debug_assert!(anchor.head().is_empty() && !anchor.head().is_free());
        // The row id is ours. Only a process that cleans the former row too late may hold the latch
        // for a moment.
        while !anchor.publish(Head::empty(), Head::empty().with_address(version.address())) {
            anchor.wait_unlatched();
        }
        self.push(Kind::Insert, table, row_id, version.address());
        if table.storage().created.load(Ordering::Relaxed) != 0 {
            self.note_own_insert(table, xid);
        }
        Ok((row_id, version))
    }
}

pub(super) fn check_length(body: &[u8]) -> Result<(), EngineError> {
    let bytes = STAMP_BYTES + body.len();
    if bytes > ROW_BYTES_MAX {
        return Err(EngineError::RowTooLong {
            bytes,
            max: ROW_BYTES_MAX,
        });
    }
    if body.len() < BODY_BYTES_MIN {
        return Err(EngineError::Corrupt {
            what: "a tuple shorter than its header",
        });
    }
    Ok(())
}
