//! TPC-C in the engine: the five transactions of the standard's mix, at its cardinalities, no
//! client and no SQL.

use crate::worker::{BODY_HEADER_BYTES, Table, Worker, body, number, set_number};
use mot_engine::{Direction, RowId, VersionRef};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::cell::Cell;

const DISTRICTS: u32 = 10;
const CUSTOMERS: u32 = 3000;
const ITEMS: u32 = 100_000;
const ORDERS: u32 = 3000;
/// The last third of the first orders are still to be delivered.
const DELIVERED: u32 = 2100;
const LOAD_BATCH: u32 = 1000;

#[derive(Clone)]
pub struct Tables {
    /// warehouse, ytd
    warehouse: Table,
    /// warehouse, district, next order, ytd
    district: Table,
    /// warehouse, district, customer, balance, payments, last name
    customer: Table,
    history: Table,
    /// warehouse, district, order, customer, carrier, lines
    orders: Table,
    /// warehouse, district, order
    new_order: Table,
    /// warehouse, district, order, line, item, quantity, amount, delivered
    order_line: Table,
    /// warehouse, item, quantity, ytd, orders
    stock: Table,
    /// item, price
    item: Table,
    pub warehouses: u32,
}

impl Tables {
    pub fn all(&self) -> [Table; 9] {
        [
            &self.warehouse,
            &self.district,
            &self.customer,
            &self.history,
            &self.orders,
            &self.new_order,
            &self.order_line,
            &self.stock,
            &self.item,
        ]
        .map(Clone::clone)
    }
}

fn last_name(number: u32) -> String {
    const SYLLABLES: [&str; 10] = [
        "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
    ];
    [number / 100, number / 10 % 10, number % 10]
        .map(|at| SYLLABLES[at as usize])
        .concat()
}

fn customer_body(w: u32, d: u32, c: u32, name: u32) -> Vec<u8> {
    body(&[w, d, c, 0, 0], &last_name(name), BODY_HEADER_BYTES + 560)
}

fn line_body(
    w: u32,
    d: u32,
    o: u32,
    line: u32,
    item: u32,
    quantity: u32,
    delivered: u32,
) -> Vec<u8> {
    body(
        &[w, d, o, line, item, quantity, quantity * 10, delivered],
        "",
        BODY_HEADER_BYTES + 76,
    )
}

pub fn load(worker: &mut Worker<'_>, warehouses: u32) -> Tables {
    let mut random = SmallRng::seed_from_u64(7);
    let tables = Tables {
        warehouse: worker.create(1, &[(true, &[1])], 0),
        district: worker.create(2, &[(true, &[1, 2])], 0),
        customer: worker.create(3, &[(true, &[1, 2, 3]), (false, &[1, 2, 6])], 6),
        history: worker.create(4, &[], 0),
        orders: worker.create(5, &[(true, &[1, 2, 3]), (true, &[1, 2, 4, 3])], 0),
        new_order: worker.create(6, &[(true, &[1, 2, 3])], 0),
        order_line: worker.create(7, &[(true, &[1, 2, 3, 4])], 0),
        stock: worker.create(8, &[(true, &[1, 2])], 0),
        item: worker.create(9, &[(true, &[1])], 0),
        warehouses,
    };
    let loaded = Cell::new(0);
    let put = |worker: &mut Worker<'_>, table: &Table, body: &[u8]| {
        if loaded.get() == 0 {
            worker.begin(true);
        }
        worker.insert(table, body);
        loaded.set((loaded.get() + 1) % LOAD_BATCH);
        if loaded.get() == 0 {
            worker.commit(&[]);
        }
    };
    for i in 1..=ITEMS {
        put(
            worker,
            &tables.item,
            &body(&[i, i % 100], "", BODY_HEADER_BYTES + 80),
        );
    }
    for w in 1..=warehouses {
        put(
            worker,
            &tables.warehouse,
            &body(&[w, 0], "", BODY_HEADER_BYTES + 90),
        );
        for i in 1..=ITEMS {
            put(
                worker,
                &tables.stock,
                &body(&[w, i, 50, 0, 0], "", BODY_HEADER_BYTES + 310),
            );
        }
        for d in 1..=DISTRICTS {
            put(
                worker,
                &tables.district,
                &body(&[w, d, ORDERS + 1, 0], "", BODY_HEADER_BYTES + 96),
            );
            for c in 1..=CUSTOMERS {
                let name = if c <= 1000 {
                    c - 1
                } else {
                    skewed(&mut random, 255, 0, 999)
                };
                put(worker, &tables.customer, &customer_body(w, d, c, name));
            }
            for o in 1..=ORDERS {
                let lines = random.random_range(5..=15);
                let open = o > DELIVERED;
                // A permutation of the customers.
                let c = (o * 1543) % CUSTOMERS + 1;
                put(
                    worker,
                    &tables.orders,
                    &body(
                        &[w, d, o, c, u32::from(!open), lines],
                        "",
                        BODY_HEADER_BYTES + 36,
                    ),
                );
                for line in 1..=lines {
                    let item = random.random_range(1..=ITEMS);
                    put(
                        worker,
                        &tables.order_line,
                        &line_body(w, d, o, line, item, 5, u32::from(!open)),
                    );
                }
                if open {
                    put(
                        worker,
                        &tables.new_order,
                        &body(&[w, d, o], "", BODY_HEADER_BYTES + 16),
                    );
                }
            }
        }
    }
    while loaded.get() != 0 {
        put(
            worker,
            &tables.history,
            &body(&[0, 0, 0], "", BODY_HEADER_BYTES + 40),
        );
    }
    tables
}

