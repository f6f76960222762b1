//! Decimals for `numeric`: strings compared digit by digit, and built into PostgreSQL's form.

use std::cmp::Ordering;

use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(super) enum Decimal {
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

    pub(super) fn compare(&self, other: &Decimal) -> Ordering {
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
    pub(super) fn payload(&self, long: bool, strip: bool) -> Vec<u8> {
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

pub(super) fn decimal() -> impl Strategy<Value = Decimal> {
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
pub(super) fn decimals() -> impl Strategy<Value = (Decimal, Decimal)> {
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
