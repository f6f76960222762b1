//! The files of a checkpoint directory: names, finding the newest checkpoint, removing old ones.
//!
//! Contract:
//! - `manifest-<generation>` exists only for a complete checkpoint: it is renamed into place after
//!   everything it names is durable, and removed (durably) before anything it names.
//! - Files that no manifest names are leftovers of an interrupted write or removal.
//! - Foreign files are left alone.

use super::read::open_rows;
use super::{Damage, Manifest};
use crate::disk::Disk;
use crate::errors::EngineError;
use crate::ids::Lsn;
use std::collections::HashSet;

/// Largest manifest read: far above what 2^20 tables with all their indexes need.
const MANIFEST_BYTES_MAX: u64 = 1 << 32;

/// Name of a generation's manifest.
pub fn manifest_name(generation: u64) -> String {
    format!("manifest-{generation:016x}")
}

/// Name of a manifest that is being written.
pub fn manifest_draft_name(generation: u64) -> String {
    format!("manifest-{generation:016x}.draft")
}

/// Name of a file of rows.
pub fn rows_name(generation: u64, file: u32) -> String {
    format!("rows-{generation:016x}-{file:08x}")
}

/// What a file of this name is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Manifest(u64),
    Draft(u64),
    Rows(u64),
}

fn kind_of(name: &str) -> Option<Kind> {
    let number = |text: &str, digits: usize| {
        let plain = text.len() == digits
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if plain {
            u64::from_str_radix(text, 16).ok()
        } else {
            None
        }
    };
    if let Some(rest) = name.strip_prefix("manifest-") {
        return match rest.strip_suffix(".draft") {
            Some(rest) => number(rest, 16).map(Kind::Draft),
            None => number(rest, 16).map(Kind::Manifest),
        };
    }
    let (generation, file) = name.strip_prefix("rows-")?.split_once('-')?;
    number(file, 8)?;
    number(generation, 16).map(Kind::Rows)
}

pub(super) fn io_error(
    action: &'static str,
    file: &str,
) -> impl FnOnce(std::io::Error) -> EngineError {
    move |source| EngineError::Io {
        action,
        file: file.to_owned(),
        source,
    }
}

pub(super) fn damaged(file: &str, damage: Damage) -> EngineError {
    EngineError::Damaged {
        file: file.to_owned(),
        what: damage.0.to_owned(),
    }
}

/// All generations that have a manifest, newest first. Includes those of other timelines.
pub fn generations(disk: &dyn Disk) -> Result<Vec<u64>, EngineError> {
    let names = disk.list().map_err(io_error("could not list", "."))?;
    let mut generations: Vec<u64> = names
        .iter()
        .filter_map(|name| match kind_of(name) {
            Some(Kind::Manifest(generation)) => Some(generation),
            _ => None,
        })
        .collect();
    generations.sort_unstable_by(|a, b| b.cmp(a));
    Ok(generations)
}

/// The generation to write next: above every file's, complete or not.
pub fn next_generation(disk: &dyn Disk) -> Result<u64, EngineError> {
    let names = disk.list().map_err(io_error("could not list", "."))?;
    let newest = names
        .iter()
        .filter_map(|name| kind_of(name))
        .map(|kind| match kind {
            Kind::Manifest(generation) | Kind::Draft(generation) | Kind::Rows(generation) => {
                generation
            }
        });
    newest
        .max()
        .unwrap_or(0)
        .checked_add(1)
        .ok_or(EngineError::Corrupt {
            what: "checkpoint generations are used up",
        })
}

/// Reads and checks one manifest, and that its files are there in full length.
pub fn read_manifest(disk: &dyn Disk, generation: u64) -> Result<Manifest, EngineError> {
    let manifest = parse_manifest(disk, generation)?;
    for file in &manifest.files {
        open_rows(disk, file)?;
    }
    Ok(manifest)
}

/// Reads and checks one manifest, whether its files are there or not.
pub fn parse_manifest(disk: &dyn Disk, generation: u64) -> Result<Manifest, EngineError> {
    let name = manifest_name(generation);
    let reader = disk
        .open(&name)
        .map_err(io_error("could not open", &name))?;
    let bytes = reader
        .bytes()
        .map_err(io_error("could not read the length of", &name))?;
    if bytes > MANIFEST_BYTES_MAX {
        return Err(damaged(&name, Damage("manifest is too long")));
    }
    let mut content = Vec::new();
    content
        .try_reserve_exact(bytes as usize)
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    content.resize(bytes as usize, 0);
    reader
        .read_at(0, &mut content)
        .map_err(io_error("could not read", &name))?;
    let manifest = Manifest::from_bytes(&content).map_err(|damage| damaged(&name, damage))?;
    if manifest.generation != generation {
        return Err(damaged(&name, Damage("manifest is of another generation")));
    }
    Ok(manifest)
}

/// The newest checkpoint of this cluster whose redo position `in_history(timeline, redo)` accepts;
/// None if there is none. A damaged manifest is an error, never passed by: an older checkpoint
/// would silently lose what WAL no longer holds.
pub fn newest(
    disk: &dyn Disk,
    system_id: u64,
    mut in_history: impl FnMut(u32, Lsn) -> bool,
) -> Result<Option<Manifest>, EngineError> {
    for generation in generations(disk)? {
        let manifest = read_manifest(disk, generation)?;
        if manifest.system_id != system_id {
            return Err(EngineError::OtherCluster {
                file: manifest_name(generation),
                written_by: manifest.system_id,
                own: system_id,
            });
        }
        if in_history(manifest.timeline, manifest.redo) {
            return Ok(Some(manifest));
        }
    }
    Ok(None)
}

