//! Arrays, ranges and multiranges against a model of PostgreSQL's comparisons of them.
//!
//! What they hold is numbered in its order, so that the model compares numbers.

mod held;

use std::cmp::Ordering;

use proptest::prelude::*;

use held::{Held, held, some_held};

use super::order::{check, check_ends};
use super::*;

/// Bytes that PostgreSQL aligns from: a varlena's header, which no value here has.
const HEADER: [u8; 4] = [0; 4];

/// Flags of a range, as `utils/rangetypes.h` has them.
const EMPTY: u8 = 1;
const LOWER_INCLUSIVE: u8 = 2;
const UPPER_INCLUSIVE: u8 = 4;
const LOWER_INFINITE: u8 = 8;
const UPPER_INFINITE: u8 = 16;

fn element(kind: KeyKind) -> ElementKind {
    ElementKind::of(kind).expect("holds no others")
}

fn pad(out: &mut Vec<u8>, align: usize) {
    out.resize(out.len().next_multiple_of(align), 0);
}

/// Appends a value; `packed`: without padding if its header is short.
fn push(out: &mut Vec<u8>, held: &Held, value: &[u8], is_short: bool, is_packed: bool) {
    let is_varlena = held.kind.width() < 0;
    let is_short = is_varlena && is_short && value.len() <= 126;
    if !(is_short && is_packed) {
        pad(out, held.align);
    }
    match (is_varlena, is_short) {
        (true, true) => out.push((value.len() as u8 + 1) << 1 | 1),
        (true, false) => out.extend_from_slice(&((value.len() as u32 + 4) << 2).to_le_bytes()),
        _ => {}
    }
    out.extend_from_slice(value);
}

fn push_numbers(out: &mut Vec<u8>, numbers: &[u32]) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

/// An array: a value's number, or NULL, and which of its forms; a length and a lower bound for each
/// dimension.
#[derive(Clone, Debug)]
struct Array {
    elements: Vec<Option<(usize, bool)>>,
    dimensions: Vec<(u32, i32)>,
    is_short: bool,
    has_bitmap: bool,
}

impl Array {
    fn payload(&self, held: &Held) -> Vec<u8> {
        let mut out = HEADER.to_vec();
        push_numbers(&mut out, &[self.dimensions.len() as u32, 0, 23]);
        for (length, _) in &self.dimensions {
            push_numbers(&mut out, &[*length]);
        }
        for (_, bound) in &self.dimensions {
            push_numbers(&mut out, &[*bound as u32]);
        }
        if self.has_bitmap || self.elements.iter().any(Option::is_none) {
            let mut bitmap = vec![0; self.elements.len().div_ceil(8)];
            for (at, element) in self.elements.iter().enumerate() {
                bitmap[at / 8] |= u8::from(element.is_some()) << (at % 8);
            }
            out.extend_from_slice(&bitmap);
            pad(&mut out, 8);
            let start = (out.len() as u32).to_le_bytes();
            out[8..12].copy_from_slice(&start);
        }
        pad(&mut out, 8);
        for (number, form) in self.elements.iter().flatten() {
            let value = &held.values[number % held.values.len()][usize::from(*form)];
            push(&mut out, held, value, self.is_short, false);
            pad(&mut out, held.align);
        }
        out.split_off(HEADER.len())
    }

    /// array_cmp.
    fn compare(&self, other: &Array, held: &Held) -> Ordering {
        for (one, two) in self.elements.iter().zip(&other.elements) {
            let order = match (one, two) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some((one, _)), Some((two, _))) => {
                    (one % held.values.len()).cmp(&(two % held.values.len()))
                }
            };
            if order.is_ne() {
                return order;
            }
        }
        let lengths = |array: &Array| -> Vec<u32> {
            array.dimensions.iter().map(|(length, _)| *length).collect()
        };
        let bounds = |array: &Array| -> Vec<i32> {
            array.dimensions.iter().map(|(_, bound)| *bound).collect()
        };
        self.elements
            .len()
            .cmp(&other.elements.len())
            .then(self.dimensions.len().cmp(&other.dimensions.len()))
            .then_with(|| lengths(self).cmp(&lengths(other)))
            .then_with(|| bounds(self).cmp(&bounds(other)))
    }
}

fn bound() -> impl Strategy<Value = i32> {
    prop_oneof![5 => Just(1), 1 => Just(0), 1 => any::<i32>()]
}

prop_compose! {
    fn array()(
        elements in prop::collection::vec(
            prop::option::weighted(0.8, (0..6_usize, any::<bool>())), 0..13),
        shape in 0..4_usize,
        bounds in [bound(), bound(), bound()],
        is_short in any::<bool>(),
        has_bitmap in prop::bool::weighted(0.1),
    ) -> Array {
        let count = elements.len() as u32;
        let lengths = match (count, shape) {
            (0, _) => vec![],
            (_, 1) if count.is_multiple_of(2) => vec![2, count / 2],
            (_, 2) if count.is_multiple_of(2) => vec![count / 2, 2],
            (_, 3) if count.is_multiple_of(4) => vec![2, count / 4, 2],
            _ => vec![count],
        };
        let dimensions = lengths.into_iter().zip(bounds).collect();
        Array { elements, dimensions, is_short, has_bitmap }
    }
}

