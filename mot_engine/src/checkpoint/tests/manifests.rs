//! Manifests: what is written is read, and damage is an error. As each version wrote them, they lie
//! in files that stay as they are (`golden/`): of one made-up checkpoint, hexadecimal.

use super::super::manifest::MANIFEST_VERSION;
use super::*;

/// By version, from 1 on. A new version adds one.
const MANIFESTS: [&str; MANIFEST_VERSION as usize] = [
    include_str!("golden/manifest_1.hex"),
    include_str!("golden/manifest_2.hex"),
    include_str!("golden/manifest_3.hex"),
    include_str!("golden/manifest_4.hex"),
    include_str!("golden/manifest_5.hex"),
    include_str!("golden/manifest_6.hex"),
    include_str!("golden/manifest_7.hex"),
];

/// The checksum at the end of each: no file is changed.
const CHECKSUMS: [u32; MANIFEST_VERSION as usize] = [
    0x7A02EB22, 0xD1DF6CBF, 0x368DED8B, 0x9C9260BA, 0x594F8F22, 0xBE9469C2, 0xFB17CC75,
];

fn bytes_of(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

#[test]
fn golden_manifests_of_every_version_are_read() {
    let disk = SimulatedDisk::new(12);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    let now = read_manifest(&disk, 1).expect("is whole");
    for (version, text) in (1..).zip(MANIFESTS) {
        let bytes = bytes_of(text);
        let checksum = bytes.last_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        assert_eq!(checksum, Some(CHECKSUMS[version - 1]), "version {version}");
        let read = Manifest::from_bytes(&bytes).expect("is whole");
        let expected = match version {
            // Of whole files, whose checksum and length are all that it has of them.
            1 => {
                assert_eq!(read.range_row_ids, 0);
                assert!(read.files.iter().all(|file| file.whole.is_some()));
                let tables = now.tables.iter().cloned();
                let without_ranges = tables.map(|table| TableEntry {
                    ranges: Vec::new(),
                    ..table
                });
                assert_eq!(read.tables, without_ranges.collect::<Vec<_>>());
                continue;
            }
            2 | 3 => Manifest {
                defined: Lsn::NONE,
                ..now.clone()
            },
            _ => now.clone(),
        };
        assert_eq!(read, expected, "version {version}");
    }
    let newest = MANIFESTS.last().expect("there are some");
    assert_eq!(now.to_bytes().expect("memory"), bytes_of(newest));
}

/// A manifest of so many tables, with numbers of all sizes.
fn manifest_of(numbers: [u64; 8], count: usize) -> Manifest {
    let mut tables = MadeUp::new(1).tables;
    tables.truncate(count);
    for table in &mut tables {
        if numbers[1] & 1 == 0 {
            table.key =
                RelationKey::of_file(numbers[2] as u32, numbers[3] as u32, numbers[4] as u32);
            table.indexes[0].definition.file = FileKey {
                tablespace: numbers[5] as u32,
                relation: 1 + numbers[6] as u32 / 2,
            };
        }
        table.ranges = vec![RangeEntry {
            number: numbers[0] as u32,
            file: numbers[1] as u32,
            first_block: numbers[2] as u32,
            blocks: numbers[3] as u32,
            offset: numbers[4],
            bytes: numbers[5],
            rows: numbers[6],
            range_rows: numbers[7],
            since: Lsn(numbers[0]),
            open_from: (numbers[1] != u64::MAX).then_some(Lsn(numbers[1])),
            entries: numbers[2] as u32,
            digest: numbers[7] as u32,
        }];
    }
    Manifest {
        system_id: numbers[0],
        timeline: numbers[1] as u32,
        is_final: numbers[1] >> 63 == 1,
        redo: Lsn(numbers[2]),
        flushed: Lsn(numbers[3]),
        generation: numbers[4],
        finished_below: Xid(numbers[5]),
        next_table: TableId(numbers[6]),
        next_index: IndexId(numbers[7]),
        defined: Lsn(numbers[0]),
        range_row_ids: numbers[2] as u32,
        tables,
        files: vec![
            FileEntry {
                generation: numbers[0],
                number: 1,
                bytes: numbers[1],
                finished_below: Xid(numbers[2]),
                whole: None,
            },
            FileEntry {
                generation: numbers[3],
                number: 2,
                bytes: numbers[4],
                finished_below: Xid(numbers[5]),
                whole: Some(WholeFile {
                    blocks: 2,
                    digest: 3,
                }),
            },
        ],
        committed: vec![Xid(numbers[6] / 2), Xid(numbers[6])],
        locks: vec![LocksOf {
            xid: Xid(numbers[1]),
            lsn: Lsn(numbers[2]),
            record: numbers[3].to_le_bytes().to_vec(),
        }],
    }
}

proptest! {
    #[test]
    fn manifests_survive_and_damage_is_an_error(
        numbers in any::<[u64; 8]>(),
        tables in 0..4_usize,
        cut in any::<prop::sample::Index>(),
        patch in (any::<prop::sample::Index>(), any::<u8>()),
    ) {
        let manifest = manifest_of(numbers, tables);
        let bytes = manifest.to_bytes().expect("memory");
        prop_assert_eq!(Manifest::from_bytes(&bytes), Ok(manifest));
        prop_assert!(Manifest::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        // Damage with a right checksum must not panic.
        let mut patched = bytes;
        let content = patched.len() - 4;
        let at = patch.0.index(content);
        patched[at] = patch.1;
        let crc = crc32c::crc32c(&patched[..content]);
        patched[content..].copy_from_slice(&crc.to_le_bytes());
        if let Ok(read) = Manifest::from_bytes(&patched)
            && u32::from(patched[4]) == manifest::MANIFEST_VERSION
        {
            prop_assert_eq!(read.to_bytes().expect("memory"), patched);
        }
    }
}
