//! Byte order against value order, for every kind, and damage.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::errors::EngineError;

fn column(kind: KeyKind) -> KeyColumn {
    KeyColumn {
        attnum: 1,
        kind,
        descending: false,
        nulls_first: false,
        nullable: false,
    }
}

fn encoded(column: &KeyColumn, value: KeyValue<'_>) -> Vec<u8> {
    let mut key = KeyBuffer::new();
    encode_value(column, value, &mut key).expect("encodes");
    key.as_slice().to_vec()
}

/// Checks the order of two values of `kind` ascending and descending, and the prefix rule.
fn check(
    kind: KeyKind,
    left: KeyValue<'_>,
    right: KeyValue<'_>,
    order: Ordering,
) -> Result<(), TestCaseError> {
    let ascending = column(kind);
    let descending = KeyColumn {
        descending: true,
        nullable: true,
        ..ascending
    };
    let (a, b) = (encoded(&ascending, left), encoded(&ascending, right));
    prop_assert_eq!(
        a.cmp(&b),
        order,
        "{:?}: {:02x?} against {:02x?}",
        kind,
        a,
        b
    );
    prop_assert_eq!(a.starts_with(&b), order.is_eq());
    prop_assert_eq!(b.starts_with(&a), order.is_eq());
    let (a, b) = (encoded(&descending, left), encoded(&descending, right));
    prop_assert_eq!(a.cmp(&b), order.reverse(), "{:?} descending", kind);
    Ok(())
}

fn float_order<F: PartialOrd + Copy>(a: F, b: F, a_nan: bool, b_nan: bool) -> Ordering {
    match (a_nan, b_nan) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.partial_cmp(&b).expect("no NaN"),
    }
}

fn any_i64() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -3..3_i64, Just(i64::MIN), Just(i64::MAX)]
}

fn any_f64() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        Just(0.0),
        Just(-0.0),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(-f64::NAN),
        -2.0..2.0,
    ]
}

/// Few distinct bytes, so that equal starts and zero bytes are common.
fn short_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(
        prop_oneof![Just(0_u8), Just(1), Just(0xFF), Just(b' ')],
        0..6,
    )
}

fn short_text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(
        prop_oneof![Just(b'a'), Just(1_u8), Just(0xFF), Just(b' ')],
        0..6,
    )
}

// ---- numeric: decimal strings compared digit by digit, and built into PostgreSQL's form ----

#[derive(Clone, Debug)]
enum Decimal {
    NegativeInfinity,
    Finite {
        negative: bool,
        integer: Vec<u8>,
        fraction: Vec<u8>,
    },
    PositiveInfinity,
    NaN,
}

impl Decimal {
    fn rank(&self) -> u8 {
        match self {
            Decimal::NegativeInfinity => 0,
            Decimal::Finite { .. } => 1,
            Decimal::PositiveInfinity => 2,
            Decimal::NaN => 3,
        }
    }

