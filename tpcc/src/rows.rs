//! The rows of a fresh database (clause 4.3.3.1), in COPY's text format: tabs between the columns,
//! `\N` for null. No generated value contains a character COPY would want escaped.

use crate::random::{TpccRng, push_last_name};
use crate::scale::Scale;
use std::io::Write as _;

/// Table and column order of each COPY.
pub const ITEM_COLUMNS: &str = "bmsql_item (i_id, i_name, i_price, i_data, i_im_id)";
/// See [`ITEM_COLUMNS`].
pub const WAREHOUSE_COLUMNS: &str = "bmsql_warehouse (w_id, w_ytd, w_tax, w_name, w_street_1, \
    w_street_2, w_city, w_state, w_zip)";
/// See [`ITEM_COLUMNS`].
pub const DISTRICT_COLUMNS: &str = "bmsql_district (d_id, d_w_id, d_ytd, d_tax, d_next_o_id, \
    d_name, d_street_1, d_street_2, d_city, d_state, d_zip)";
/// See [`ITEM_COLUMNS`].
pub const STOCK_COLUMNS: &str = "bmsql_stock (s_i_id, s_w_id, s_quantity, s_ytd, s_order_cnt, \
    s_remote_cnt, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, \
    s_dist_07, s_dist_08, s_dist_09, s_dist_10)";
/// See [`ITEM_COLUMNS`].
pub const CUSTOMER_COLUMNS: &str = "bmsql_customer (c_id, c_d_id, c_w_id, c_discount, c_credit, \
    c_last, c_first, c_credit_lim, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, \
    c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_middle, c_data)";
/// See [`ITEM_COLUMNS`].
pub const HISTORY_COLUMNS: &str = "bmsql_history (hist_id, h_c_id, h_c_d_id, h_c_w_id, h_d_id, \
    h_w_id, h_date, h_amount, h_data)";
/// See [`ITEM_COLUMNS`].
pub const ORDER_COLUMNS: &str = "bmsql_oorder (o_id, o_w_id, o_d_id, o_c_id, o_carrier_id, \
    o_ol_cnt, o_all_local, o_entry_d)";
/// See [`ITEM_COLUMNS`].
pub const ORDER_LINE_COLUMNS: &str = "bmsql_order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, \
    ol_i_id, ol_delivery_d, ol_amount, ol_supply_w_id, ol_quantity, ol_dist_info)";
/// See [`ITEM_COLUMNS`].
pub const NEW_ORDER_COLUMNS: &str = "bmsql_new_order (no_w_id, no_d_id, no_o_id)";

/// What each customer has paid before the first run, in whole units of money.
const FIRST_PAYMENT: i32 = 10;

/// Customers whose last names are the numbers 0 to 999 in turn; later ones draw theirs.
const NAMED_IN_TURN: i32 = 1000;

/// Writes formatted text; a `Vec` takes all of it.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => {
        write!($out, $($arguments)*).expect("writing to a Vec cannot fail")
    };
}

/// Appends a row of `bmsql_item`.
pub fn push_item(out: &mut Vec<u8>, rng: &mut TpccRng, item: i32) {
    put!(out, "{item}\t");
    rng.push_alphanumeric(out, 14, 24);
    let cents = rng.uniform(100, 10_000);
    put!(out, "\t{}.{:02}\t", cents / 100, cents % 100);
    rng.push_item_data(out);
    put!(out, "\t{}\n", rng.uniform(1, 10_000));
}

/// Makes the rows of one warehouse.
pub struct WarehouseRows<'a> {
    /// The warehouse.
    pub w: i32,
    /// Table sizes.
    pub scale: Scale,
    /// The load's constant for last names.
    pub c_last: i32,
    /// The time of the load.
    pub now: &'a str,
}

