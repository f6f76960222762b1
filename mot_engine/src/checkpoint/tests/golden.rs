//! Manifests as each version wrote them, in files that stay as they are (`golden/`): of one made-up
//! checkpoint, hexadecimal.

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
                assert_eq!(read.range_slots, 0);
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
