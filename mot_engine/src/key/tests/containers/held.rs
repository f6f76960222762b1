//! What containers hold.
use super::*;

/// What a container may hold: some values in their order, each in one or two forms that are equal.
pub(super) struct Held {
    pub(super) kind: KeyKind,
    /// As `pg_type.dat` has it.
    pub(super) align: usize,
    pub(super) values: Vec<[Vec<u8>; 2]>,
}

/// Values each in one form.
pub(super) fn held(kind: KeyKind, align: usize, values: &[&[u8]]) -> Held {
    let same = |value: &&[u8]| [value.to_vec(), value.to_vec()];
    Held {
        kind,
        align,
        values: values.iter().map(same).collect(),
    }
}

/// Some kinds of each width that a container may hold.
pub(super) fn some_held() -> Vec<Held> {
    let mut all = of_fixed_width();
    all.extend(of_varying_width());
    all
}

fn of_fixed_width() -> Vec<Held> {
    let integers = [i32::MIN, -1, 0, 256].map(i32::to_le_bytes);
    let longs = [i64::MIN, -1, 0, i64::MAX].map(i64::to_le_bytes);
    let numbers = |bytes: &[[u8; 4]]| -> Vec<[Vec<u8>; 2]> {
        let twice = |bytes: &[u8; 4]| [bytes.to_vec(), bytes.to_vec()];
        bytes.iter().map(twice).collect()
    };
    let zoned = |time: i64, zone: i32| [&time.to_le_bytes()[..], &zone.to_le_bytes()].concat();
    let floats = [-1.5_f64, 0.0, 2.0, f64::NAN].map(|value| value.to_le_bytes().to_vec());
    let equal_floats = [-1.5_f64, -0.0, 2.0, -f64::NAN].map(|value| value.to_le_bytes().to_vec());
    vec![
        held(KeyKind::Bool, 1, &[&[0], &[1]]),
        held(
            KeyKind::Int2,
            2,
            &[&[0, 0x80], &[0xFF, 0xFF], &[0, 0], &[0, 1]],
        ),
        Held {
            kind: KeyKind::Int4,
            align: 4,
            values: numbers(&integers),
        },
        Held {
            kind: KeyKind::Enum,
            align: 4,
            values: numbers(&[1_u32, 2, 256, u32::MAX].map(u32::to_le_bytes)),
        },
        held(KeyKind::Int8, 8, &longs.each_ref().map(|long| &long[..])),
        Held {
            kind: KeyKind::Float8,
            align: 8,
            values: floats
                .into_iter()
                .zip(equal_floats)
                .map(|(value, equal)| [value, equal])
                .collect(),
        },
        held(
            KeyKind::TimeTz,
            8,
            &[&zoned(0, 0), &zoned(0, 1), &zoned(2_000_000, 0)],
        ),
        held(KeyKind::Tid, 2, &[&[0, 0, 1, 0, 2, 0], &[1, 0, 0, 0, 1, 0]]),
        held(
            KeyKind::Macaddr,
            4,
            &[&[0; 6], &[0, 0, 0, 0, 0, 1], &[9; 6]],
        ),
        held(KeyKind::Name, 1, &[&[0; 64], &[b'a'; 64]]),
    ]
}

fn of_varying_width() -> Vec<Held> {
    let long = [0xFF; 300];
    vec![
        held(
            KeyKind::Text,
            4,
            &[b"", b"a", b"a\x01", b"ab", &[b'b'; 200]],
        ),
        held(
            KeyKind::Bytea,
            4,
            &[b"", &[0], &[0, 0], &[0, 0xFF], &[1], &long],
        ),
        Held {
            kind: KeyKind::Bpchar,
            align: 4,
            values: vec![
                [b"".to_vec(), b"   ".to_vec()],
                [b"a".to_vec(), b"a ".to_vec()],
                [b"a!".to_vec(), b"a!".to_vec()],
                [b"b".to_vec(), [b"b".to_vec(), vec![b' '; 200]].concat()],
            ],
        },
        held(
            KeyKind::VarBit,
            4,
            &[&[1, 0, 0, 0, 0], &[1, 0, 0, 0, 0x80], &[2, 0, 0, 0, 0x80]],
        ),
    ]
}
