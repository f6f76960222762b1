//! Crashes and errors at every operation, a full disk, damage, removal.

use super::*;
use crate::checkpoint::files::manifest_draft_name;

/// The checkpoint before or the one after, whole, whatever the machine did when it went down.
#[test]
fn a_crash_at_any_operation_leaves_a_whole_checkpoint() {
    let start = SimulatedDisk::new(9);
    write_made_up(&start, 1, 1, 1, None).expect("writes");
    let mut found = [0; CHAIN as usize + 1];
    for at in 0.. {
        let mut reached_the_end = false;
        for seed in 0..12 {
            let disk = start.fork(seed);
            disk.fail_at(at);
            reached_the_end |= write_chain(&disk, 2).is_ok();
            let complete = generations(&disk.fork(0).restart()).expect("lists").len();
            assert!(complete > 0);
            let after = disk.restart();
            let version = match read_all(&after) {
                Ok(Some(version)) => version,
                other => panic!("operation {at} seed {seed}: {other:?}"),
            };
            found[usize::from(version)] += 1;
            // Leftovers do not disturb the next ones, and go.
            let generation = next_generation(&after).expect("lists");
            let base = Some(generations(&after).expect("lists")[0]);
            write_made_up(&after, CHAIN + 1, generation, 1, base).expect("writes");
            assert_eq!(read_all(&after).expect("is whole"), Some(CHAIN + 1));
            remove_old(&after, 1, |_| false).expect("clears");
            assert_eq!(read_all(&after).expect("is whole"), Some(CHAIN + 1));
            let manifest = read_manifest(&after, generation).expect("is whole");
            let names = after.list().expect("lists");
            assert_eq!(names.len(), manifest.files.len() + 1);
        }
        if reached_the_end {
            break;
        }
    }
    assert!(found[1..].iter().all(|count| *count > 20), "{found:?}");
}

/// An operation that fails although the machine goes on: the attempt fails or what it was for is
/// done later, what is there stays whole, and the disk does not fill with what was left.
#[test]
fn an_error_at_any_operation_is_an_error_and_no_more() {
    let start = SimulatedDisk::new(10);
    write_made_up(&start, 1, 1, 1, None).expect("writes");
    for at in 0.. {
        let disk = start.fork(at);
        disk.fault_at(at, std::io::ErrorKind::StorageFull);
        let error = match write_chain(&disk, 2) {
            Ok(()) => break,
            Err(error) => error,
        };
        let EngineError::Io { file, source, .. } = &error else {
            panic!("operation {at}: {error}");
        };
        assert!(!file.is_empty());
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
        let version = read_all(&disk).expect("is whole").expect("exists");
        let generation = next_generation(&disk).expect("lists");
        let base = Some(u64::from(version));
        write_made_up(&disk, CHAIN, generation, 1, base).expect("writes");
        remove_old(&disk, 1, |_| false).expect("clears");
        assert_eq!(read_all(&disk).expect("is whole"), Some(CHAIN));
        let manifest = read_manifest(&disk, generation).expect("is whole");
        assert_eq!(disk.list().expect("lists").len(), manifest.files.len() + 1);
    }
}

#[test]
fn a_full_disk_is_not_filled_further() {
    let disk = SimulatedDisk::new(11);
    write_made_up(&disk, 1, 1, 1, None).expect("writes");
    let before = disk.list().expect("lists");
    let used = disk.bytes_used();
    disk.set_capacity(used + 2000);
    for _ in 0..5 {
        let generation = next_generation(&disk).expect("lists");
        let error = write_made_up(&disk, 9, generation, 1, None).expect_err("is full");
        assert!(
            matches!(&error, EngineError::Io { file, .. } if file.starts_with("rows-")),
            "{error}"
        );
        assert_eq!(disk.list().expect("lists"), before);
        assert_eq!(disk.bytes_used(), used);
    }
    // The rows fit, the manifest does not.
    let mut failed_at_manifest = false;
    for room in (0..20_000).step_by(100) {
        disk.set_capacity(used + room);
        let Err(error) = write_made_up(&disk, 9, 2, 1, Some(1)) else {
            break;
        };
        failed_at_manifest |=
            matches!(&error, EngineError::Io { file, .. } if file.ends_with(".draft"));
        assert_eq!(disk.list().expect("lists"), before);
        assert_eq!(disk.bytes_used(), used);
    }
    assert!(failed_at_manifest);
    disk.set_capacity(u64::MAX);
    write_made_up(&disk, 9, 2, 1, Some(1)).expect("writes");
    assert_eq!(read_all(&disk).expect("is whole"), Some(9));
}

