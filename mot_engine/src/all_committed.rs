//! A clock and snapshot for unit tests in which every transaction has committed.

use crate::ids::{CommandId, Xid};
use crate::{Clock, Snapshot};

/// No transaction is running, all have committed, everything is seen.
pub(crate) struct AllCommitted;

impl Clock for AllCommitted {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }
    fn is_in_progress(&self, _xid: Xid) -> bool {
        false
    }
    fn did_commit(&self, _xid: Xid) -> bool {
        true
    }
}

impl Snapshot for AllCommitted {
    fn xmin(&self) -> Xid {
        Xid(u64::MAX)
    }
    fn own(&self, _xid: Xid, _cid: CommandId) -> Option<bool> {
        None
    }
    fn running(&self, _xid: Xid) -> bool {
        false
    }
    fn did_commit(&self, _xid: Xid) -> bool {
        true
    }
}