/// As [`newest`], for a recovery that replays everything from `replayed_from` on, and which
/// generations it has passed by.
///
/// A copier that was slower than checkpoints may have copied a manifest without the files of rows
/// that it names: they were not there yet when it read that part of the directory. The checkpoint
/// that was there when it began is whole, since nothing is removed while a backup copies. So a
/// checkpoint whose files are missing or too short is skipped for an older whole one, but only if
/// that covers `replayed_from`: replay brings everything behind it. Any other damage is an error.
pub fn newest_for_replay(
    disk: &dyn Disk,
    system_id: u64,
    mut in_history: impl FnMut(u32, Lsn) -> bool,
    replayed_from: Lsn,
) -> Result<(Option<Manifest>, Vec<u64>), EngineError> {
    let error = match newest(disk, system_id, &mut in_history) {
        Ok(manifest) => return Ok((manifest, Vec::new())),
        Err(error) => error,
    };
    let mut passed = Vec::new();
    for generation in generations(disk)? {
        let manifest = parse_manifest(disk, generation)?;
        if manifest.system_id != system_id {
            return Err(error);
        }
        let is_whole = manifest.files.iter().try_for_each(|file| {
            let opened = open_rows(disk, file);
            opened.map(drop)
        });
        match is_whole {
            Err(EngineError::Damaged { .. }) => passed.push(generation),
            Err(other) => return Err(other),
            Ok(()) if !in_history(manifest.timeline, manifest.redo) => {}
            Ok(()) if manifest.redo < replayed_from => return Err(error),
            Ok(()) => return Ok((Some(manifest), passed)),
        }
    }
    Err(error)
}

/// Takes away, durably, the manifests of generations that were passed by: the next start must not
/// meet them, since its replay may begin later.
pub fn remove_passed(disk: &dyn Disk, generations: &[u64]) -> Result<(), EngineError> {
    let names = generations
        .iter()
        .map(|generation| manifest_name(*generation));
    remove_all(disk, &names.collect::<Vec<_>>()).map(drop)
}

/// Removes all checkpoints but the `keep` newest ones and those `must_stay` names, files that no
/// staying one names, and what interrupted writes left. Call it only when no checkpoint is being
/// written. Gives the number of files removed. Nothing is removed if a staying manifest cannot be
/// read: what it needs is not known.
pub fn remove_old(
    disk: &dyn Disk,
    keep: usize,
    mut must_stay: impl FnMut(u64) -> bool,
) -> Result<usize, EngineError> {
    let mut staying = Vec::new();
    let mut leaving = Vec::new();
    for (index, generation) in generations(disk)?.into_iter().enumerate() {
        if index < keep.max(1) || must_stay(generation) {
            staying.push(generation);
        } else {
            leaving.push(manifest_name(generation));
        }
    }
    let needed = needed_by(disk, &staying)?;
    // A manifest must be gone for good before its files go.
    let removed = remove_all(disk, &leaving)?;
    Ok(removed + remove_unneeded(disk, &needed)?)
}

/// Removes what no manifest names: files of attempts that came to nothing without removing them.
/// Nothing, if a manifest cannot be read.
pub fn remove_unnamed(disk: &dyn Disk) -> Result<usize, EngineError> {
    let complete = generations(disk)?;
    remove_unneeded(disk, &needed_by(disk, &complete)?)
}

/// The names of the files that generations need.
fn needed_by(disk: &dyn Disk, generations: &[u64]) -> Result<HashSet<String>, EngineError> {
    let mut needed = HashSet::new();
    for generation in generations {
        let manifest = parse_manifest(disk, *generation)?;
        let files = manifest.files.iter();
        needed.extend(files.map(|file| rows_name(file.generation, file.number)));
    }
    Ok(needed)
}

/// Removes drafts, and files of rows but those needed.
fn remove_unneeded(disk: &dyn Disk, needed: &HashSet<String>) -> Result<usize, EngineError> {
    let mut names = disk.list().map_err(io_error("could not list", "."))?;
    names.retain(|name| match kind_of(name) {
        Some(Kind::Draft(_)) => true,
        Some(Kind::Rows(_)) => !needed.contains(name),
        Some(Kind::Manifest(_)) | None => false,
    });
    remove_all(disk, &names)
}

/// Removes files, durably.
fn remove_all(disk: &dyn Disk, names: &[String]) -> Result<usize, EngineError> {
    for name in names {
        disk.remove(name)
            .map_err(io_error("could not remove", name))?;
    }
    if !names.is_empty() {
        disk.sync_directory()
            .map_err(io_error("could not sync", "."))?;
    }
    Ok(names.len())
}

/// Takes away what a failed attempt to write `generation` left, as far as it can: its manifest is
/// not in place. What stays is a leftover for [`remove_unnamed`].
pub(super) fn remove_attempt(disk: &dyn Disk, generation: u64) {
    let Ok(names) = disk.list() else {
        return;
    };
    for name in names {
        if matches!(kind_of(&name), Some(Kind::Draft(of) | Kind::Rows(of)) if of == generation) {
            // The attempt's error is the one to report.
            let _ = disk.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        assert_eq!(kind_of(&manifest_name(7)), Some(Kind::Manifest(7)));
        assert_eq!(
            kind_of(&manifest_draft_name(u64::MAX)),
            Some(Kind::Draft(u64::MAX))
        );
        assert_eq!(kind_of(&rows_name(255, 3)), Some(Kind::Rows(255)));
        for name in [
            "manifest-",
            "manifest-7",
            "rows-0000000000000001",
            "x",
            "manifest-000000000000000G",
        ] {
            assert_eq!(kind_of(name), None, "{name}");
        }
    }
}
