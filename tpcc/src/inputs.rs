//! What a terminal's user types in: the input data of the five transactions (clauses 2.4.1, 2.5.1,
//! 2.6.1, 2.7.1, 2.8.1), drawn at random.

use crate::random::{NurandConstants, TpccRng, push_last_name};
use crate::scale::{DISTRICTS, Scale};

/// The five transaction types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 45 % of the mix.
    NewOrder,
    /// 43 %.
    Payment,
    /// 4 %.
    OrderStatus,
    /// 4 %.
    Delivery,
    /// 4 %.
    StockLevel,
}

impl Kind {
    /// All five, in the order of their discriminants.
    pub const ALL: [Kind; 5] = [
        Kind::NewOrder,
        Kind::Payment,
        Kind::OrderStatus,
        Kind::Delivery,
        Kind::StockLevel,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "new_order",
            Kind::Payment => "payment",
            Kind::OrderStatus => "order_status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock_level",
        }
    }

    /// Draws one according to the mix.
    pub fn draw(rng: &mut TpccRng) -> Kind {
        match rng.uniform(1, 100) {
            1..=45 => Kind::NewOrder,
            46..=88 => Kind::Payment,
            89..=92 => Kind::OrderStatus,
            93..=96 => Kind::Delivery,
            _ => Kind::StockLevel,
        }
    }
}

/// Most lines an order can have.
pub const MAX_LINES: usize = 15;

/// One order line as typed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Place on the screen, from 1.
    pub number: i32,
    /// Warehouse that supplies the item.
    pub supply_w: i32,
    /// Item number; beyond the item table in the line that makes the order roll back.
    pub item: i32,
    /// Pieces.
    pub quantity: i32,
}

/// Input of a new order.
#[derive(Clone, Debug, Default)]
pub struct NewOrderInput {
    /// Warehouse.
    pub w: i32,
    /// District.
    pub d: i32,
    /// Customer.
    pub c: i32,
    lines: [Line; MAX_LINES],
    count: usize,
    /// True for the one per cent whose last line names an item that does not exist.
    pub rolls_back: bool,
}

impl NewOrderInput {
    /// The lines, ordered by supplying warehouse and item: the order in which stock rows are
    /// locked, the same for everyone, so that new orders cannot deadlock.
    pub fn lines(&self) -> &[Line] {
        &self.lines[..self.count]
    }

    /// True if the home warehouse supplies every line.
    pub fn all_local(&self) -> bool {
        self.lines().iter().all(|line| line.supply_w == self.w)
    }
}

/// How a customer is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// By number (40 %).
    Id(i32),
    /// By last name (60 %); the name is in the input's own buffer.
    LastName,
}

/// Input of a payment and, without the amount, of an order-status.
#[derive(Clone, Debug)]
pub struct CustomerInput {
    /// Warehouse that takes the money.
    pub w: i32,
    /// District that takes the money.
    pub d: i32,
    /// The customer's warehouse: 15 % of payments come from another one.
    pub c_w: i32,
    /// The customer's district.
    pub c_d: i32,
    /// The customer.
    pub who: Who,
    last_name: Vec<u8>,
    /// The amount paid, in cents.
    pub amount_cents: i64,
}

impl CustomerInput {
    /// The last name, when [`Who::LastName`].
    pub fn last_name(&self) -> &str {
        std::str::from_utf8(&self.last_name).unwrap_or_default()
    }
}

/// Input of the transaction to run next; buffers are reused from one to the next.
pub struct Inputs {
    scale: Scale,
    constants: NurandConstants,
    /// Input of a new order.
    pub new_order: NewOrderInput,
    /// Input of a payment or an order-status.
    pub customer: CustomerInput,
    /// Carrier of a delivery.
    pub carrier: i32,
    /// Threshold of a stock-level.
    pub threshold: i32,
}

impl Inputs {
    /// Inputs for a database of size `scale`, with a run's constants.
    pub fn new(scale: Scale, constants: NurandConstants) -> Self {
        Inputs {
            scale,
            constants,
            new_order: NewOrderInput::default(),
            customer: CustomerInput {
                w: 0,
                d: 0,
                c_w: 0,
                c_d: 0,
                who: Who::LastName,
                last_name: Vec::with_capacity(16),
                amount_cents: 0,
            },
            carrier: 0,
            threshold: 0,
        }
    }

    /// Draws a warehouse.
    pub fn draw_warehouse(&self, rng: &mut TpccRng) -> i32 {
        rng.uniform(1, self.scale.warehouses)
    }

    fn other_warehouse(&self, rng: &mut TpccRng, home: i32) -> i32 {
        if self.scale.warehouses == 1 {
            return home;
        }
        let drawn = rng.uniform(1, self.scale.warehouses - 1);
        if drawn >= home { drawn + 1 } else { drawn }
    }