/// The standard's NURand.
fn skewed(random: &mut SmallRng, bits: u32, low: u32, high: u32) -> u32 {
    let mixed = random.random_range(0..=bits) | random.random_range(low..=high);
    (mixed + 42) % (high - low + 1) + low
}

pub const NAMES: [&str; 5] = [
    "NewOrder",
    "Payment",
    "OrderStatus",
    "Delivery",
    "StockLevel",
];

pub struct Terminal<'a, 'w> {
    pub worker: &'a mut Worker<'w>,
    pub tables: &'a Tables,
    pub home: u32,
    pub random: SmallRng,
    all: [Table; 9],
    /// Lists of a transaction, their memory kept.
    lines: Vec<(u32, u32, u32)>,
    found: Vec<(RowId, VersionRef)>,
    numbers: Vec<u32>,
    /// Committed, by kind, and NewOrders rolled back as the standard wants.
    pub done: [u64; NAMES.len()],
    pub rolled_back: u64,
    /// An order's items and stocks are looked up together, as a statement with a list of keys does,
    /// not one by one.
    at_once: bool,
}

impl<'a, 'w> Terminal<'a, 'w> {
    pub fn new(
        worker: &'a mut Worker<'w>,
        tables: &'a Tables,
        home: u32,
        seed: u64,
        at_once: bool,
    ) -> Terminal<'a, 'w> {
        let all = tables.all();
        let random = SmallRng::seed_from_u64(seed);
        Terminal {
            worker,
            tables,
            home,
            random,
            all,
            lines: Vec::new(),
            found: Vec::new(),
            numbers: Vec::new(),
            done: [0; NAMES.len()],
            rolled_back: 0,
            at_once,
        }
    }

    /// One transaction of the mix.
    pub fn step(&mut self) {
        let kind = match self.random.random_range(0..100) {
            0..45 => 0,
            45..88 => 1,
            88..92 => 2,
            92..96 => 3,
            _ => 4,
        };
        let committed = match kind {
            0 => self.new_order(),
            1 => self.payment(),
            2 => self.order_status(),
            3 => self.delivery(),
            _ => self.stock_level(),
        };
        self.done[kind] += u64::from(committed);
        self.rolled_back += u64::from(!committed);
    }

    fn warehouse(&mut self) -> u32 {
        match self.home {
            0 => self.random.random_range(1..=self.tables.warehouses),
            home => home,
        }
    }

    fn other_warehouse(&mut self, home: u32, percent: u32) -> u32 {
        if self.tables.warehouses == 1 || self.random.random_range(0..100) >= percent {
            return home;
        }
        let other = self.random.random_range(1..self.tables.warehouses);
        if other >= home { other + 1 } else { other }
    }

