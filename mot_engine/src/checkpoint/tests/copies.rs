//! A copier that is slower than checkpoints: it meets what was there when it began, and of what
//! comes meanwhile any part.
use super::*;

/// A file as a copier may have met it.
#[derive(Clone, Copy, Debug)]
enum Met {
    No,
    /// While it was written.
    Half,
    Whole,
}

/// Generations of versions 1 to `last`, each on the one before; the copy has all files of the first
/// `at_begin`, and of the others what `met` says. Answers the copy, and the newest generation of
/// which it has a manifest and all files.
fn copied(
    seed: u64,
    at_begin: u8,
    last: u8,
    mut met: impl FnMut(&str) -> Met,
) -> (SimulatedDisk, u8) {
    let (from, to) = (SimulatedDisk::new(seed), SimulatedDisk::new(seed));
    let mut early = HashSet::new();
    for version in 1..=last {
        let base = (version > 1).then(|| u64::from(version) - 1);
        write_made_up(&from, version, u64::from(version), 1, base).expect("writes");
        if version == at_begin {
            early = from.list().expect("lists").into_iter().collect();
        }
    }
    let mut whole: HashSet<String> = HashSet::new();
    for name in from.list().expect("lists") {
        let mut content = from.contents(&name).expect("is there");
        let how = match early.contains(&name) {
            true => Met::Whole,
            false => met(&name),
        };
        match how {
            Met::No => continue,
            // A manifest has its name when it is whole.
            Met::Half if !name.starts_with("manifest") => content.truncate(content.len() / 2),
            Met::Half | Met::Whole => drop(whole.insert(name.clone())),
        }
        let mut writer = to.create(&name).expect("creates");
        writer.append(&content).expect("appends");
        writer.sync().expect("syncs");
    }
    to.sync_directory().expect("syncs");
    let is_whole = |version: &u8| {
        let manifest = read_manifest(&from, u64::from(*version)).expect("is whole there");
        let mut files = manifest.files.iter();
        whole.contains(&manifest_name(manifest.generation))
            && files.all(|file| whole.contains(&rows_name(file.generation, file.number)))
    };
    let newest = (1..=last).rev().find(is_whole).expect("the early ones are");
    (to, newest)
}

/// The version that a recovery from the beginning of version `from` finds, with what it passes by
/// taken away.
fn found(disk: &SimulatedDisk, from: u8) -> Result<Option<u8>, EngineError> {
    let (manifest, passed) = newest_for_replay(disk, SYSTEM, |_, _| true, redo_of(from))?;
    remove_passed(disk, &passed)?;
    Ok(manifest.map(|manifest| version_at(manifest.redo)))
}

#[test]
fn a_manifest_met_without_its_rows_is_passed_by() {
    let met = |name: &str| match name.starts_with("manifest") {
        true => Met::Whole,
        false => Met::No,
    };
    // The fourth has rows of its own.
    let (copy, _) = copied(1, 3, 4, met);
    assert!(read_all(&copy).is_err(), "the newest is not whole");
    assert_eq!(
        found(&copy, 3).expect("the one that the copy began with"),
        Some(3)
    );
    assert_eq!(read_all(&copy).expect("alone now"), Some(3));
    assert_eq!(next_generation(&copy).expect("lists"), 4);
}

#[test]
fn what_replay_would_not_bring_is_not_passed_by() {
    let met = |name: &str| match name.starts_with("manifest") {
        true => Met::Whole,
        false => Met::Half,
    };
    // The fourth has rows of its own.
    let (copy, _) = copied(1, 3, 4, met);
    let before = copy.list().expect("lists");
    assert!(
        found(&copy, 4).is_err(),
        "replay begins behind the older one"
    );
    assert_eq!(copy.list().expect("lists"), before, "nothing is changed");
    assert_eq!(found(&copy, 3).expect("and here it does not"), Some(3));
}

#[test]
fn other_damage_is_not_passed_by() {
    let (copy, newest) = copied(1, 2, 3, |_| Met::Whole);
    assert_eq!(newest, 3);
    let name = manifest_name(3);
    let mut content = copy.contents(&name).expect("is there");
    content[40] ^= 1;
    copy.overwrite(&name, content);
    assert!(found(&copy, 1).is_err());
}

proptest! {
    #[test]
    fn any_copy_gives_its_newest_whole_generation(
        seed: u64,
        at_begin in 1u8..5,
        more in 0u8..5,
        draws in proptest::collection::vec(0u8..3, 64),
    ) {
        let mut draws = draws.into_iter().cycle();
        let met = |_: &str| match draws.next() {
            Some(0) => Met::No,
            Some(1) => Met::Half,
            _ => Met::Whole,
        };
        let (copy, newest) = copied(seed, at_begin, at_begin + more, met);
        let found = found(&copy, at_begin).expect("the one that the copy began with is whole");
        prop_assert!(newest >= at_begin);
        prop_assert_eq!(found, Some(newest));
        prop_assert_eq!(read_all(&copy).expect("is whole"), Some(newest));
    }
}
