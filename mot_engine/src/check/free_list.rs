//! The list of free row ids.

use super::{Check, Problem, STEP};
use crate::clock::{Clock, check_cancelled};
use crate::errors::EngineError;
use crate::ids::RowId;
use std::sync::atomic::Ordering;

impl<C: Clock, V: FnMut(Problem)> Check<'_, C, V> {
    /// Walked in steps, the latch free between two of them: writers of the list are kept out
    /// by the caller's lock.
    pub(super) fn free_list(&mut self) -> Result<(), EngineError> {
        let storage = self.table.storage();
        let mut listed = 0;
        let mut broken = false;
        let (counted, mut at) = {
            let _latched = storage.free_latch.lock();
            (
                storage.free_count.load(Ordering::Relaxed),
                storage.free_first.load(Ordering::Relaxed),
            )
        };
        while at != 0 && listed <= counted && !broken {
            check_cancelled(self.clock)?;
            let _latched = storage.free_latch.lock();
            for _ in 0..STEP {
                if at == 0 || listed > counted {
                    break;
                }
                listed += 1;
                let anchor = self.table.anchor(RowId(at - 1));
                match anchor.filter(|anchor| anchor.head().is_free()) {
                    Some(anchor) => at = anchor.next_free().map_or(0, |row_id| row_id.0 + 1),
                    None => {
                        broken = true;
                        break;
                    }
                }
            }
        }
        self.report.row_ids_free = listed;
        if broken {
            self.found(Problem::FreeList {
                what: "a listed row id is in use",
            });
        } else if listed != counted {
            self.found(Problem::FreeList {
                what: "the list is not as long as counted",
            });
        }
        Ok(())
    }
}
