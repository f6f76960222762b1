//! Keys as databases have them, made up.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::collections::HashSet;

type Make = fn(&mut StdRng, usize) -> Vec<Vec<u8>>;

pub const KINDS: [(&str, Make); 6] = [
    ("integers", integers),
    ("ids", ids),
    ("composites", composites),
    ("rows", rows),
    ("urls", urls),
    ("emails", emails),
];

/// Keys one behind the other, each with a number.
#[derive(Default)]
pub struct Keys {
    bytes: Vec<u8>,
    /// Where each ends, and its number.
    ends: Vec<(usize, u64)>,
}

impl Keys {
    pub fn push(&mut self, key: &[u8], number: u64) {
        self.bytes.extend_from_slice(key);
        self.ends.push((self.bytes.len(), number));
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, at: usize) -> (&[u8], u64) {
        let begin = if at == 0 { 0 } else { self.ends[at - 1].0 };
        let (end, number) = self.ends[at];
        (&self.bytes[begin..end], number)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Runs of at most so many.
    pub fn chunks(&self, most: usize) -> impl Iterator<Item = impl Iterator<Item = (&[u8], u64)>> {
        (0..self.len())
            .step_by(most)
            .map(move |begin| (begin..(begin + most).min(self.len())).map(|at| self.get(at)))
    }

    /// Some of them.
    pub fn pick(&self, which: impl Iterator<Item = usize>) -> Keys {
        let mut picked = Keys::default();
        for at in which {
            let (key, number) = self.get(at);
            picked.push(key, number);
        }
        picked
    }
}

/// So many different keys of a kind, in random order.
pub fn of(kind: &str, count: usize, seed: u64) -> Keys {
    let mut random = StdRng::seed_from_u64(seed);
    let make = KINDS
        .iter()
        .find(|(name, _)| *name == kind)
        .expect("a kind")
        .1;
    let mut keys = make(&mut random, count);
    keys.shuffle(&mut random);
    let mut flat = Keys::default();
    for (key, number) in keys.iter().zip(0..) {
        flat.push(key, number);
    }
    flat
}

fn distinct(count: usize, mut make: impl FnMut() -> Vec<u8>) -> Vec<Vec<u8>> {
    let mut keys = HashSet::with_capacity(count);
    while keys.len() < count {
        keys.insert(make());
    }
    let mut keys: Vec<Vec<u8>> = keys.into_iter().collect();
    // The set's own order differs from run to run.
    keys.sort_unstable();
    keys
}

/// Eight random bytes.
fn integers(random: &mut StdRng, count: usize) -> Vec<Vec<u8>> {
    distinct(count, || random.random::<u64>().to_be_bytes().to_vec())
}

/// Numbers of eight bytes as a sequence gives them out.
fn ids(_: &mut StdRng, count: usize) -> Vec<Vec<u8>> {
    let id = |at: u64| ((at + 1) ^ 1 << 63).to_be_bytes().to_vec();
    (0..count as u64).map(id).collect()
}

/// TPC-C's order lines: warehouse, district, order, number, four bytes each.
fn composites(_: &mut StdRng, count: usize) -> Vec<Vec<u8>> {
    let key = |at: u32| {
        let (line, order) = (at % 10, at / 10);
        let (district, order) = (order % 10, order / 10);
        let (order, warehouse) = (order % 3000, order / 3000);
        [warehouse + 1, district + 1, order + 1, line + 1]
            .map(|part| (part ^ 1 << 31).to_be_bytes())
            .concat()
    };
    (0..count as u32).map(key).collect()
}

/// Entries of an index on a number that is not unique: most numbers have two rows or three, and
/// behind the number is the row's, five bytes.
fn rows(random: &mut StdRng, count: usize) -> Vec<Vec<u8>> {
    let numbers: Vec<u64> = (0..count * 2 / 5).map(|_| random.random()).collect();
    (0..count)
        .map(|row| {
            let number = numbers[row % numbers.len()];
            [&number.to_be_bytes()[..], &(row as u64).to_be_bytes()[3..]].concat()
        })
        .collect()
}

fn word(random: &mut StdRng, least: usize, most: usize) -> String {
    const SYLLABLES: [&str; 24] = [
        "an", "ber", "cal", "den", "el", "fer", "go", "hin", "is", "ja", "ken", "lo", "mar", "ne",
        "or", "pa", "que", "ri", "son", "ta", "um", "ver", "wil", "zo",
    ];
    let syllables = random.random_range(least..=most);
    (0..syllables)
        .map(|_| SYLLABLES[random.random_range(0..SYLLABLES.len())])
        .collect()
}

/// Addresses of pages: few hosts, deep paths; 30 to 80 bytes.
fn urls(random: &mut StdRng, count: usize) -> Vec<Vec<u8>> {
    let hosts: Vec<String> = (0..2_000)
        .map(|_| format!("https://www.{}.com/", word(random, 2, 4)))
        .collect();
    distinct(count, || {
        // Small numbers are hit more often, as hosts are.
        let host = random
            .random_range(0..hosts.len())
            .min(random.random_range(0..hosts.len()));
        let (part, page) = (word(random, 1, 2), word(random, 2, 4));
        format!(
            "{}{part}/{page}-{}.html",
            hosts[host],
            random.random_range(0..100_000)
        )
        .into_bytes()
    })
}

/// Mail addresses: 15 to 35 bytes.
fn emails(random: &mut StdRng, count: usize) -> Vec<Vec<u8>> {
    let domains: Vec<String> = (0..500).map(|_| word(random, 2, 3)).collect();
    distinct(count, || {
        let domain = random
            .random_range(0..domains.len())
            .min(random.random_range(0..domains.len()));
        let (first, last) = (word(random, 1, 3), word(random, 2, 3));
        format!(
            "{first}.{last}{}@{}.org",
            random.random_range(0..100),
            domains[domain]
        )
        .into_bytes()
    })
}