    /// Draws the input of a transaction of type `kind` at warehouse `w`.
    pub fn draw(&mut self, rng: &mut TpccRng, kind: Kind, w: i32) {
        match kind {
            Kind::NewOrder => self.draw_new_order(rng, w),
            Kind::Payment => {
                self.draw_customer(rng, w);
                if !rng.percent(85) {
                    self.customer.c_d = rng.uniform(1, DISTRICTS);
                    self.customer.c_w = self.other_warehouse(rng, w);
                }
                self.customer.amount_cents = rng.uniform_long(100, 500_000);
            }
            Kind::OrderStatus => self.draw_customer(rng, w),
            Kind::Delivery => self.carrier = rng.uniform(1, 10),
            Kind::StockLevel => self.threshold = rng.uniform(10, 20),
        }
    }

    fn draw_new_order(&mut self, rng: &mut TpccRng, w: i32) {
        let count = rng.uniform(5, MAX_LINES as i32) as usize;
        let (d, c) = (
            rng.uniform(1, DISTRICTS),
            rng.customer(&self.constants, self.scale.customers),
        );
        let rolls_back = rng.percent(1);
        for place in 0..count {
            let supply_w = if rng.percent(1) {
                self.other_warehouse(rng, w)
            } else {
                w
            };
            self.new_order.lines[place] = Line {
                number: place as i32 + 1,
                supply_w,
                item: rng.item(&self.constants, self.scale.items),
                quantity: rng.uniform(1, 10),
            };
        }
        if rolls_back {
            self.new_order.lines[count - 1].item += rng.uniform(1, 9) * 1_000_000;
        }
        self.new_order.lines[..count].sort_unstable_by_key(|line| (line.supply_w, line.item));
        (self.new_order.w, self.new_order.d, self.new_order.c) = (w, d, c);
        (self.new_order.count, self.new_order.rolls_back) = (count, rolls_back);
    }

    fn draw_customer(&mut self, rng: &mut TpccRng, w: i32) {
        let d = rng.uniform(1, DISTRICTS);
        let customers = self.scale.customers;
        let customer = &mut self.customer;
        (customer.w, customer.d, customer.c_w, customer.c_d) = (w, d, w, d);
        if rng.percent(60) {
            customer.who = Who::LastName;
            customer.last_name.clear();
            push_last_name(
                &mut customer.last_name,
                rng.last_name(self.constants.c_last, customers),
            );
        } else {
            customer.who = Who::Id(rng.customer(&self.constants, customers));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(warehouses: i32) -> (Inputs, TpccRng) {
        let mut rng = TpccRng::new(42, 0);
        let constants = rng.run_constants(100);
        (Inputs::new(Scale::full(warehouses), constants), rng)
    }

    #[test]
    fn the_mix_is_tpcc_s() {
        let mut rng = TpccRng::new(42, 1);
        let mut counts = [0i32; 5];
        for _ in 0..100_000 {
            counts[Kind::draw(&mut rng) as usize] += 1;
        }
        for (count, percent) in counts.iter().zip([45, 43, 4, 4, 4]) {
            assert!((count - percent * 1000).abs() < 700, "seed 42: {counts:?}");
        }
    }

    #[test]
    fn new_orders_are_sorted_and_one_in_a_hundred_rolls_back() {
        let (mut inputs, mut rng) = inputs(10);
        let (mut rolled_back, mut remote) = (0, 0);
        for _ in 0..20_000 {
            inputs.draw(&mut rng, Kind::NewOrder, 3);
            let order = &inputs.new_order;
            let lines = order.lines();
            assert!((5..=15).contains(&lines.len()));
            assert!(lines.is_sorted_by_key(|line| (line.supply_w, line.item)));
            let invalid = lines.iter().filter(|line| line.item > 100_000).count();
            assert_eq!(invalid, usize::from(order.rolls_back));
            let mut numbers: Vec<_> = lines.iter().map(|line| line.number as usize).collect();
            numbers.sort_unstable();
            assert!(numbers.iter().copied().eq(1..=lines.len()));
            rolled_back += i32::from(order.rolls_back);
            remote += i32::from(!order.all_local());
        }
        assert!(
            (120..280).contains(&rolled_back),
            "seed 42: {rolled_back} of 20000"
        );
        assert!((1500..2400).contains(&remote), "seed 42: {remote} of 20000");
    }

    #[test]
    fn fifteen_percent_of_payments_are_remote() {
        let (mut inputs, mut rng) = inputs(4);
        let (mut remote, mut by_name) = (0, 0);
        for _ in 0..20_000 {
            inputs.draw(&mut rng, Kind::Payment, 2);
            let payment = &inputs.customer;
            assert!((1..=4).contains(&payment.c_w) && (1..=10).contains(&payment.c_d));
            assert!((100..=500_000).contains(&payment.amount_cents));
            remote += i32::from(payment.c_w != 2);
            by_name += i32::from(payment.who == Who::LastName);
        }
        assert!((2700..3300).contains(&remote), "seed 42: {remote} of 20000");
        assert!(
            (11_500..12_500).contains(&by_name),
            "seed 42: {by_name} of 20000"
        );
    }

    #[test]
    fn a_lone_warehouse_has_no_other() {
        let (mut inputs, mut rng) = inputs(1);
        for _ in 0..2000 {
            inputs.draw(&mut rng, Kind::NewOrder, 1);
            assert!(inputs.new_order.all_local());
            inputs.draw(&mut rng, Kind::Payment, 1);
            assert_eq!(inputs.customer.c_w, 1);
        }
    }
}
