//! TPC-C's random data (clauses 2.1.6, 4.3.2): uniform and non-uniform numbers, strings, last
//! names.
//!
//! Everything comes from one seeded generator, so a seed names a whole load or a terminal's whole
//! run.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The constants `C` of the non-uniform distribution, one per field, fixed for a database or a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NurandConstants {
    /// For `C_LAST`.
    pub c_last: i32,
    /// For `C_ID`.
    pub c_id: i32,
    /// For `OL_I_ID`.
    pub i_id: i32,
}

/// `A` of the non-uniform distribution for `C_LAST`, `C_ID` and `OL_I_ID` (clause 2.1.6).
const A_C_LAST: i32 = 255;
const A_C_ID: i32 = 1023;
const A_I_ID: i32 = 8191;

/// Table sizes for which `A_C_ID` and `A_I_ID` are meant.
const FULL_CUSTOMERS: i32 = 3000;
const FULL_ITEMS: i32 = 100_000;

/// Number of distinct last names the three syllables can form.
const LAST_NAMES: i32 = 1000;

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

const ALPHANUMERIC: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The text that marks an item or a stock row as an original (clauses 4.3.3.1, 2.4.2.2).
pub const ORIGINAL: &str = "ORIGINAL";

/// A seeded source of TPC-C's values.
pub struct TpccRng(SmallRng);

impl TpccRng {
    /// Generator number `stream` of seed `seed`; streams of one seed are independent.
    pub fn new(seed: u64, stream: u64) -> Self {
        // An odd multiplier keeps the streams of one seed, and the same stream of two seeds, apart.
        TpccRng(SmallRng::seed_from_u64(
            seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ))
    }

    /// A number uniform in `low..=high`.
    pub fn uniform(&mut self, low: i32, high: i32) -> i32 {
        self.0.random_range(low..=high)
    }

    /// A number uniform in `low..=high`, 64 bits wide.
    pub fn uniform_long(&mut self, low: i64, high: i64) -> i64 {
        self.0.random_range(low..=high)
    }

    /// True in `percent` of all calls.
    pub fn percent(&mut self, percent: i32) -> bool {
        self.uniform(1, 100) <= percent
    }

    /// `NURand(A, low, high)` with constant `c` (clause 2.1.6).
    pub fn nurand(&mut self, a: i32, c: i32, low: i32, high: i32) -> i32 {
        ((self.uniform(0, a) | self.uniform(low, high)) + c) % (high - low + 1) + low
    }

    /// A customer number for a run against `customers` customers per district.
    pub fn customer(&mut self, constants: &NurandConstants, customers: i32) -> i32 {
        let a = scaled_a(A_C_ID, customers, FULL_CUSTOMERS);
        self.nurand(a, constants.c_id, 1, customers)
    }

    /// An item number for a run against `items` items.
    pub fn item(&mut self, constants: &NurandConstants, items: i32) -> i32 {
        let a = scaled_a(A_I_ID, items, FULL_ITEMS);
        self.nurand(a, constants.i_id, 1, items)
    }

    /// The number of a last name that exists among `customers` customers per district.
    pub fn last_name(&mut self, c_last: i32, customers: i32) -> i32 {
        self.nurand(A_C_LAST, c_last, 0, LAST_NAMES.min(customers) - 1)
    }

    /// The three constants for loading a database.
    pub fn load_constants(&mut self) -> NurandConstants {
        NurandConstants {
            c_last: self.uniform(0, A_C_LAST),
            c_id: self.uniform(0, A_C_ID),
            i_id: self.uniform(0, A_I_ID),
        }
    }

    /// The constants for a run against a database loaded with `c_last_of_load`: clause 2.1.6.1
    /// wants the two constants for `C_LAST` neither too near nor too far from each other.
    pub fn run_constants(&mut self, c_last_of_load: i32) -> NurandConstants {
        loop {
            let constants = self.load_constants();
            let distance = (constants.c_last - c_last_of_load).abs();
            if (65..=119).contains(&distance) && distance != 96 && distance != 112 {
                return constants;
            }
        }
    }

    /// Appends an alphanumeric string of `low..=high` characters.
    pub fn push_alphanumeric(&mut self, out: &mut Vec<u8>, low: i32, high: i32) {
        let length = self.uniform(low, high) as usize;
        self.push_from_alphabet(out, length);
    }

    fn push_from_alphabet(&mut self, out: &mut Vec<u8>, length: usize) {
        let mut left = length;
        while left > 0 {
            // Ten characters of about six bits each out of one 64-bit number.
            let mut bits: u64 = self.0.random();
            for _ in 0..left.min(10) {
                let (place, rest) = (bits % 62, bits / 62);
                out.push(ALPHANUMERIC[place as usize]);
                bits = rest;
            }
            left = left.saturating_sub(10);
        }
    }

    /// Appends `length` digits.
    pub fn push_digits(&mut self, out: &mut Vec<u8>, length: usize) {
        for _ in 0..length {
            out.push(b'0' + self.uniform(0, 9) as u8);
        }
    }

    /// Appends two capital letters.
    pub fn push_state(&mut self, out: &mut Vec<u8>) {
        for _ in 0..2 {
            out.push(b'A' + self.uniform(0, 25) as u8);
        }
    }

    /// Appends a zip code: four digits and `11111` (clause 4.3.2.7).
    pub fn push_zip(&mut self, out: &mut Vec<u8>) {
        self.push_digits(out, 4);
        out.extend_from_slice(b"11111");
    }

