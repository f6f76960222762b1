//! Finding the checkpoint that a start loads: the newest complete one of this cluster's history, or
//! of the cluster that it was by an administrator's word.
use super::{has_mark, located, open, timeline_of};
use crate::errors;
use crate::shared_memory::{self, settings};
use mot_engine::checkpoint::{self, DIRECTORY, Manifest};
use mot_engine::disk::DirectoryDisk;
use mot_engine::{EngineError, Lsn};
use pgrx::prelude::*;
use std::path::Path;
use std::sync::atomic::Ordering;

/// The newest complete checkpoint of this cluster that is in its history; `None` if there is no
/// checkpoint at all. In a recovery, which replays from `replayed_from` on, those are passed by,
/// and taken away, that a copier met before they were complete.
pub fn newest(
    disk: &DirectoryDisk,
    replayed_from: Option<Lsn>,
) -> Result<Option<Manifest>, EngineError> {
    // SAFETY: reads the control file's copy in shared memory; never raises.
    let system_id = unsafe { pg_sys::GetSystemIdentifier() };
    let in_history = |timeline, redo| timeline_of(redo) == timeline;
    let find = |system_id| match replayed_from {
        None => Ok((checkpoint::newest(disk, system_id, in_history)?, Vec::new())),
        Some(redo) => checkpoint::newest_for_replay(disk, system_id, in_history, redo),
    };
    let (newest, passed) = find_or_adopt(system_id, find).map_err(foreign)?;
    if let (Some(redo), false) = (replayed_from, passed.is_empty()) {
        checkpoint::remove_passed(disk, &passed).map_err(located)?;
        errors::report_passed_by(passed.len(), redo);
    }
    if newest.is_none() && !checkpoint::generations(disk).map_err(located)?.is_empty() {
        return Err(EngineError::Damaged {
            file: DIRECTORY.into(),
            what: "it holds checkpoints, but none of this timeline's history".into(),
        });
    }
    if newest.is_none() && has_mark(disk)? {
        return Err(EngineError::Damaged {
            file: DIRECTORY.into(),
            what:
                "it has held checkpoints and has none now: the copy it comes from is not complete"
                    .into(),
        });
    }
    Ok(newest)
}

/// The newest checkpoint, if there is one, and the generations that were passed by.
type NewestCheckpoint = (Option<Manifest>, Vec<u64>);

/// The newest checkpoint of the own identifier; or of the one that an administrator says this
/// cluster had, only if that wrote it when its last writer was gone. It bears the own identifier as
/// soon as the start takes the final mark off, before the first statement or record (`begin_from`).
/// A start that ended before that, or was refused, has logged nothing of ours: a recovery that
/// follows it takes the checkpoint over as that start would have.
fn find_or_adopt(
    system_id: u64,
    find: impl Fn(u64) -> Result<NewestCheckpoint, EngineError>,
) -> Result<NewestCheckpoint, EngineError> {
    match find(system_id) {
        Err(error @ EngineError::OtherCluster { written_by, .. })
            if settings::adopted_system_identifier() == Some(written_by) =>
        {
            let (newest, passed) = find(written_by)?;
            // SAFETY: reads a shared position; never raises.
            let redo = Lsn(unsafe { pg_sys::GetRedoRecPtr() });
            match newest {
                // One that is ahead is of another server's WAL: rows' LSNs would let replay pass
                // over changes.
                Some(manifest)
                    if manifest.is_final && passed.is_empty() && manifest.redo <= redo =>
                {
                    errors::report_adopted(written_by);
                    let adopted = Manifest {
                        system_id,
                        ..manifest
                    };
                    Ok((Some(adopted), passed))
                }
                _ => Err(error),
            }
        }
        other => other,
    }
}

/// `located`, and it is remembered for the hint whether the checkpoint is another cluster's.
fn foreign(error: EngineError) -> EngineError {
    if matches!(error, EngineError::OtherCluster { .. }) {
        let control = shared_memory::control();
        control.is_of_another_cluster.store(true, Ordering::Relaxed);
    }
    located(error)
}

/// Generation and manifest of the newest complete checkpoint, unread. Files only: for the
/// postmaster.
pub fn fingerprint() -> Result<Option<(u64, Vec<u8>)>, EngineError> {
    let disk = open()?;
    let Some(generation) = checkpoint::generations(&disk)?.first().copied() else {
        return Ok(None);
    };
    let file = Path::new(DIRECTORY).join(checkpoint::manifest_name(generation));
    let content = std::fs::read(&file).map_err(|source| EngineError::Io {
        action: "read",
        file: file.display().to_string(),
        source,
    })?;
    Ok(Some((generation, content)))
}