/// The bounds of a range: a value's number, which of its forms, and whether it is in the range.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    lower: Option<(usize, bool, bool)>,
    upper: Option<(usize, bool, bool)>,
    is_short: bool,
}

impl Bounds {
    fn flags(&self) -> u8 {
        let of = |bound: Option<(usize, bool, bool)>, inclusive: u8, infinite: u8| match bound {
            None => infinite,
            Some((_, _, true)) => inclusive,
            Some(_) => 0,
        };
        of(self.lower, LOWER_INCLUSIVE, LOWER_INFINITE)
            | of(self.upper, UPPER_INCLUSIVE, UPPER_INFINITE)
    }

    fn push(&self, out: &mut Vec<u8>, held: &Held) {
        for (number, form, _) in [self.lower, self.upper].into_iter().flatten() {
            let value = &held.values[number % held.values.len()][usize::from(form)];
            push(out, held, value, self.is_short, true);
        }
    }

    /// range_cmp_bounds, of both.
    fn compare(&self, other: &Bounds, held: &Held) -> Ordering {
        let count = held.values.len();
        // Half a step below or above the value where it is not in the range.
        let lower = |bounds: &Bounds| match bounds.lower {
            None => i64::MIN,
            Some((number, _, inclusive)) => 2 * (number % count) as i64 + i64::from(!inclusive),
        };
        let upper = |bounds: &Bounds| match bounds.upper {
            None => i64::MAX,
            Some((number, _, inclusive)) => 2 * (number % count) as i64 - i64::from(!inclusive),
        };
        lower(self)
            .cmp(&lower(other))
            .then(upper(self).cmp(&upper(other)))
    }
}

prop_compose! {
    fn bounds()(
        lower in prop::option::weighted(0.8, (0..6_usize, any::<bool>(), any::<bool>())),
        upper in prop::option::weighted(0.8, (0..6_usize, any::<bool>(), any::<bool>())),
        is_short in any::<bool>(),
    ) -> Bounds {
        Bounds { lower, upper, is_short }
    }
}

fn range(bounds: Option<&Bounds>, held: &Held) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    push_numbers(&mut out, &[3904]);
    if let Some(bounds) = bounds {
        bounds.push(&mut out, held);
    }
    out.push(bounds.map_or(EMPTY, Bounds::flags));
    out.split_off(HEADER.len())
}

fn multirange(ranges: &[Bounds], held: &Held) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    push_numbers(&mut out, &[4451, ranges.len() as u32]);
    // Where the ranges are, which a reader of all does not need.
    out.resize(out.len() + 4 * ranges.len().saturating_sub(1), 0xEE);
    out.extend(ranges.iter().map(Bounds::flags));
    for range in ranges {
        pad(&mut out, held.align);
        range.push(&mut out, held);
    }
    out.split_off(HEADER.len())
}

