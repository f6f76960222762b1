//! The checkpoint of a history that has nothing of ours yet.

use super::files::next_generation;
use super::manifest::Manifest;
use super::write::seal;
use crate::disk::Disk;
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, TableId, Xid};
use crate::table::RANGE_ROW_IDS;

/// Puts a checkpoint without tables in place: what is logged from `redo` on is all that there ever
/// was. Of that the caller must be sure; a later start replays from there, or fails, and does not
/// begin with nothing once more at a later position.
pub fn seal_empty(
    disk: &dyn Disk,
    system_id: u64,
    timeline: u32,
    redo: Lsn,
) -> Result<Manifest, EngineError> {
    let manifest = Manifest {
        system_id,
        timeline,
        is_final: false,
        redo,
        flushed: redo,
        generation: next_generation(disk)?,
        // Nothing in it asks which transactions are finished.
        finished_below: Xid(0),
        next_table: TableId(1),
        next_index: IndexId(1),
        // There is none that it could have had.
        defined: Lsn::NONE,
        range_row_ids: RANGE_ROW_IDS as u32,
        tables: Vec::new(),
        files: Vec::new(),
        committed: Vec::new(),
        locks: Vec::new(),
    };
    seal(disk, &manifest)?;
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{newest, newest_for_replay};
    use crate::disk::simulated::SimulatedDisk;

    #[test]
    fn an_empty_checkpoint_is_the_newest_until_there_is_another() {
        let disk = SimulatedDisk::new(1);
        let sealed = seal_empty(&disk, 7, 3, Lsn(1000)).expect("writes");
        assert_eq!(sealed.generation, 1);
        let here = |timeline: u32, redo: Lsn| timeline == 3 && redo == Lsn(1000);
        let found = newest(&disk, 7, here).expect("reads");
        assert_eq!(found.as_ref(), Some(&sealed));
        // Whichever position a recovery begins from.
        for from in [Lsn(1000), Lsn(2000)] {
            let found = newest_for_replay(&disk, 7, here, from).expect("reads");
            assert_eq!(found, (Some(sealed.clone()), Vec::new()));
        }
        assert_eq!(next_generation(&disk).expect("lists"), 2);
    }
}
