//! tsvector and tsquery against models of them, laid out and compared as PostgreSQL does.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::order::{check, check_ends};
use super::*;

/// A lexeme and its positions, each with the weight in its upper two bits.
type Lexeme = (Vec<u8>, Option<Vec<u16>>);

/// With `gap` unused bytes between lexemes, and those in another order.
fn tsvector(lexemes: &[Lexeme], is_reversed: bool) -> Vec<u8> {
    let mut places = vec![0; lexemes.len()];
    let mut data: Vec<u8> = Vec::new();
    let mut order: Vec<usize> = (0..lexemes.len()).collect();
    if is_reversed {
        order.reverse();
    }
    for at in order {
        let (text, positions) = &lexemes[at];
        // So that the length hangs on the lexemes alone.
        data.resize(data.len().next_multiple_of(2), 0);
        places[at] = data.len();
        data.extend_from_slice(text);
        if let Some(positions) = positions {
            data.resize(data.len().next_multiple_of(2), 0);
            data.extend_from_slice(&(positions.len() as u16).to_le_bytes());
            data.extend(positions.iter().flat_map(|position| position.to_le_bytes()));
        }
    }
    data.resize(data.len().next_multiple_of(2), 0);
    let mut out = (lexemes.len() as u32).to_le_bytes().to_vec();
    for ((text, positions), place) in lexemes.iter().zip(places) {
        let entry =
            u32::from(positions.is_some()) | (text.len() as u32) << 1 | (place as u32) << 12;
        out.extend_from_slice(&entry.to_le_bytes());
    }
    [out, data].concat()
}

/// silly_cmp_tsvector, of values that are so long.
fn compare_tsvectors(one: (&[Lexeme], usize), other: (&[Lexeme], usize)) -> Ordering {
    let numbers = one.1.cmp(&other.1).then(one.0.len().cmp(&other.0.len()));
    let lexemes = one.0.iter().zip(other.0).map(|((a, of_a), (b, of_b))| {
        let has_positions = of_b.is_some().cmp(&of_a.is_some());
        let positions = || {
            let (Some(a), Some(b)) = (of_a, of_b) else {
                return Ordering::Equal;
            };
            let pairs = a.iter().zip(b).map(|(a, b)| {
                let (place, weight) = (
                    |position: &u16| position & 0x3FFF,
                    |position: &u16| position >> 14,
                );
                place(b).cmp(&place(a)).then(weight(b).cmp(&weight(a)))
            });
            b.len().cmp(&a.len()).then_with(|| first(pairs))
        };
        has_positions.then(a.cmp(b)).then_with(positions)
    });
    numbers.then_with(|| first(lexemes))
}

fn first(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn words() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![Just(b'a'), 1..=255_u8], 1..5)
}

fn lexemes() -> impl Strategy<Value = Vec<Lexeme>> {
    let position = prop_oneof![
        1..4_u16,
        (0..4_u16).prop_map(|weight| weight << 14 | 1),
        1..u16::MAX
    ];
    let positions = prop::option::of(prop::collection::vec(position, 1..3));
    prop::collection::vec((words(), positions), 0..4)
}

/// A node of a query.
#[derive(Clone, Debug)]
enum Query {
    /// Checksum and text.
    Operand(i32, Vec<u8>),
    Not(Box<Query>),
    /// Operator, distance, and the children.
    Two(u8, u16, Box<Query>, Box<Query>),
}

const AND: u8 = 2;
const PHRASE: u8 = 4;

impl Query {
    fn nodes(&self) -> u32 {
        match self {
            Query::Operand(..) => 1,
            Query::Not(child) => 1 + child.nodes(),
            Query::Two(_, _, one, other) => 1 + one.nodes() + other.nodes(),
        }
    }