    fn new_order(&mut self) -> bool {
        let (w, d) = (self.warehouse(), self.random.random_range(1..=DISTRICTS));
        let c = skewed(&mut self.random, 1023, 1, CUSTOMERS);
        let count = self.random.random_range(5..=15);
        let rolls_back = self.random.random_range(0..100) == 0;
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        for _ in 0..count {
            let supply = self.other_warehouse(w, 1);
            let item = skewed(&mut self.random, 8191, 1, ITEMS);
            lines.push((supply, item, self.random.random_range(1..=10)));
        }
        // Rows are owned in one order, so that two never wait for each other.
        lines.sort_unstable();
        let tables = self.tables;
        let worker = &mut *self.worker;
        worker.begin(true);
        let (_, warehouse) = worker.find(&tables.warehouse, &[w]);
        std::hint::black_box(number(warehouse.body(), 1));
        let district = worker.find(&tables.district, &[w, d]);
        let mut o = 0;
        worker.modify(&tables.district, district, |body| {
            o = number(body, 2);
            set_number(body, 2, o + 1);
        });
        let (_, customer) = worker.find(&tables.customer, &[w, d, c]);
        std::hint::black_box(number(customer.body(), 3));
        worker.insert(
            &tables.orders,
            &body(&[w, d, o, c, 0, count], "", BODY_HEADER_BYTES + 36),
        );
        worker.insert(
            &tables.new_order,
            &body(&[w, d, o], "", BODY_HEADER_BYTES + 16),
        );
        // The last item of one that is rolled back does not exist.
        let there = &lines[..lines.len() - usize::from(rolls_back)];
        let stocks = &mut self.found;
        stocks.clear();
        if self.at_once {
            let items = there.iter().map(|(_, item, _)| [*item]);
            worker.find_all(&tables.item, items, |_, found| {
                std::hint::black_box(number(found.body(), 1));
            });
            let keys = there.iter().map(|line| [line.0, line.1]);
            worker.find_all(&tables.stock, keys, |row_id, found| {
                stocks.push((row_id, found))
            });
        }
        for (line, (supply, item, quantity)) in there.iter().copied().enumerate() {
            let stock = match stocks.get(line) {
                Some(stock) => *stock,
                None => {
                    let (_, found) = worker.find(&tables.item, &[item]);
                    std::hint::black_box(number(found.body(), 1));
                    worker.find(&tables.stock, &[supply, item])
                }
            };
            worker.modify(&tables.stock, stock, |body| {
                let left = number(body, 2);
                set_number(
                    body,
                    2,
                    if left >= quantity + 10 {
                        left - quantity
                    } else {
                        left + 91 - quantity
                    },
                );
                set_number(body, 3, number(body, 3) + quantity);
                set_number(body, 4, number(body, 4) + 1);
            });
            worker.insert(
                &tables.order_line,
                &line_body(w, d, o, line as u32 + 1, item, quantity, 0),
            );
        }
        self.lines = lines;
        if rolls_back {
            worker.roll_back();
            return false;
        }
        worker.commit(&self.all);
        true
    }

    /// A customer, by number or (60 in 100) by name: the one in the middle.
    fn customer(&mut self, w: u32, d: u32) -> (RowId, VersionRef) {
        if self.random.random_range(0..100) < 60 {
            let name = last_name(skewed(&mut self.random, 255, 0, 999));
            let found = &mut self.found;
            found.clear();
            self.worker.scan(
                &self.tables.customer,
                1,
                &[w, d],
                Some(&name),
                Direction::Forward,
                |row_id, version| {
                    found.push((row_id, version));
                    true
                },
            );
            if !found.is_empty() {
                return found[found.len() / 2];
            }
        }
        let c = skewed(&mut self.random, 1023, 1, CUSTOMERS);
        self.worker.find(&self.tables.customer, &[w, d, c])
    }

