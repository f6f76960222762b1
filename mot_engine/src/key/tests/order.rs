//! The order of encoded values is the order of the values, ascending and descending; prefixes are
//! told apart.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::decimal::{Decimal, decimals};
use super::*;
use crate::errors::EngineError;

/// Checks the order of two values of `kind` ascending and descending, and the prefix rule.
pub(super) fn check(
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
    for column in [ascending, descending] {
        let (first, second) = (encoded(&column, left), encoded(&column, right));
        let key = [&first[..], &second].concat();
        let length = column.has_plain_length().then_some(first.len());
        prop_assert_eq!(column.encoded_length(&key), length, "{:?}", kind);
        prop_assert_eq!(column.encoded_length(&first[..first.len() - 1]), None);
    }
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

fn oids() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![0..3_u32, any::<u32>()], 0..5)
}

/// An oidvector as PostgreSQL has it: a flat array of one dimension, from 0.
pub(super) fn oidvector(oids: &[u32]) -> Vec<u8> {
    [1, 0, 26, oids.len() as u32, 0]
        .iter()
        .chain(oids)
        .flat_map(|number| number.to_le_bytes())
        .collect()
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
        check(KeyKind::Enum, fixed(a), fixed(b), (a as u32).cmp(&(b as u32)))?;
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
    fn tids_order(a in any::<(u32, u16)>(), b in any::<(u32, u16)>(), is_near in any::<bool>()) {
        let b = if is_near { (a.0 ^ b.0 & 0x0001_0001, b.1) } else { b };
        // The block's upper half lies first.
        let bytes = |(block, offset): (u32, u16)| {
            [(block >> 16) as u16, block as u16, offset].map(u16::to_le_bytes).concat()
        };
        check(KeyKind::Tid, KeyValue::Bytes(&bytes(a)), KeyValue::Bytes(&bytes(b)), a.cmp(&b))?;
    }

    #[test]
    fn oidvectors_order(a in oids(), b in oids()) {
        let (x, y) = (oidvector(&a), oidvector(&b));
        let order = a.len().cmp(&b.len()).then_with(|| a.cmp(&b));
        check(KeyKind::OidVector, KeyValue::Bytes(&x), KeyValue::Bytes(&y), order)?;
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

/// On which side of an end every key lies that there can be, for values about as long as keys can
/// be and longer.
pub(super) fn check_ends(
    kind: KeyKind,
    values: &[Vec<u8>],
    compare: impl Fn(usize, usize) -> Ordering,
) {
    let mut cut = 0;
    for (descending, nullable) in [(false, false), (false, true), (true, false), (true, true)] {
        let column = KeyColumn {
            descending,
            nullable,
            ..column(kind)
        };
        let ends: Vec<Vec<u8>> = values
            .iter()
            .map(|value| {
                let mut end = KeyBuffer::new();
                encode_end(&column, KeyValue::Bytes(value), &mut end).expect("any length");
                end.as_slice().to_vec()
            })
            .collect();
        for (stored, value) in values.iter().enumerate() {
            let mut key = KeyBuffer::new();
            if encode_value(&column, KeyValue::Bytes(value), &mut key).is_err() {
                cut += 1;
                continue;
            }
            for (asked, end) in ends.iter().enumerate() {
                let order = compare(stored, asked);
                let order = if descending { order.reverse() } else { order };
                let lengths = (value.len(), values[asked].len());
                assert_eq!(key.as_slice().cmp(end), order, "{column:?}, {lengths:?}");
                assert_eq!(key.as_slice().starts_with(end), order.is_eq());
            }
        }
    }
    assert!(cut > 0, "no value is longer than a key");
}

#[test]
fn an_end_longer_than_any_key_lies_where_its_value_does() {
    let strings = |fill: u8| {
        let lengths = (KEY_BYTES_MAX / 2 - 3..KEY_BYTES_MAX / 2 + 2)
            .chain(KEY_BYTES_MAX - 5..KEY_BYTES_MAX + 3)
            .chain([2 * KEY_BYTES_MAX]);
        let mut values = Vec::new();
        for length in lengths {
            values.push(vec![fill; length]);
            for last in [b'\t', b' ', b'b'] {
                let mut value = vec![fill; length];
                value.push(last);
                values.push(value.clone());
                value.push(b'!');
                values.push(value);
            }
        }
        values
    };
    let blank = |bytes: &[u8]| {
        let trimmed = String::from_utf8(bytes.to_vec()).expect("ASCII");
        trimmed.trim_end_matches(' ').to_owned()
    };
    let texts = strings(b'a');
    check_ends(KeyKind::Text, &texts, |a, b| texts[a].cmp(&texts[b]));
    check_ends(KeyKind::Bpchar, &texts, |a, b| {
        blank(&texts[a]).cmp(&blank(&texts[b]))
    });
    let blanks = strings(b' ');
    check_ends(KeyKind::Bpchar, &blanks, |a, b| {
        blank(&blanks[a]).cmp(&blank(&blanks[b]))
    });
    for fill in [0, 1, 0xFF] {
        let bytes = strings(fill);
        check_ends(KeyKind::Bytea, &bytes, |a, b| bytes[a].cmp(&bytes[b]));
        let bits: Vec<Vec<u8>> = bytes
            .iter()
            .map(|bytes| {
                let count = (8 * bytes.len()) as i32;
                [&count.to_le_bytes(), &bytes[..]].concat()
            })
            .collect();
        check_ends(KeyKind::VarBit, &bits, |a, b| bytes[a].cmp(&bytes[b]));
    }
    let mut numbers = Vec::new();
    for digits in (2 * KEY_BYTES_MAX - 20..2 * KEY_BYTES_MAX + 8).chain([5 * KEY_BYTES_MAX]) {
        for (negative, last) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
            let mut integer = vec![1; digits];
            integer.push(last);
            numbers.push(Decimal::Finite {
                negative,
                integer,
                fraction: Vec::new(),
            });
        }
    }
    let payloads: Vec<Vec<u8>> = numbers
        .iter()
        .map(|number| number.payload(true, true))
        .collect();
    check_ends(KeyKind::Numeric, &payloads, |a, b| {
        numbers[a].compare(&numbers[b])
    });
}