    fn push(&self, nodes: &mut Vec<u8>, texts: &mut Vec<u8>) {
        match self {
            Query::Operand(checksum, text) => {
                // A weight and a prefix mark, which do not count.
                nodes.extend_from_slice(&[1, checksum.to_le_bytes()[0] & 15, 1, 0]);
                nodes.extend_from_slice(&checksum.to_le_bytes());
                let place = text.len() as u32 | (texts.len() as u32) << 12;
                nodes.extend_from_slice(&place.to_le_bytes());
                texts.extend_from_slice(text);
                texts.push(0);
            }
            Query::Not(child) => {
                nodes.extend_from_slice(&[2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                child.push(nodes, texts);
            }
            Query::Two(operator, distance, one, other) => {
                let [low, high] = distance.to_le_bytes();
                nodes.extend_from_slice(&[2, *operator, low, high]);
                nodes.extend_from_slice(&(1 + one.nodes()).to_le_bytes());
                nodes.extend_from_slice(&[0; 4]);
                one.push(nodes, texts);
                other.push(nodes, texts);
            }
        }
    }

    fn payload(query: Option<&Query>) -> Vec<u8> {
        let mut nodes = query.map_or(0, Query::nodes).to_le_bytes().to_vec();
        let mut texts = Vec::new();
        if let Some(query) = query {
            query.push(&mut nodes, &mut texts);
        }
        [nodes, texts].concat()
    }

    /// QTNodeCompare.
    fn compare(&self, other: &Query) -> Ordering {
        match (self, other) {
            (Query::Operand(a, text), Query::Operand(b, other)) => b.cmp(a).then(text.cmp(other)),
            (Query::Operand(..), _) => Ordering::Greater,
            (_, Query::Operand(..)) => Ordering::Less,
            (Query::Not(one), Query::Not(other)) => one.compare(other),
            (Query::Not(_), _) => Ordering::Greater,
            (_, Query::Not(_)) => Ordering::Less,
            (Query::Two(a, of_a, a1, a2), Query::Two(b, of_b, b1, b2)) => {
                let distances = || match *a == PHRASE {
                    true => of_b.cmp(of_a),
                    false => Ordering::Equal,
                };
                let children = || a1.compare(b1).then_with(|| a2.compare(b2));
                b.cmp(a).then_with(children).then_with(distances)
            }
        }
    }
}

/// CompareTSQ.
fn compare_queries(one: Option<&Query>, other: Option<&Query>) -> Ordering {
    let nodes = |query: Option<&Query>| query.map_or(0, Query::nodes);
    let bytes = |query| Query::payload(query).len();
    let trees = || match (one, other) {
        (Some(one), Some(other)) => one.compare(other),
        _ => Ordering::Equal,
    };
    let numbers = nodes(one).cmp(&nodes(other));
    numbers
        .then_with(|| bytes(one).cmp(&bytes(other)))
        .then_with(trees)
}

fn queries() -> impl Strategy<Value = Option<Query>> {
    let checksum = prop_oneof![-1..2, any::<i32>()];
    let operand = (checksum, words()).prop_map(|(checksum, text)| Query::Operand(checksum, text));
    let tree = operand.prop_recursive(4, 8, 2, |inner| {
        let two = (AND..=PHRASE, 0..3_u16, inner.clone(), inner.clone());
        prop_oneof![
            1 => inner.prop_map(|child| Query::Not(Box::new(child))),
            3 => two.prop_map(|(operator, distance, one, other)| {
                Query::Two(operator, distance, Box::new(one), Box::new(other))
            }),
        ]
    });
    prop::option::weighted(0.9, tree)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn tsvectors_order(one in lexemes(), mut other in lexemes(), same in 0..4_usize, reversed in any::<[bool; 2]>()) {
        let same = same.min(one.len()).min(other.len());
        other[..same].clone_from_slice(&one[..same]);
        let (a, b) = (tsvector(&one, reversed[0]), tsvector(&other, reversed[1]));
        let order = compare_tsvectors((&one, a.len()), (&other, b.len()));
        check(KeyKind::TsVector, KeyValue::Bytes(&a), KeyValue::Bytes(&b), order)?;
    }

    #[test]
    fn tsqueries_order(one in queries(), other in queries()) {
        let (a, b) = (Query::payload(one.as_ref()), Query::payload(other.as_ref()));
        let order = compare_queries(one.as_ref(), other.as_ref());
        check(KeyKind::TsQuery, KeyValue::Bytes(&a), KeyValue::Bytes(&b), order)?;
    }

    /// Trees of the same form, which mostly differ in what comes last.
    #[test]
    fn alike_tsqueries_order(
        checksums in any::<[bool; 4]>(),
        operators in prop::array::uniform2(AND..=PHRASE),
        distances in prop::array::uniform2(1..3_u16),
    ) {
        let tree = |at: usize| {
            let operand = |of: usize| Box::new(Query::Operand(i32::from(checksums[of]) - 1, vec![b'a']));
            let inner = Query::Two(PHRASE, distances[at], operand(at), operand(2));
            Query::Two(operators[at], distances[1 - at], Box::new(inner), operand(3))
        };
        let (one, other) = (tree(0), tree(1));
        let (a, b) = (Query::payload(Some(&one)), Query::payload(Some(&other)));
        let order = compare_queries(Some(&one), Some(&other));
        check(KeyKind::TsQuery, KeyValue::Bytes(&a), KeyValue::Bytes(&b), order)?;
    }

    /// A cut or changed image gives a key or an error.
    #[test]
    fn damaged_images_are_keys_or_refused(
        lexemes in lexemes(),
        query in queries(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let images = [
            (KeyKind::TsVector, tsvector(&lexemes, false)),
            (KeyKind::TsQuery, Query::payload(query.as_ref())),
        ];
        for (kind, bytes) in images {
            encode_damaged(kind, bytes, (at, byte, cut));
        }
    }
}

/// A query whose nodes go round in circles, and one that is deeper than any stack.
#[test]
fn endless_and_deep_queries_end() {
    let node = |left: u32| [&[2, AND, 0, 0][..], &left.to_le_bytes(), &[0; 4]].concat();
    for left in [0, 1, u32::MAX] {
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        bytes.extend(node(left));
        bytes.extend(node(left));
        let mut key = KeyBuffer::new();
        assert!(
            encode_value(&column(KeyKind::TsQuery), KeyValue::Bytes(&bytes), &mut key).is_err()
        );
    }
    let mut deep = 100_000_u32.to_le_bytes().to_vec();
    (0..100_000).for_each(|_| deep.extend([2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    let mut key = KeyBuffer::new();
    assert!(encode_value(&column(KeyKind::TsQuery), KeyValue::Bytes(&deep), &mut key).is_err());
}

#[test]
fn an_end_longer_than_any_key_lies_where_its_value_does() {
    let mut vectors: Vec<Vec<Lexeme>> = Vec::new();
    let mut queries = Vec::new();
    // A lexeme has at most 2,046 bytes.
    const WORDS: usize = 8;
    for length in KEY_BYTES_MAX / WORDS - 20..KEY_BYTES_MAX / WORDS + 3 {
        for last in [b'a', b'b'] {
            let word = [vec![b'a'; length], vec![last]].concat();
            let mut vector = vec![(word.clone(), None); WORDS - 1];
            vector.push((word.clone(), Some(vec![1])));
            vectors.push(vector);
            let operand = || Query::Operand(0, word.clone());
            queries.push((1..WORDS).fold(operand(), |query, _| {
                Query::Two(AND, 0, Box::new(query), Box::new(operand()))
            }));
        }
    }
    let payloads: Vec<_> = vectors
        .iter()
        .map(|vector| tsvector(vector, false))
        .collect();
    check_ends(KeyKind::TsVector, &payloads, |a, b| {
        let value = |at: usize| (&vectors[at][..], payloads[at].len());
        compare_tsvectors(value(a), value(b))
    });
    let payloads: Vec<_> = queries
        .iter()
        .map(|query| Query::payload(Some(query)))
        .collect();
    check_ends(KeyKind::TsQuery, &payloads, |a, b| {
        compare_queries(Some(&queries[a]), Some(&queries[b]))
    });
}