    fn payment(&mut self) -> bool {
        let (w, d) = (self.warehouse(), self.random.random_range(1..=DISTRICTS));
        let amount = self.random.random_range(1..5000);
        let theirs = self.other_warehouse(w, 15);
        self.worker.begin(true);
        let tables = self.tables;
        let warehouse = self.worker.find(&tables.warehouse, &[w]);
        self.worker.modify(&tables.warehouse, warehouse, |body| {
            set_number(body, 1, number(body, 1).wrapping_add(amount))
        });
        let district = self.worker.find(&tables.district, &[w, d]);
        self.worker.modify(&tables.district, district, |body| {
            set_number(body, 3, number(body, 3).wrapping_add(amount))
        });
        let customer = self.customer(theirs, d);
        let c = number(customer.1.body(), 2);
        self.worker.modify(&tables.customer, customer, |body| {
            set_number(body, 3, number(body, 3).wrapping_sub(amount));
            set_number(body, 4, number(body, 4) + 1);
        });
        self.worker.insert(
            &tables.history,
            &body(&[theirs, d, c, w, d, amount], "", BODY_HEADER_BYTES + 46),
        );
        self.worker.commit(&self.all);
        true
    }

    fn order_status(&mut self) -> bool {
        let (w, d) = (self.warehouse(), self.random.random_range(1..=DISTRICTS));
        self.worker.begin(false);
        let (_, customer) = self.customer(w, d);
        let c = number(customer.body(), 2);
        let mut last = None;
        self.worker.scan(
            &self.tables.orders,
            1,
            &[w, d, c],
            None,
            Direction::Backward,
            |_, version| {
                last = Some(number(version.body(), 2));
                false
            },
        );
        if let Some(o) = last {
            let mut sum = 0;
            self.worker.scan(
                &self.tables.order_line,
                0,
                &[w, d, o],
                None,
                Direction::Forward,
                |_, version| {
                    sum += number(version.body(), 6);
                    true
                },
            );
            std::hint::black_box(sum);
        }
        self.worker.commit(&self.all);
        true
    }

    fn delivery(&mut self) -> bool {
        let w = self.warehouse();
        let carrier = self.random.random_range(1..=10);
        let tables = self.tables;
        let worker = &mut *self.worker;
        worker.begin(true);
        for d in 1..=DISTRICTS {
            let mut oldest: Option<(RowId, VersionRef)> = None;
            worker.scan(
                &tables.new_order,
                0,
                &[w, d],
                None,
                Direction::Forward,
                |row_id, version| {
                    oldest = Some((row_id, version));
                    false
                },
            );
            let Some((row_id, version)) = oldest else {
                continue;
            };
            let o = number(version.body(), 2);
            if !worker.delete(&tables.new_order, row_id, version) {
                // Another delivery was faster: this district is done.
                continue;
            }
            let order = worker.find(&tables.orders, &[w, d, o]);
            let c = number(order.1.body(), 3);
            worker.modify(&tables.orders, order, |body| set_number(body, 4, carrier));
            let lines = &mut self.found;
            lines.clear();
            let mut sum = 0;
            worker.scan(
                &tables.order_line,
                0,
                &[w, d, o],
                None,
                Direction::Forward,
                |row_id, version| {
                    sum += number(version.body(), 6);
                    lines.push((row_id, version));
                    true
                },
            );
            for line in lines {
                worker.modify(&tables.order_line, *line, |body| set_number(body, 7, 1));
            }
            let customer = worker.find(&tables.customer, &[w, d, c]);
            worker.modify(&tables.customer, customer, |body| {
                set_number(body, 3, number(body, 3).wrapping_add(sum))
            });
        }
        worker.commit(&self.all);
        true
    }

    fn stock_level(&mut self) -> bool {
        let (w, d) = (self.warehouse(), self.random.random_range(1..=DISTRICTS));
        let threshold = self.random.random_range(10..=20);
        let worker = &mut *self.worker;
        worker.begin(false);
        let (_, district) = worker.find(&self.tables.district, &[w, d]);
        let next = number(district.body(), 2);
        let items = &mut self.numbers;
        items.clear();
        worker.scan_between(
            &self.tables.order_line,
            &[w, d, next - 20],
            Some(&[w, d, next]),
            |_, version| {
                items.push(number(version.body(), 4));
                true
            },
        );
        items.sort_unstable();
        items.dedup();
        let mut low = 0;
        let mut count = |stock: VersionRef| low += u32::from(number(stock.body(), 2) < threshold);
        if self.at_once {
            let keys = items.iter().map(|item| [w, *item]);
            worker.find_all(&self.tables.stock, keys, |_, stock| count(stock));
        } else {
            for item in items {
                count(worker.find(&self.tables.stock, &[w, *item]).1);
            }
        }
        std::hint::black_box(low);
        worker.commit(&self.all);
        true
    }
}