/// Of every file of a checkpoint, whichever generation wrote it: each byte that is used.
#[test]
fn every_flipped_byte_is_noticed() {
    let disk = SimulatedDisk::new(3);
    for version in 1..=4 {
        let base = (version > 1).then_some(u64::from(version) - 1);
        write_made_up(&disk, version, version.into(), 1, base).expect("writes");
    }
    remove_old(&disk, 1, |_| false).expect("removes");
    let manifest = read_manifest(&disk, 4).expect("is whole");
    assert!(manifest.files.len() > 1);
    let mut names = disk.list().expect("lists");
    names.sort();
    let used = |name: &str, at: usize| {
        let is_it = |file: &FileEntry| rows_name(file.generation, file.number) == name;
        let Some(position) = manifest.files.iter().position(is_it) else {
            return name == manifest_name(4);
        };
        let mut ranges = manifest.tables.iter().flat_map(|table| &table.ranges);
        ranges.any(|range| {
            let bytes = range.offset..range.offset + range.bytes;
            range.file == position as u32 && bytes.contains(&(at as u64))
        })
    };
    let mut noticed = 0;
    for name in names {
        let whole = disk.contents(&name).expect("exists");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            disk.overwrite(&name, bytes);
            if !used(&name, at) {
                assert_eq!(read_all(&disk).expect("is whole"), Some(4));
                continue;
            }
            noticed += 1;
            let error = read_all(&disk).expect_err("damage is noticed");
            assert!(
                matches!(&error, EngineError::Damaged { file, .. } if *file == name),
                "byte {at} of {name}: {error}"
            );
        }
        for length in [0, 1, 63, whole.len() - 1] {
            disk.overwrite(&name, whole[..length].to_vec());
            let error = read_all(&disk).expect_err("a cut is noticed");
            assert!(matches!(&error, EngineError::Damaged { file, .. } if *file == name));
        }
        disk.overwrite(&name, whole);
        assert_eq!(read_all(&disk).expect("is whole"), Some(4));
    }
    assert!(noticed > 10_000, "{noticed}");
}

#[test]
fn files_of_another_generation_are_noticed() {
    let disk = SimulatedDisk::new(4);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    write_made_up(&disk, 5, 2, 1, None).expect("writes");
    let older = disk.contents(&rows_name(1, 0)).expect("exists");
    disk.overwrite(&rows_name(2, 0), older);
    assert!(matches!(read_all(&disk), Err(EngineError::Damaged { .. })));
}

#[test]
fn a_missing_file_is_named() {
    let disk = SimulatedDisk::new(5);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    disk.remove(&rows_name(1, 0)).expect("removes");
    let error = read_all(&disk).expect_err("is missing");
    assert!(
        matches!(&error, EngineError::Damaged { file, .. } if *file == rows_name(1, 0)),
        "{error}"
    );
}

#[test]
fn no_manifest_before_the_log_is_durable() {
    let disk = SimulatedDisk::new(6);
    for flushed in [Ok(Lsn(3)), Err(EngineError::OutOfProcessMemory)] {
        let mut flushed = Some(flushed);
        let mut flush = |_| flushed.take().expect("called once");
        let progress = CheckpointProgress::default();
        let mut context = CheckpointContext {
            threads: 2,
            flush: &mut flush,
            ..context(&progress, 1, 1)
        };
        assert!(write_from(&MadeUp::new(1), &disk, &mut context, None).is_err());
        assert!(disk.list().expect("lists").is_empty(), "nothing is left");
        assert!(generations(&disk).expect("lists").is_empty());
    }
}

