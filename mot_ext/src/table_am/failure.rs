//! Heapam's answers (`TM_Result`): why a change cannot be made, and what is reported to core
//! (`TM_FailureData`).
use crate::pg::argument::Out;
use crate::rows::tid;
use crate::rows::write::Target;
use crate::transaction::clock::{PgClock, narrow};
use crate::transaction::session;
use mot_engine::{CommandId, Newest, RowId, VersionRef, Xid};
use pgrx::pg_sys::{self, TM_Result::*};

/// `InvalidCommandId`.
const NO_COMMAND: pg_sys::CommandId = pg_sys::CommandId::MAX;

/// Why a change was not made, or a row not locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The version is the transaction's own, and younger than what the command may see.
    Invisible,
    /// The transaction changed the row itself, by this command.
    SelfModified(CommandId),
    /// Another transaction changed the row, and committed.
    Updated,
    /// Another transaction deleted the row, and committed.
    Deleted,
    /// An unfinished transaction is in the way, and the caller does not wait.
    BeingModified(Xid),
    /// The row is to be passed over (SKIP LOCKED).
    WouldBlock,
    /// A transaction was waited for, and the new state is to be formed again (`label_locks`).
    Waited,
}

/// An own change by command `by`, reported to one that runs as command `asking`: heapam calls what
/// an earlier command did invisible to the asker.
pub fn by_own_command(by: CommandId, asking: CommandId) -> Refusal {
    if by >= asking {
        Refusal::SelfModified(by)
    } else {
        Refusal::Invisible
    }
}

/// Whether the version is one that a command of this transaction may not see yet.
pub fn is_too_young(version: VersionRef, asking: CommandId) -> bool {
    use mot_engine::Clock;
    version.cid() >= asking && PgClock.is_current(version.xid())
}

/// Why nothing is done about an id that names no version: the row has gone on since the id was
/// read, or is gone.
pub fn unnamed(target: &Target<'_>, row: RowId, asking: CommandId) -> Refusal {
    use mot_engine::Clock;
    match target.session.newest(&PgClock, target.table, row) {
        Newest::Live(newest) if PgClock.is_current(newest.xid()) => {
            by_own_command(newest.cid(), asking)
        }
        Newest::Live(_) | Newest::Busy(_) => Refusal::Updated,
        Newest::Gone | Newest::None => Refusal::Deleted,
    }
}

/// A statement met a row that others had changed after its snapshot.
pub fn count_changed_meanwhile() {
    session::count_conflict(|conflicts| &conflicts.rows_changed_meanwhile);
}

/// What is reported to core of a row that was locked, whose version has this id: whether it is
/// another one than the statement saw.
pub fn none(ctid: pg_sys::ItemPointerData, is_other: bool) -> pg_sys::TM_FailureData {
    pg_sys::TM_FailureData {
        ctid,
        xmax: pg_sys::InvalidTransactionId,
        cmax: NO_COMMAND,
        traversed: is_other,
    }
}

/// Reports to core a refusal about the row whose version was asked for by its tuple id.
pub fn report(
    refusal: Refusal,
    target: &Target<'_>,
    row: RowId,
    asked: pg_sys::ItemPointerData,
    failure: Out<'_, pg_sys::TM_FailureData>,
) -> pg_sys::TM_Result::Type {
    // In READ COMMITTED a lock of the newest version follows an update's answer, and is counted.
    // SAFETY: a plain variable of this process.
    let raises = unsafe { pg_sys::XactIsoLevel } >= pg_sys::XACT_REPEATABLE_READ as i32;
    if refusal == Refusal::Deleted || refusal == Refusal::Updated && raises {
        count_changed_meanwhile();
    }
    let mut told = none(asked, false);
    let answer = match refusal {
        Refusal::Invisible => TM_Invisible,
        Refusal::SelfModified(by) => {
            told.cmax = by.0;
            // SAFETY: a variable of this process; the transaction has an id, for it has changed the
            // row.
            told.xmax = unsafe { pg_sys::GetCurrentTransactionIdIfAny() };
            TM_SelfModified
        }
        Refusal::Updated => {
            if let Newest::Live(newest) = target.session.newest(&PgClock, target.table, row) {
                told.ctid = tid::of(target.table, row, newest);
                told.xmax = narrow(newest.xid());
            }
            TM_Updated
        }
        Refusal::Deleted if target.session.is_moved_away(&PgClock, target.table, row) => {
            told.ctid = tid::MOVED_AWAY;
            TM_Updated
        }
        Refusal::Deleted => TM_Deleted,
        Refusal::BeingModified(xid) => {
            told.xmax = narrow(xid);
            TM_BeingModified
        }
        Refusal::WouldBlock => TM_WouldBlock,
        Refusal::Waited => unreachable!("the new state is formed again"),
    };
    failure.set(told);
    answer
}