impl WarehouseRows<'_> {
    /// Appends the row of `bmsql_warehouse`.
    pub fn push_warehouse(&self, out: &mut Vec<u8>, rng: &mut TpccRng) {
        let ytd = self.scale.customers * FIRST_PAYMENT * crate::scale::DISTRICTS;
        put!(out, "{}\t{ytd}.00\t0.{:04}\t", self.w, rng.uniform(0, 2000));
        push_name_and_address(out, rng);
        out.push(b'\n');
    }

    /// Appends a row of `bmsql_district`.
    pub fn push_district(&self, out: &mut Vec<u8>, rng: &mut TpccRng, d: i32) {
        let ytd = self.scale.customers * FIRST_PAYMENT;
        let (tax, next) = (rng.uniform(0, 2000), self.scale.customers + 1);
        put!(out, "{d}\t{}\t{ytd}.00\t0.{tax:04}\t{next}\t", self.w);
        push_name_and_address(out, rng);
        out.push(b'\n');
    }

    /// Appends a row of `bmsql_stock`.
    pub fn push_stock(&self, out: &mut Vec<u8>, rng: &mut TpccRng, item: i32) {
        put!(
            out,
            "{item}\t{}\t{}\t0\t0\t0\t",
            self.w,
            rng.uniform(10, 100)
        );
        rng.push_item_data(out);
        for _ in 0..10 {
            out.push(b'\t');
            rng.push_alphanumeric(out, 24, 24);
        }
        out.push(b'\n');
    }

    /// Appends a row of `bmsql_customer`.
    pub fn push_customer(&self, out: &mut Vec<u8>, rng: &mut TpccRng, d: i32, c: i32) {
        let credit = if rng.percent(10) { "BC" } else { "GC" };
        put!(
            out,
            "{c}\t{d}\t{}\t0.{:04}\t{credit}\t",
            self.w,
            rng.uniform(0, 5000)
        );
        let name = if c <= NAMED_IN_TURN {
            c - 1
        } else {
            rng.last_name(self.c_last, self.scale.customers)
        };
        push_last_name(out, name);
        out.push(b'\t');
        rng.push_alphanumeric(out, 8, 16);
        put!(
            out,
            "\t50000.00\t-{FIRST_PAYMENT}.00\t{FIRST_PAYMENT}.00\t1\t0\t"
        );
        push_address(out, rng);
        out.push(b'\t');
        rng.push_digits(out, 16);
        put!(out, "\t{}\tOE\t", self.now);
        rng.push_alphanumeric(out, 300, 500);
        out.push(b'\n');
    }

    /// Appends the one row of `bmsql_history` a customer has after the load.
    pub fn push_history(&self, out: &mut Vec<u8>, rng: &mut TpccRng, d: i32, c: i32) {
        let customers = self.scale.customers;
        let id = ((self.w - 1) * crate::scale::DISTRICTS + d - 1) * customers + c;
        let w = self.w;
        put!(
            out,
            "{id}\t{c}\t{d}\t{w}\t{d}\t{w}\t{}\t{FIRST_PAYMENT}.00\t",
            self.now
        );
        rng.push_alphanumeric(out, 12, 24);
        out.push(b'\n');
    }

    /// Appends a row of `bmsql_oorder`, and of `bmsql_new_order` if it is undelivered; returns the
    /// number of its lines.
    pub fn push_order(
        &self,
        orders: &mut Vec<u8>,
        new_orders: &mut Vec<u8>,
        rng: &mut TpccRng,
        d: i32,
        o: i32,
        c: i32,
    ) -> i32 {
        let (w, lines) = (self.w, rng.uniform(5, 15));
        put!(orders, "{o}\t{w}\t{d}\t{c}\t");
        if self.is_delivered(o) {
            put!(orders, "{}", rng.uniform(1, 10));
        } else {
            orders.extend_from_slice(b"\\N");
            put!(new_orders, "{w}\t{d}\t{o}\n");
        }
        put!(orders, "\t{lines}\t1\t{}\n", self.now);
        lines
    }

    /// Appends the rows of `bmsql_order_line` of one order.
    pub fn push_order_lines(
        &self,
        out: &mut Vec<u8>,
        rng: &mut TpccRng,
        d: i32,
        o: i32,
        lines: i32,
    ) {
        let w = self.w;
        for line in 1..=lines {
            put!(
                out,
                "{w}\t{d}\t{o}\t{line}\t{}\t",
                rng.uniform(1, self.scale.items)
            );
            if self.is_delivered(o) {
                put!(out, "{}\t0.00", self.now);
            } else {
                let cents = rng.uniform(1, 999_999);
                put!(out, "\\N\t{}.{:02}", cents / 100, cents % 100);
            }
            put!(out, "\t{w}\t5\t");
            rng.push_alphanumeric(out, 24, 24);
            out.push(b'\n');
        }
    }

    fn is_delivered(&self, o: i32) -> bool {
        o <= self.scale.delivered()
    }
}