#[test]
fn an_attempt_that_unwinds_leaves_nothing() {
    let disk = SimulatedDisk::new(8);
    let mut flush = |_: Lsn| -> Result<Lsn, EngineError> {
        std::panic::resume_unwind(Box::new("an error of the server's"))
    };
    let progress = CheckpointProgress::default();
    let mut context = CheckpointContext {
        flush: &mut flush,
        ..context(&progress, 1, 1)
    };
    let attempt = std::panic::AssertUnwindSafe(|| {
        write_from(&MadeUp::new(1), &disk, &mut context, None).map(drop)
    });
    assert!(std::panic::catch_unwind(attempt).is_err());
    assert!(disk.list().expect("lists").is_empty(), "nothing is left");
}

#[test]
fn what_no_manifest_names_goes() {
    let disk = SimulatedDisk::new(9);
    write_made_up(&disk, 1, 1, 1, None).expect("writes");
    write_made_up(&disk, 2, 2, 1, None).expect("writes");
    let before = disk.list().expect("lists").len();
    for name in [rows_name(3, 0), manifest_draft_name(3)] {
        disk.create(&name).expect("creates");
    }
    assert_eq!(remove_unnamed(&disk).expect("removes"), 2);
    assert_eq!(disk.list().expect("lists").len(), before);
    assert_eq!(generations(&disk).expect("lists"), [2, 1]);
    assert_eq!(read_all(&disk).expect("is whole"), Some(2));
    // What a damaged manifest needs is unknown.
    disk.overwrite(&manifest_name(1), b"damaged".to_vec());
    disk.create(&rows_name(3, 0)).expect("creates");
    assert!(remove_unnamed(&disk).is_err());
    assert!(disk.list().expect("lists").contains(&rows_name(3, 0)));
}

#[test]
fn old_checkpoints_go_and_needed_ones_stay() {
    let disk = SimulatedDisk::new(7);
    for generation in 1..=6 {
        write_made_up(&disk, generation as u8, generation, 1, None).expect("writes");
    }
    let removed = remove_old(&disk, 2, |generation| generation == 3).expect("removes");
    assert_eq!(removed, 6);
    assert_eq!(generations(&disk).expect("lists"), [6, 5, 3]);
    assert_eq!(read_all(&disk).expect("is whole"), Some(6));
    assert_eq!(remove_old(&disk, 0, |_| false).expect("removes"), 4);
    assert_eq!(
        generations(&disk).expect("lists"),
        [6],
        "the newest always stays"
    );
}

#[test]
fn nothing_is_removed_while_it_is_not_known_what_is_needed() {
    let disk = SimulatedDisk::new(7);
    write_chain(&disk, 1).expect("writes");
    let newest = u64::from(CHAIN);
    write_made_up(&disk, CHAIN, newest + 1, 1, Some(newest)).expect("writes");
    let mut bytes = disk.contents(&manifest_name(newest)).expect("exists");
    bytes[20] ^= 1;
    disk.overwrite(&manifest_name(newest), bytes);
    let before = disk.list().expect("lists");
    let error = remove_old(&disk, 2, |_| false).expect_err("is damaged");
    assert!(
        matches!(&error, EngineError::Damaged { file, .. } if *file == manifest_name(newest)),
        "{error}"
    );
    assert_eq!(disk.list().expect("lists"), before);
    assert_eq!(read_all(&disk).expect("is whole"), Some(CHAIN));
    // A caller that needs only the newest one can continue.
    remove_old(&disk, 1, |_| false).expect("removes");
    assert_eq!(read_all(&disk).expect("is whole"), Some(CHAIN));
}