    /// Appends `I_DATA` or `S_DATA`: 26 to 50 characters, one row in ten with `ORIGINAL` somewhere.
    pub fn push_item_data(&mut self, out: &mut Vec<u8>) {
        let length = self.uniform(26, 50) as usize;
        if self.percent(10) {
            let before = self.uniform(0, (length - ORIGINAL.len()) as i32) as usize;
            self.push_from_alphabet(out, before);
            out.extend_from_slice(ORIGINAL.as_bytes());
            self.push_from_alphabet(out, length - ORIGINAL.len() - before);
        } else {
            self.push_from_alphabet(out, length);
        }
    }

    /// The numbers `1..=count` in random order (Fisher and Yates).
    pub fn permutation(&mut self, count: i32) -> Vec<i32> {
        let mut numbers: Vec<i32> = (1..=count).collect();
        for last in (1..numbers.len()).rev() {
            let other = self.0.random_range(0..=last);
            numbers.swap(last, other);
        }
        numbers
    }
}

/// `A` for a table smaller than TPC-C's: the same share of the table's size, as a run of one bits.
fn scaled_a(a: i32, size: i32, full_size: i32) -> i32 {
    if size >= full_size {
        return a;
    }
    let share = i64::from(a) * i64::from(size) / i64::from(full_size);
    ((share as u32 + 1).next_power_of_two() - 1) as i32
}

/// Appends the last name of number `0..=999` (clause 4.3.2.3).
pub fn push_last_name(out: &mut Vec<u8>, number: i32) {
    for place in [number / 100 % 10, number / 10 % 10, number % 10] {
        out.extend_from_slice(SYLLABLES[place as usize].as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(number: i32) -> String {
        let mut out = Vec::new();
        push_last_name(&mut out, number);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn last_names_are_the_specification_s() {
        assert_eq!(name(0), "BARBARBAR");
        assert_eq!(name(371), "PRICALLYOUGHT");
        assert_eq!(name(999), "EINGEINGEING");
        let all: std::collections::HashSet<_> = (0..1000).map(name).collect();
        assert_eq!(all.len(), 1000);
        assert!(all.iter().all(|name| name.len() <= 16));
    }

    #[test]
    fn run_constants_keep_their_distance() {
        for seed in 0..200 {
            let mut rng = TpccRng::new(seed, 0);
            let load = rng.load_constants();
            let run = rng.run_constants(load.c_last);
            let distance = (run.c_last - load.c_last).abs();
            assert!(
                (65..=119).contains(&distance),
                "seed {seed}: distance {distance}"
            );
            assert!(distance != 96 && distance != 112, "seed {seed}");
        }
    }

    #[test]
    fn nurand_prefers_numbers_with_many_bits() {
        let mut rng = TpccRng::new(7, 0);
        let draws = 100_000;
        let constants = NurandConstants {
            c_last: 0,
            c_id: 0,
            i_id: 0,
        };
        let mut counts = vec![0u32; 3001];
        for _ in 0..draws {
            counts[rng.customer(&constants, 3000) as usize] += 1;
        }
        // `uniform | uniform` is 1023 far more often than a uniform draw would be.
        let most = counts.iter().copied().max().unwrap();
        assert!(
            most > 10 * draws / 3000,
            "seed 7: the hottest customer got {most} draws"
        );
        assert_eq!(counts[0], 0);
    }

    #[test]
    fn one_row_in_ten_is_an_original() {
        let mut rng = TpccRng::new(11, 3);
        let mut out = Vec::new();
        let mut originals = 0;
        for _ in 0..10_000 {
            out.clear();
            rng.push_item_data(&mut out);
            assert!((26..=50).contains(&out.len()));
            originals += u32::from(String::from_utf8_lossy(&out).contains(ORIGINAL));
        }
        assert!(
            (800..1200).contains(&originals),
            "{originals} originals in 10000"
        );
    }

    #[test]
    fn streams_of_a_seed_repeat_and_differ() {
        let draw = |seed, stream| {
            let mut rng = TpccRng::new(seed, stream);
            (0..8)
                .map(|_| rng.uniform(0, 1_000_000))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    proptest! {
        #[test]
        fn numbers_stay_in_range(seed: u64, c in 0..8192i32, customers in 10..3000i32,
                                 items in 100..100_000i32) {
            let mut rng = TpccRng::new(seed, 0);
            let constants = NurandConstants { c_last: c % 256, c_id: c % 1024, i_id: c };
            prop_assert!((1..=customers).contains(&rng.customer(&constants, customers)));
            prop_assert!((1..=items).contains(&rng.item(&constants, items)));
            prop_assert!((0..customers.min(1000)).contains(&rng.last_name(c % 256, customers)));
        }

        #[test]
        fn permutations_hold_every_number_once(seed: u64, count in 1..500i32) {
            let mut numbers = TpccRng::new(seed, 0).permutation(count);
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (1..=count).collect::<Vec<_>>());
        }

        #[test]
        fn strings_have_the_length_asked_for(seed: u64, low in 1..40i32, more in 0..40i32) {
            let mut out = Vec::new();
            TpccRng::new(seed, 0).push_alphanumeric(&mut out, low, low + more);
            prop_assert!((low..=low + more).contains(&(out.len() as i32)));
            prop_assert!(out.iter().all(u8::is_ascii_alphanumeric));
        }
    }
}