/// A value of a kind that holds this one.
pub(super) fn holding(kind: KeyKind, value: &[u8]) -> Vec<u8> {
    let (KeyKind::Range(held) | KeyKind::Array(held) | KeyKind::Multirange(held)) = kind else {
        panic!("{kind:?} holds nothing");
    };
    let held = Held {
        kind: held.kind(),
        align: usize::from(held.align()),
        values: vec![[value.to_vec(), value.to_vec()]],
    };
    let bounds = Bounds {
        lower: Some((0, false, true)),
        upper: None,
        is_short: true,
    };
    match kind {
        KeyKind::Array(_) => Array {
            elements: vec![Some((0, false)), None],
            dimensions: vec![(2, 1)],
            is_short: false,
            has_bitmap: false,
        }
        .payload(&held),
        KeyKind::Range(_) => range(Some(&bounds), &held),
        _ => multirange(&[bounds], &held),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arrays_order(a in array(), b in array(), equal in 0..13_usize) {
        let mut b = b;
        for at in 0..equal.min(a.elements.len()).min(b.elements.len()) {
            b.elements[at] = a.elements[at].map(|(number, form)| (number, !form));
        }
        for held in some_held() {
            let kind = KeyKind::Array(element(held.kind));
            let (x, y) = (a.payload(&held), b.payload(&held));
            let order = a.compare(&b, &held);
            check(kind, KeyValue::Bytes(&x), KeyValue::Bytes(&y), order)?;
        }
    }

    #[test]
    fn ranges_order(a in prop::option::weighted(0.9, bounds()), b in prop::option::weighted(0.9, bounds())) {
        for held in some_held() {
            let kind = KeyKind::Range(element(held.kind));
            let (x, y) = (range(a.as_ref(), &held), range(b.as_ref(), &held));
            let order = match (&a, &b) {
                (Some(a), Some(b)) => a.compare(b, &held),
                _ => a.is_some().cmp(&b.is_some()),
            };
            check(kind, KeyValue::Bytes(&x), KeyValue::Bytes(&y), order)?;
        }
    }

    #[test]
    fn multiranges_order(
        a in prop::collection::vec(bounds(), 0..5),
        b in prop::collection::vec(bounds(), 0..5),
        equal in 0..5_usize,
    ) {
        let mut b = b;
        let equal = equal.min(a.len()).min(b.len());
        b[..equal].copy_from_slice(&a[..equal]);
        for held in some_held() {
            let kind = KeyKind::Multirange(element(held.kind));
            let (x, y) = (multirange(&a, &held), multirange(&b, &held));
            let different = a.iter().zip(&b).map(|(a, b)| a.compare(b, &held));
            let order = different
                .into_iter()
                .find(|order| order.is_ne())
                .unwrap_or(a.len().cmp(&b.len()));
            check(kind, KeyValue::Bytes(&x), KeyValue::Bytes(&y), order)?;
        }
    }

    /// Cut, or with a byte changed, a value gives a key or an error.
    #[test]
    fn damaged_containers_never_panic(
        array in array(),
        bounds in prop::collection::vec(bounds(), 0..4),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        descending in any::<bool>(),
    ) {
        for held in some_held() {
            let of = element(held.kind);
            for (kind, bytes) in [
                (KeyKind::Array(of), array.payload(&held)),
                (KeyKind::Range(of), range(bounds.first(), &held)),
                (KeyKind::Multirange(of), multirange(&bounds, &held)),
            ] {
                let column = KeyColumn { descending, ..column(kind) };
                let at = at.index(bytes.len());
                let mut changed = bytes.clone();
                changed[at] = byte;
                for damaged in [&bytes[..at], &changed] {
                    let mut key = KeyBuffer::new();
                    if encode_value(&column, KeyValue::Bytes(damaged), &mut key).is_ok() {
                        prop_assert!(!key.is_empty());
                    }
                    key.clear();
                    if encode_end(&column, KeyValue::Bytes(damaged), &mut key).is_ok() {
                        prop_assert!(!key.is_empty() && key.len() <= KEY_BYTES_MAX);
                    }
                }
            }
        }
    }
}

/// The alignments of elements are those of `pg_type.dat`.
#[test]
fn elements_are_aligned_as_their_types_are() {
    for held in some_held() {
        assert_eq!(usize::from(element(held.kind).align()), held.align);
    }
    for kind in all_kinds() {
        match kind {
            KeyKind::Range(_) | KeyKind::Array(_) | KeyKind::Multirange(_) => {
                assert_eq!(ElementKind::of(kind), None);
            }
            kind => assert_eq!(element(kind).kind(), kind),
        }
    }
}

/// Values with strings, or with so many elements, that are about as long as keys may be, and
/// longer.
#[test]
fn an_end_longer_than_any_key_lies_where_its_container_does() {
    let mut strings = Vec::new();
    for length in (KEY_BYTES_MAX - 9..KEY_BYTES_MAX + 4).chain([2 * KEY_BYTES_MAX]) {
        for last in [&b""[..], b"\t", b"b", b"b!"] {
            strings.push([&vec![b'a'; length][..], last].concat());
        }
    }
    strings.sort();
    strings.dedup();
    let held = held(
        KeyKind::Text,
        4,
        &strings.iter().map(Vec::as_slice).collect::<Vec<_>>(),
    );
    let text = element(KeyKind::Text);
    let (mut arrays, mut ranges, mut several) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..strings.len() {
        let lower = Bounds {
            lower: Some((number, false, true)),
            upper: None,
            is_short: true,
        };
        arrays.push(Array {
            elements: vec![Some((number, false)), None],
            dimensions: vec![(2, 1)],
            is_short: false,
            has_bitmap: false,
        });
        several.push(multirange(&[lower], &held));
        ranges.push(range(Some(&lower), &held));
    }
    let payloads: Vec<_> = arrays.iter().map(|array| array.payload(&held)).collect();
    check_ends(KeyKind::Array(text), &payloads, |a, b| {
        arrays[a].compare(&arrays[b], &held)
    });
    check_ends(KeyKind::Range(text), &ranges, |a, b| a.cmp(&b));
    check_ends(KeyKind::Multirange(text), &several, |a, b| a.cmp(&b));

    let numbers = some_held().remove(2);
    let mut arrays = Vec::new();
    for count in (KEY_BYTES_MAX / 5 - 4..KEY_BYTES_MAX / 5 + 3).chain([2000]) {
        for last in [1, 2] {
            let mut elements = vec![Some((1, false)); count];
            elements.push(Some((last, false)));
            arrays.push(Array {
                elements,
                dimensions: vec![(count as u32 + 1, 1)],
                is_short: false,
                has_bitmap: false,
            });
        }
    }
    let payloads: Vec<_> = arrays.iter().map(|array| array.payload(&numbers)).collect();
    check_ends(KeyKind::Array(element(KeyKind::Int4)), &payloads, |a, b| {
        arrays[a].compare(&arrays[b], &numbers)
    });
    let vectors: Vec<_> = (KEY_BYTES_MAX / 4 - 3..KEY_BYTES_MAX / 4 + 3)
        .map(|count| super::order::oidvector(&vec![7; count]))
        .collect();
    check_ends(KeyKind::OidVector, &vectors, |a, b| a.cmp(&b));
}
