//! YCSB's core workloads in the engine: A half updates, B a twentieth, C none, E short scans and
//! inserts. Rows of 100 bytes, one integer key; keys uniform or with YCSB's own skew.

use crate::worker::{BODY_HEADER_BYTES, Table, Worker, body, number, set_number};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const ROW_BYTES: usize = 100;
const LOAD_BATCH: u32 = 1000;
const SCAN_ROWS_MAX: u32 = 100;
/// YCSB's constant.
const THETA: f64 = 0.99;

pub const WORKLOADS: [char; 4] = ['A', 'B', 'C', 'E'];

/// Gray and others' generator of Zipfian numbers, as YCSB has it.
pub struct Zipf {
    items: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    pub fn new(items: u32) -> Zipf {
        let zeta = |items: u32| {
            (1..=items)
                .map(|at| f64::from(at).powf(-THETA))
                .sum::<f64>()
        };
        let (all, two) = (zeta(items), zeta(2));
        let n = f64::from(items);
        Zipf {
            items: n,
            zeta: all,
            alpha: 1.0 / (1.0 - THETA),
            eta: (1.0 - (2.0 / n).powf(1.0 - THETA)) / (1.0 - two / all),
        }
    }

    fn next(&self, random: &mut SmallRng) -> u32 {
        let at: f64 = random.random();
        let scaled = at * self.zeta;
        if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5f64.powf(THETA) {
            1
        } else {
            (self.items * (self.eta * at - self.eta + 1.0).powf(self.alpha)) as u32
        }
    }
}

pub fn load(worker: &mut Worker<'_>, rows: u32) -> Table {
    let table = worker.create(20, &[(true, &[1])], 0);
    for from in (0..rows).step_by(LOAD_BATCH as usize) {
        worker.begin(true);
        for at in from..(from + LOAD_BATCH).min(rows) {
            worker.insert(
                &table,
                &body(&[scattered(at), 0], "", BODY_HEADER_BYTES + ROW_BYTES),
            );
        }
        worker.commit(&[]);
    }
    table
}

/// Popular keys must not lie beside one another: a bijection of 32 bits.
fn scattered(at: u32) -> u32 {
    let mixed = (at ^ at >> 16).wrapping_mul(0x7FEB_352D);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x846C_A68B);
    (mixed ^ mixed >> 16) & 0x7FFF_FFFF
}

pub struct Client<'a, 'w> {
    pub worker: &'a mut Worker<'w>,
    pub table: Table,
    pub random: SmallRng,
    pub rows: u32,
    /// None: uniform.
    pub zipf: Option<&'a Zipf>,
    /// Operations of one transaction.
    pub operations: u32,
    /// The next key this client inserts.
    pub next: u32,
}

impl<'a, 'w> Client<'a, 'w> {
    pub fn new(
        worker: &'a mut Worker<'w>,
        table: Table,
        rows: u32,
        zipf: Option<&'a Zipf>,
        operations: u32,
        seed: u64,
    ) -> Client<'a, 'w> {
        let next = rows + seed as u32 * (1 << 26);
        Client {
            worker,
            table,
            random: SmallRng::seed_from_u64(seed),
            rows,
            zipf,
            operations,
            next,
        }
    }

    fn key(&mut self) -> u32 {
        scattered(match self.zipf {
            Some(zipf) => zipf.next(&mut self.random).min(self.rows - 1),
            None => self.random.random_range(0..self.rows),
        })
    }

    /// One transaction. Its keys are sorted, so that two never wait for each other.
    pub fn step(&mut self, workload: char) {
        let writing = match workload {
            'A' => 50,
            'B' | 'E' => 5,
            _ => 0,
        };
        let mut work = [(0u32, false); 16];
        let work = &mut work[..self.operations as usize];
        for one in work.iter_mut() {
            *one = (self.key(), self.random.random_range(0..100) < writing);
        }
        work.sort_unstable();
        self.worker.begin(work.iter().any(|(_, writes)| *writes));
        for (key, writes) in work.iter().copied() {
            match (workload, writes) {
                ('E', true) => {
                    let fresh = scattered(self.next);
                    self.next += 1;
                    self.worker.insert(
                        &self.table,
                        &body(&[fresh, 0], "", BODY_HEADER_BYTES + ROW_BYTES),
                    );
                }
                ('E', false) => {
                    let mut left = self.random.random_range(1..=SCAN_ROWS_MAX);
                    let mut sum = 0u32;
                    self.worker
                        .scan_between(&self.table, &[key], None, |_, version| {
                            sum = sum.wrapping_add(number(version.body(), 1));
                            left -= 1;
                            left > 0
                        });
                    std::hint::black_box(sum);
                }
                (_, true) => {
                    let found = self.worker.find(&self.table, &[key]);
                    self.worker.modify(&self.table, found, |body| {
                        let count = number(body, 1).wrapping_add(1);
                        set_number(body, 1, count);
                    });
                }
                (_, false) => {
                    let (_, version) = self.worker.find(&self.table, &[key]);
                    std::hint::black_box(version.body()[ROW_BYTES]);
                }
            }
        }
        self.worker.commit(std::slice::from_ref(&self.table));
    }
}