fn push_name_and_address(out: &mut Vec<u8>, rng: &mut TpccRng) {
    rng.push_alphanumeric(out, 6, 10);
    out.push(b'\t');
    push_address(out, rng);
}

/// Two streets, city, state and zip.
fn push_address(out: &mut Vec<u8>, rng: &mut TpccRng) {
    for _ in 0..3 {
        rng.push_alphanumeric(out, 10, 20);
        out.push(b'\t');
    }
    rng.push_state(out);
    out.push(b'\t');
    rng.push_zip(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maker() -> WarehouseRows<'static> {
        WarehouseRows {
            w: 3,
            scale: Scale::full(5),
            c_last: 17,
            now: "2024-01-02 03:04:05",
        }
    }

    fn columns(row: &[u8]) -> Vec<String> {
        let row = std::str::from_utf8(row).unwrap();
        let row = row.strip_suffix('\n').expect("a row ends with a newline");
        row.split('\t').map(str::to_owned).collect()
    }

    fn names(columns: &str) -> usize {
        columns.split_once('(').unwrap().1.split(',').count()
    }

    #[test]
    fn every_row_has_the_columns_of_its_copy() {
        let (maker, mut rng) = (maker(), TpccRng::new(5, 1));
        let mut made = |make: &dyn Fn(&mut Vec<u8>, &mut TpccRng)| {
            let mut row = Vec::new();
            make(&mut row, &mut rng);
            columns(&row)
        };
        let item = made(&|out, rng| push_item(out, rng, 9));
        assert_eq!(item.len(), names(ITEM_COLUMNS));
        let warehouse = made(&|out, rng| maker.push_warehouse(out, rng));
        assert_eq!(warehouse.len(), names(WAREHOUSE_COLUMNS));
        assert_eq!(warehouse[1], "300000.00");
        let district = made(&|out, rng| maker.push_district(out, rng, 10));
        assert_eq!(district.len(), names(DISTRICT_COLUMNS));
        assert_eq!(
            (district[2].as_str(), district[4].as_str()),
            ("30000.00", "3001")
        );
        let stock = made(&|out, rng| maker.push_stock(out, rng, 100_000));
        assert_eq!(stock.len(), names(STOCK_COLUMNS));
        assert!(stock[7..].iter().all(|info| info.len() == 24));
        let customer = made(&|out, rng| maker.push_customer(out, rng, 2, 372));
        assert_eq!(customer.len(), names(CUSTOMER_COLUMNS));
        assert_eq!(customer[5], "PRICALLYOUGHT");
        assert!((300..=500).contains(&customer[20].len()));
        let history = made(&|out, rng| maker.push_history(out, rng, 2, 7));
        assert_eq!(history.len(), names(HISTORY_COLUMNS));
        assert_eq!(history[0], (2 * 30_000 + 3000 + 7).to_string());
    }

    #[test]
    fn the_last_900_orders_are_undelivered() {
        let (maker, mut rng) = (maker(), TpccRng::new(5, 2));
        for (o, delivered) in [(1, true), (2100, true), (2101, false), (3000, false)] {
            let (mut orders, mut new_orders, mut lines) = (Vec::new(), Vec::new(), Vec::new());
            let count = maker.push_order(&mut orders, &mut new_orders, &mut rng, 4, o, 77);
            maker.push_order_lines(&mut lines, &mut rng, 4, o, count);
            let order = columns(&orders);
            assert_eq!(order.len(), names(ORDER_COLUMNS));
            assert_eq!(order[4] != "\\N", delivered);
            assert_eq!(new_orders.is_empty(), delivered);
            let rows: Vec<_> = lines
                .split_inclusive(|&byte| byte == b'\n')
                .map(columns)
                .collect();
            assert_eq!(rows.len(), count as usize);
            for row in rows {
                assert_eq!(row.len(), names(ORDER_LINE_COLUMNS));
                assert_eq!((row[5] != "\\N", row[6] == "0.00"), (delivered, delivered));
            }
        }
    }
}