    fn compare(&self, other: &Decimal) -> Ordering {
        let (
            Decimal::Finite {
                negative: n1,
                integer: i1,
                fraction: f1,
            },
            Decimal::Finite {
                negative: n2,
                integer: i2,
                fraction: f2,
            },
        ) = (self, other)
        else {
            return self.rank().cmp(&other.rank());
        };
        let integers = i1.len().max(i2.len());
        let fractions = f1.len().max(f2.len());
        let line = |integer: &[u8], fraction: &[u8]| {
            let mut digits = vec![0; integers - integer.len()];
            digits.extend_from_slice(integer);
            digits.extend_from_slice(fraction);
            digits.resize(integers + fractions, 0);
            digits
        };
        let (a, b) = (line(i1, f1), line(i2, f2));
        let zero = |digits: &[u8]| digits.iter().all(|digit| *digit == 0);
        let sign = |negative: bool, digits: &[u8]| match (zero(digits), negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let (s1, s2) = (sign(*n1, &a), sign(*n2, &b));
        s1.cmp(&s2)
            .then_with(|| if s1 < 0 { b.cmp(&a) } else { a.cmp(&b) })
    }

    /// PostgreSQL's datum; `long` forces the long header, `strip` cuts zero digits as core does.
    fn payload(&self, long: bool, strip: bool) -> Vec<u8> {
        let (negative, integer, fraction) = match self {
            Decimal::NegativeInfinity => return 0xF000_u16.to_le_bytes().to_vec(),
            Decimal::PositiveInfinity => return 0xD000_u16.to_le_bytes().to_vec(),
            Decimal::NaN => return 0xC000_u16.to_le_bytes().to_vec(),
            Decimal::Finite {
                negative,
                integer,
                fraction,
            } => (*negative, integer, fraction),
        };
        let mut digits = vec![0; (4 - integer.len() % 4) % 4];
        digits.extend_from_slice(integer);
        let mut weight = (digits.len() / 4) as i32 - 1;
        digits.extend_from_slice(fraction);
        digits.resize(digits.len().next_multiple_of(4), 0);
        let mut groups: Vec<u16> = digits
            .chunks(4)
            .map(|group| {
                group
                    .iter()
                    .fold(0, |value, digit| value * 10 + u16::from(*digit))
            })
            .collect();
        if strip {
            while groups.first() == Some(&0) {
                groups.remove(0);
                weight -= 1;
            }
            while groups.last() == Some(&0) {
                groups.pop();
            }
            if groups.is_empty() {
                weight = 0;
            }
        }
        let scale = fraction.len() as u16;
        let mut bytes = Vec::new();
        if !long && scale <= 63 && (-64..=63).contains(&weight) {
            let header = 0x8000
                | if negative { 0x2000 } else { 0 }
                | scale << 7
                | if weight < 0 { 0x40 } else { 0 }
                | (weight & 0x3F) as u16;
            bytes.extend_from_slice(&header.to_le_bytes());
        } else {
            let header = scale | if negative { 0x4000 } else { 0 };
            bytes.extend_from_slice(&header.to_le_bytes());
            bytes.extend_from_slice(&(weight as i16).to_le_bytes());
        }
        for group in groups {
            bytes.extend_from_slice(&group.to_le_bytes());
        }
        bytes
    }
}

fn decimal() -> impl Strategy<Value = Decimal> {
    let digits =
        |most: usize| prop::collection::vec(prop_oneof![Just(0_u8), Just(9), 0..10_u8], 0..most);
    prop_oneof![
        1 => Just(Decimal::NaN),
        1 => Just(Decimal::PositiveInfinity),
        1 => Just(Decimal::NegativeInfinity),
        12 => (any::<bool>(), digits(9), digits(9)).prop_map(|(negative, integer, fraction)| {
            Decimal::Finite { negative, integer, fraction }
        }),
        4 => (any::<bool>(), digits(300), digits(300)).prop_map(
            |(negative, integer, fraction)| Decimal::Finite { negative, integer, fraction }
        ),
    ]
}

/// Two decimals, the second often near the first: same digits, another sign, scale or last digit.
fn decimals() -> impl Strategy<Value = (Decimal, Decimal)> {
    (decimal(), decimal(), 0..5_u8, any::<prop::sample::Index>()).prop_map(
        |(a, b, relation, index)| {
            let Decimal::Finite {
                negative,
                integer,
                fraction,
            } = &a
            else {
                return (a, b);
            };
            let near = match relation {
                0 => Decimal::Finite {
                    negative: *negative,
                    integer: [&[0, 0, 0], &integer[..]].concat(),
                    fraction: [&fraction[..], &[0, 0, 0, 0, 0]].concat(),
                },
                1 => Decimal::Finite {
                    negative: !negative,
                    integer: integer.clone(),
                    fraction: fraction.clone(),
                },
                2 if !fraction.is_empty() => {
                    let mut fraction = fraction.clone();
                    let at = index.index(fraction.len());
                    fraction[at] = (fraction[at] + 1) % 10;
                    Decimal::Finite {
                        negative: *negative,
                        integer: integer.clone(),
                        fraction,
                    }
                }
                3 => Decimal::Finite {
                    negative: *negative,
                    integer: integer.clone(),
                    fraction: [&fraction[..], &[1]].concat(),
                },
                _ => b,
            };
            (a, near)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn integers_order(a in any_i64(), b in any_i64()) {
        let fixed = |value: i64| KeyValue::Fixed(value as u64);
        for kind in [KeyKind::Int8, KeyKind::Time, KeyKind::Timestamp, KeyKind::TimestampTz, KeyKind::Money] {
            check(kind, fixed(a), fixed(b), a.cmp(&b))?;
        }
        for kind in [KeyKind::Int4, KeyKind::Date] {
            check(kind, fixed(a), fixed(b), (a as i32).cmp(&(b as i32)))?;
        }
        check(KeyKind::Int2, fixed(a), fixed(b), (a as i16).cmp(&(b as i16)))?;
        check(KeyKind::Oid, fixed(a), fixed(b), (a as u32).cmp(&(b as u32)))?;
        check(KeyKind::Unsigned8, fixed(a), fixed(b), (a as u64).cmp(&(b as u64)))?;
        check(KeyKind::Char, fixed(a), fixed(b), (a as u8).cmp(&(b as u8)))?;
        let (x, y) = (a & 1, b & 1);
        check(KeyKind::Bool, fixed(x), fixed(y), x.cmp(&y))?;
    }

    #[test]
    fn floats_order(a in any_f64(), b in any_f64()) {
        check(
            KeyKind::Float8,
            KeyValue::Fixed(a.to_bits()),
            KeyValue::Fixed(b.to_bits()),
            float_order(a, b, a.is_nan(), b.is_nan()),
        )?;
        let (a, b) = (a as f32, b as f32);
        check(
            KeyKind::Float4,
            KeyValue::Fixed(u64::from(a.to_bits())),
            KeyValue::Fixed(u64::from(b.to_bits())),
            float_order(a, b, a.is_nan(), b.is_nan()),
        )?;
    }

    #[test]
    fn numerics_order((a, b) in decimals(), long in any::<[bool; 2]>(), strip in any::<[bool; 2]>()) {
        let order = a.compare(&b);
        let (x, y) = (a.payload(long[0], strip[0]), b.payload(long[1], strip[1]));
        check(KeyKind::Numeric, KeyValue::Bytes(&x), KeyValue::Bytes(&y), order)?;
    }

    #[test]
    fn numerics_order_like_integers(a in any::<i128>(), b in any::<i128>(), shift in 0..100_u32) {
        let (a, b) = (a >> shift, b >> shift);
        let payload = |value: i128| {
            let digits = value.unsigned_abs().to_string();
            Decimal::Finite {
                negative: value < 0,
                integer: digits.bytes().map(|byte| byte - b'0').collect(),
                fraction: Vec::new(),
            }
            .payload(false, true)
        };
        check(
            KeyKind::Numeric,
            KeyValue::Bytes(&payload(a)),
            KeyValue::Bytes(&payload(b)),
            a.cmp(&b),
        )?;
    }

    #[test]
    fn strings_order(a in short_text(), b in short_text()) {
        check(KeyKind::Text, KeyValue::Bytes(&a), KeyValue::Bytes(&b), a.cmp(&b))?;
        let cut = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            while bytes.last() == Some(&b' ') {
                bytes.pop();
            }
            bytes
        };
        let order = cut(&a).cmp(&cut(&b));
        check(KeyKind::Bpchar, KeyValue::Bytes(&a), KeyValue::Bytes(&b), order)?;
        let name = |bytes: &[u8]| {
            let mut name = [0; 64];
            name[..bytes.len()].copy_from_slice(bytes);
            // What stands after the end does not count.
            name[63] = bytes.len() as u8;
            name
        };
        check(KeyKind::Name, KeyValue::Bytes(&name(&a)), KeyValue::Bytes(&name(&b)), a.cmp(&b))?;
    }

    #[test]
    fn bytes_order(a in short_bytes(), b in short_bytes(), cut in 0..8_i32) {
        check(KeyKind::Bytea, KeyValue::Bytes(&a), KeyValue::Bytes(&b), a.cmp(&b))?;
        let bits = |bytes: &[u8], cut: i32| {
            let cut = if bytes.is_empty() { 0 } else { cut };
            let length = bytes.len() as i32 * 8 - cut;
            let mut datum = length.to_le_bytes().to_vec();
            datum.extend_from_slice(bytes);
            if let Some(last) = bytes.last() {
                *datum.last_mut().expect("not empty") = last & (0xFF << cut) as u8;
            }
            (length, datum)
        };
        let ((al, a), (bl, b)) = (bits(&a, cut), bits(&b, 7 - cut));
        let common = a.len().min(b.len());
        let order = a[4..common].cmp(&b[4..common]).then(al.cmp(&bl));
        check(KeyKind::VarBit, KeyValue::Bytes(&a), KeyValue::Bytes(&b), order)?;
    }

    #[test]
    fn fixed_bytes_order(a in any::<[u8; 16]>(), b in any::<[u8; 16]>(), equal in 0..16_usize) {
        let mut b = b;
        b[..equal].copy_from_slice(&a[..equal]);
        check(KeyKind::Uuid, KeyValue::Bytes(&a), KeyValue::Bytes(&b), a.cmp(&b))?;
        check(KeyKind::Macaddr, KeyValue::Bytes(&a[..6]), KeyValue::Bytes(&b[..6]), a[..6].cmp(&b[..6]))?;
        check(KeyKind::Macaddr8, KeyValue::Bytes(&a[..8]), KeyValue::Bytes(&b[..8]), a[..8].cmp(&b[..8]))?;
    }

    #[test]
    fn times_with_zone_order(
        a in (0..86_400_000_000_i64, -57_599..57_600_i32),
        b in (0..86_400_000_000_i64, -57_599..57_600_i32),
        same_instant in any::<bool>(),
    ) {
        let b = if same_instant {
            (a.0 + i64::from(a.1) * 1_000_000 - i64::from(b.1) * 1_000_000, b.1)
        } else {
            b
        };
        let bytes = |(time, zone): (i64, i32)| {
            [&time.to_le_bytes()[..], &zone.to_le_bytes()[..]].concat()
        };
        let instant = |(time, zone): (i64, i32)| time + i64::from(zone) * 1_000_000;
        let order = instant(a).cmp(&instant(b)).then(a.1.cmp(&b.1));
        check(KeyKind::TimeTz, KeyValue::Bytes(&bytes(a)), KeyValue::Bytes(&bytes(b)), order)?;
    }

    #[test]
    fn intervals_order(
        a in (any_i64(), any::<i32>(), any::<i32>()),
        b in (any_i64(), any::<i32>(), any::<i32>()),
        small in any::<bool>(),
    ) {
        let shrink = |(time, day, month): (i64, i32, i32)| {
            if small { (time % 3 * 86_400_000_000, day % 62, month % 3) } else { (time, day, month) }
        };
        let (a, b) = (shrink(a), shrink(b));
        let bytes = |(time, day, month): (i64, i32, i32)| {
            [&time.to_le_bytes()[..], &day.to_le_bytes()[..], &month.to_le_bytes()[..]].concat()
        };
        let span = |(time, day, month): (i64, i32, i32)| {
            i128::from(time) + (i128::from(month) * 30 + i128::from(day)) * 86_400_000_000
        };
        check(
            KeyKind::Interval,
            KeyValue::Bytes(&bytes(a)),
            KeyValue::Bytes(&bytes(b)),
            span(a).cmp(&span(b)),
        )?;
    }

    #[test]
    fn networks_order(
        a in (any::<bool>(), any::<[u8; 16]>(), 0..129_usize),
        b in (any::<bool>(), any::<[u8; 16]>(), 0..129_usize),
        equal_bytes in 0..16_usize,
    ) {
        let mut b = b;
        b.1[..equal_bytes].copy_from_slice(&a.1[..equal_bytes]);
        let datum = |(six, address, bits): (bool, [u8; 16], usize)| {
            let (family, width) = if six { (3, 16) } else { (2, 4) };
            let bits = bits % (width * 8 + 1);
            let mut datum = vec![family, bits as u8];
            datum.extend_from_slice(&address[..width]);
            datum
        };
        let (x, y) = (datum(a), datum(b));
        // As network_cmp_internal: the common bits, their number, then all bits.
        let bit = |bytes: &[u8], index: usize| bytes[2 + index / 8] >> (7 - index % 8) & 1;
        let bits = |bytes: &[u8], count: u8| -> Vec<u8> {
            (0..usize::from(count)).map(|index| bit(bytes, index)).collect()
        };
        let order = x[0].cmp(&y[0]).then_with(|| {
            let common = x[1].min(y[1]);
            bits(&x, common).cmp(&bits(&y, common)).then(x[1].cmp(&y[1])).then(x[2..].cmp(&y[2..]))
        });
        check(KeyKind::Inet, KeyValue::Bytes(&x), KeyValue::Bytes(&y), order)?;
    }

    #[test]
    fn string_prefixes_cover_exactly_their_strings(
        prefix in short_bytes(), value in short_bytes(), descending in any::<bool>(),
    ) {
        let column = KeyColumn { descending, nullable: true, ..column(KeyKind::Bytea) };
        let mut key = KeyBuffer::new();
        encode_string_prefix(&column, &prefix, &mut key).expect("encodes");
        let full = encoded(&column, KeyValue::Bytes(&value));
        prop_assert_eq!(full.starts_with(key.as_slice()), value.starts_with(&prefix));
    }

    #[test]
    fn damaged_images_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        header in prop::option::of((0..40_u16, any::<bool>(), 20..40_u8)),
        kinds in prop::collection::vec(0..26_usize, 1..8),
    ) {
        let mut image = bytes;
        if let Some((natts, nulls, hoff)) = header
            && image.len() >= IMAGE_HEADER_BYTES
        {
            image[18..20].copy_from_slice(&natts.to_le_bytes());
            image[20..22].copy_from_slice(&u16::from(nulls).to_le_bytes());
            image[22] = hoff;
        }
        let definition = any_definition(&kinds);
        let mut key = KeyBuffer::new();
        let result = encode_row(&definition, &image, &mut key);
        if image.len() < IMAGE_HEADER_BYTES {
            let refused = matches!(result, Err(EngineError::Corrupt { .. }));
            prop_assert!(refused);
        }
        // Unchanged against itself, or unreadable.
        if let Ok(unchanged) = key_attributes_unchanged(&definition, &image, &image) {
            prop_assert!(unchanged);
        }
    }

    #[test]
    fn arbitrary_payloads_never_panic(kind in 0..26_usize, bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut key = KeyBuffer::new();
        let kind = KeyKind::all()[kind];
        if encode_value(&column(kind), KeyValue::Bytes(&bytes), &mut key).is_ok() {
            prop_assert!(!key.is_empty());
        }
    }

    #[test]
    fn definitions_survive_their_byte_form(
        kinds in prop::collection::vec(0..26_usize, 1..33),
        cut in any::<prop::sample::Index>(),
        flip in any::<(prop::sample::Index, u8)>(),
    ) {
        let definition = any_definition(&kinds);
        let mut bytes = Vec::new();
        definition.write_bytes(&mut bytes).expect("valid");
        prop_assert_eq!(bytes.len(), definition.bytes_len());
        prop_assert_eq!(IndexDefinition::from_bytes(&bytes).expect("valid"), definition);
        prop_assert!(IndexDefinition::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        let at = flip.0.index(bytes.len());
        bytes[at] = flip.1;
        if let Ok(other) = IndexDefinition::from_bytes(&bytes) {
            let mut again = Vec::new();
            other.write_bytes(&mut again).expect("valid");
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn rows_encode_like_values(rows in prop::collection::vec(row_value(), 1..10), flags in any::<u64>()) {
        let kinds: Vec<KeyKind> = rows.iter().map(|(kind, _)| *kind).collect();
        let mut definition = definition_of(&kinds);
        for (index, column) in definition.columns.iter_mut().enumerate() {
            column.descending = flags >> (index * 2) & 1 == 1;
            column.nulls_first = flags >> (index * 2 + 1) & 1 == 1;
        }
        if flags >> 63 == 1 {
            definition.columns.reverse();
        }
        let values: Vec<Option<&[u8]>> = rows.iter().map(|(_, value)| value.as_deref()).collect();
        for short_headers in [false, true] {
            let image = build_image(&definition.layout, &values, short_headers);
            let mut key = KeyBuffer::new();
            let has_null = encode_row(&definition, &image, &mut key).expect("encodes");
            prop_assert_eq!(has_null.0, values.iter().any(Option::is_none));
            let mut by_value = KeyBuffer::new();
            let mut numbers = Vec::new();
            for (position, column) in definition.columns.iter().enumerate() {
                let value = match values[usize::from(column.attnum) - 1] {
                    None => KeyValue::Null,
                    Some(bytes) => KeyValue::Bytes(bytes),
                };
                encode_value(column, value, &mut by_value).expect("encodes");
                // The first columns' key is a byte prefix of the whole.
                prop_assert!(key.as_slice().starts_with(by_value.as_slice()));
                numbers.push(prefix_number(position + 1, by_value.as_slice()));
            }
            prop_assert_eq!(key.as_slice(), by_value.as_slice());
            let mut of_row = Vec::new();
            prefix_numbers(&definition, &image, &mut key, |number| {
                of_row.push(number);
                Ok(())
            })
            .expect("encodes");
            prop_assert_eq!(of_row, numbers);
        }
    }

    #[test]
    fn fixed_keys_are_those_of_rows(
        columns in prop::collection::vec((0..FIXED_AND_OTHERS.len(), any::<[u8; 16]>(), 0..8_u8), 1..6),
        flags in any::<u64>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let kinds: Vec<KeyKind> = columns.iter().map(|(kind, ..)| FIXED_AND_OTHERS[*kind]).collect();
        let mut definition = definition_of(&kinds);
        for (index, column) in definition.columns.iter_mut().enumerate() {
            column.descending = flags >> (index * 2) & 1 == 1;
            column.nullable = flags >> (index * 2 + 1) & 1 == 1;
        }
        if flags >> 63 == 1 {
            definition.columns.reverse();
        }
        if flags >> 62 & 1 == 1 && columns.len() > 1 {
            definition.columns.remove(0);
        }
        let bytes: i16 = definition
            .columns
            .iter()
            .map(|column| column.kind.width() + i16::from(column.nullable))
            .sum();
        let is_fixed = definition.columns.iter().all(|column| FIXED_AND_OTHERS[..FIXED].contains(&column.kind))
            && !kinds.contains(&KeyKind::Text)
            && bytes <= 16;
        let fixed = FixedKey::of(&definition);
        prop_assert_eq!(fixed.is_some(), is_fixed);
        let Some(fixed) = fixed else { return Ok(()) };

        let values: Vec<Option<&[u8]>> = columns
            .iter()
            .zip(&kinds)
            .map(|((_, bytes, null), kind)| (*null > 0).then_some(&bytes[..kind.width() as usize]))
            .collect();
        let image = build_image(&definition.layout, &values, false);
        let (mut key, mut of_row) = (KeyBuffer::new(), KeyBuffer::new());
        prop_assert_eq!(fixed.encode(&image, &mut key), values.iter().all(Option::is_some));
        // Also of a row that is cut, and of one with fewer attributes.
        let mut fewer = image.clone();
        fewer[18] -= 1;
        for image in [&image[..], &image[..cut.index(image.len())], &fewer[..]] {
            if fixed.encode(image, &mut key) {
                let has_null = encode_row(&definition, image, &mut of_row).expect("encodes").0;
                prop_assert!(!has_null);
                prop_assert_eq!(key.as_slice(), of_row.as_slice());
            }
        }
    }
}

/// Numbers, of which keys at fixed places are made, and some of which none are.
const FIXED_AND_OTHERS: [KeyKind; 13] = [
    KeyKind::Int2,
    KeyKind::Int4,
    KeyKind::Int8,
    KeyKind::Oid,
    KeyKind::Date,
    KeyKind::Time,
    KeyKind::Timestamp,
    KeyKind::TimestampTz,
    KeyKind::Money,
    KeyKind::Unsigned8,
    KeyKind::Bool,
    KeyKind::Uuid,
    KeyKind::Text,
];
const FIXED: usize = 10;

/// A kind and a valid value of it, or NULL.
fn row_value() -> impl Strategy<Value = (KeyKind, Option<Vec<u8>>)> {
    (
        0..26_usize,
        decimal(),
        prop::collection::vec(1..255_u8, 64),
        0..200_usize,
        any::<bool>(),
    )
        .prop_map(|(kind, number, bytes, length, null)| {
            let kind = KeyKind::all()[kind];
            let value = match kind {
                KeyKind::Numeric => number.payload(false, true),
                KeyKind::Inet => [&[2, 24], &bytes[..4]].concat(),
                KeyKind::VarBit => [&12_i32.to_le_bytes()[..], &bytes[..2]].concat(),
                KeyKind::Text | KeyKind::Bpchar | KeyKind::Bytea => {
                    bytes.iter().copied().cycle().take(length).collect()
                }
                _ => bytes[..kind.width() as usize].to_vec(),
            };
            (kind, if null { None } else { Some(value) })
        })
}

fn layout_of(kind: KeyKind) -> AttributeLayout {
    let (align, by_value) = match kind {
        KeyKind::Bool | KeyKind::Char | KeyKind::Uuid | KeyKind::Name => (1, false),
        KeyKind::Int2 => (2, true),
        KeyKind::TimeTz | KeyKind::Interval => (8, false),
        _ => match kind.width() {
            8 => (8, true),
            _ => (4, false),
        },
    };
    AttributeLayout {
        len: kind.width(),
        align,
        by_value,
    }
}

fn definition_of(kinds: &[KeyKind]) -> IndexDefinition {
    IndexDefinition {
        relation: 77,
        unique: true,
        nulls_not_distinct: false,
        columns: kinds
            .iter()
            .enumerate()
            .map(|(index, kind)| KeyColumn {
                attnum: index as u16 + 1,
                kind: *kind,
                descending: index % 3 == 1,
                nulls_first: index % 2 == 1,
                nullable: true,
            })
            .collect(),
        layout: kinds.iter().map(|kind| layout_of(*kind)).collect(),
    }
}

fn any_definition(kinds: &[usize]) -> IndexDefinition {
    definition_of(
        &kinds
            .iter()
            .map(|kind| KeyKind::all()[*kind])
            .collect::<Vec<_>>(),
    )
}

/// A heap tuple as heap_form_tuple lays it out.
fn build_image(
    layout: &[AttributeLayout],
    values: &[Option<&[u8]>],
    short_headers: bool,
) -> Vec<u8> {
    let has_null = values.iter().any(Option::is_none);
    let bitmap_bytes = if has_null {
        values.len().div_ceil(8)
    } else {
        0
    };
    let hoff = (IMAGE_HEADER_BYTES + bitmap_bytes).next_multiple_of(8);
    let mut image = vec![0; hoff];
    image[18..20].copy_from_slice(&(values.len() as u16).to_le_bytes());
    image[20..22].copy_from_slice(&u16::from(has_null).to_le_bytes());
    image[22] = hoff as u8;
    for (index, (layout, value)) in layout.iter().zip(values).enumerate() {
        let Some(bytes) = value else { continue };
        if has_null {
            image[IMAGE_HEADER_BYTES + index / 8] |= 1 << (index % 8);
        }
        let short = layout.len == -1 && short_headers && bytes.len() <= 126;
        if !short {
            let aligned = (image.len() - hoff).next_multiple_of(usize::from(layout.align)) + hoff;
            image.resize(aligned, 0);
        }
        match (layout.len, short) {
            (-1, true) => image.push((bytes.len() as u8 + 1) << 1 | 1),
            (-1, false) => image.extend_from_slice(&((bytes.len() as u32 + 4) << 2).to_le_bytes()),
            _ => {}
        }
        image.extend_from_slice(bytes);
    }
    image
}

#[test]
fn nulls_stand_where_told() {
    for (descending, nulls_first) in [(false, false), (false, true), (true, false), (true, true)] {
        let column = KeyColumn {
            descending,
            nulls_first,
            nullable: true,
            ..column(KeyKind::Int4)
        };
        let null = encoded(&column, KeyValue::Null);
        for value in [i32::MIN, 0, i32::MAX] {
            let value = encoded(&column, KeyValue::Fixed(value as u64));
            let expected = if nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            assert_eq!(null.cmp(&value), expected);
        }
    }
}

#[test]
fn refuses_null_in_a_not_null_column() {
    let mut key = KeyBuffer::new();
    let result = encode_value(&column(KeyKind::Int4), KeyValue::Null, &mut key);
    assert!(matches!(result, Err(EngineError::Corrupt { .. })));
}

#[test]
fn a_row_with_null_in_a_not_null_column_has_no_key() {
    let mut definition = definition_of(&[KeyKind::Int4, KeyKind::Int8]);
    let image = build_image(&definition.layout, &[Some(&[1, 0, 0, 0]), None], true);
    for column in &mut definition.columns {
        column.nullable = false;
    }
    let mut key = KeyBuffer::new();
    let has_null = encode_row(&definition, &image, &mut key).expect("is no error");
    assert!(has_null.0);
    assert!(key.is_empty());
    definition.columns[1].nullable = true;
    encode_row(&definition, &image, &mut key).expect("encodes");
    assert!(!key.is_empty());
}

#[test]
fn refuses_keys_beyond_the_limit() {
    let text = vec![b'x'; KEY_BYTES_MAX];
    let mut key = KeyBuffer::new();
    encode_value(
        &column(KeyKind::Text),
        KeyValue::Bytes(&text[1..]),
        &mut key,
    )
    .expect("fits");
    assert_eq!(key.len(), KEY_BYTES_MAX);
    key.clear();
    let result = encode_value(&column(KeyKind::Text), KeyValue::Bytes(&text), &mut key);
    assert!(
        matches!(result, Err(EngineError::KeyTooLong { max: KEY_BYTES_MAX, bytes }) if bytes > KEY_BYTES_MAX)
    );
}

#[test]
fn refuses_a_zero_byte_in_text() {
    let mut key = KeyBuffer::new();
    let result = encode_value(&column(KeyKind::Text), KeyValue::Bytes(b"a\0b"), &mut key);
    assert!(matches!(result, Err(EngineError::Corrupt { .. })));
}

#[test]
fn attributes_beyond_the_tuple_are_null() {
    let kinds = [KeyKind::Int4, KeyKind::Text, KeyKind::Int8];
    let definition = definition_of(&kinds);
    let image = build_image(
        &definition.layout,
        &[Some(&[1, 0, 0, 0]), Some(b"abc")],
        true,
    );
    let mut reader = ImageReader::new(&definition.layout, &image).expect("header");
    assert_eq!(reader.attribute(3).expect("absent"), Attribute::Null);
    assert_eq!(reader.attribute(2).expect("text"), Attribute::Bytes(b"abc"));
    assert_eq!(
        reader.attribute(1).expect("going back"),
        Attribute::Bytes(&[1, 0, 0, 0])
    );
    assert!(reader.attribute(4).is_err());
    assert!(reader.attribute(0).is_err());
}

#[test]
fn finds_attributes_after_c_strings() {
    let layout = [
        AttributeLayout {
            len: -2,
            align: 1,
            by_value: false,
        },
        AttributeLayout {
            len: 4,
            align: 4,
            by_value: true,
        },
    ];
    let mut image = vec![0; 24];
    image[18] = 2;
    image[22] = 24;
    image.extend_from_slice(b"hello\0\0\0\x2A\0\0\0");
    let mut reader = ImageReader::new(&layout, &image).expect("header");
    assert_eq!(
        reader.attribute(2).expect("int"),
        Attribute::Bytes(&[42, 0, 0, 0])
    );
    assert_eq!(
        reader.attribute(1).expect("string"),
        Attribute::Bytes(b"hello")
    );
}

#[test]
fn external_and_compressed_data_are_refused() {
    let layout = [AttributeLayout {
        len: -1,
        align: 4,
        by_value: false,
    }];
    for header in [[0x01, 18, 0, 0], [0x42, 0, 0, 0]] {
        let mut image = vec![0; 24];
        image[18] = 1;
        image[22] = 24;
        image.extend_from_slice(&header);
        image.extend_from_slice(&[0; 32]);
        let mut reader = ImageReader::new(&layout, &image).expect("header");
        assert!(matches!(
            reader.attribute(1),
            Err(EngineError::Corrupt { .. })
        ));
    }
}

/// The stored numbers of the kinds and the byte form never change.
#[test]
fn byte_form_is_stable() {
    for (index, kind) in KeyKind::all().iter().enumerate() {
        assert_eq!(*kind as usize, index + 1);
        assert_eq!(KeyKind::from_byte(*kind as u8), Some(*kind));
    }
    assert_eq!(KeyKind::from_byte(0), None);
    assert_eq!(KeyKind::from_byte(27), None);
    let mut bytes = Vec::new();
    definition_of(&[KeyKind::Int4, KeyKind::Text])
        .write_bytes(&mut bytes)
        .expect("valid");
    assert_eq!(
        bytes,
        [
            1, 1, 77, 0, 0, 0, 2, 0, 2, 0, // header
            1, 0, 3, 4, 2, 0, 16, 7, // columns
            4, 0, 4, 0, 0xFF, 0xFF, 4, 0, // attributes
        ]
    );
}
