//! The statements terminals send: the same work per statement as BenchmarkSQL 5, parsed once per
//! connection.
//!
//! A transaction is one statement after the other, each in its own round trip, except where
//! BenchmarkSQL uses a JDBC batch; BEGIN travels with the first statement, as the JDBC driver does
//! it. The procedures of `procedures.sql` are called in the same way: BEGIN and call, then COMMIT.

use crate::failure::{Failure, Result};
use crate::session::{Prepared, Session};

macro_rules! statements {
    ($(#[$docs:meta])* $name:ident { $($field:ident: $text:expr,)* }) => {
        $(#[$docs])*
        pub struct $name {
            $(#[doc = $text] pub $field: Prepared,)*
        }

        impl $name {
            /// Names and texts of all of them.
            pub const TEXTS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), $text),)*];

            /// Has the server parse all of them.
            pub fn prepare(session: &mut Session) -> Result<Self> {
                Ok(Self { $($field: session.prepare(stringify!($field), $text)?,)* })
            }
        }
    };
}

statements! {
    /// What brackets a transaction in either mode.
    Brackets {
        begin: "BEGIN",
        commit: "COMMIT",
        rollback: "ROLLBACK",
    }
}

statements! {
    /// The statements of the interactive mode.
    Interactive {
        no_select_district: "SELECT d_tax, d_next_o_id FROM bmsql_district \
            WHERE d_w_id = $1 AND d_id = $2 FOR UPDATE",
        no_select_customer: "SELECT c_discount, c_last, c_credit, w_tax FROM bmsql_customer \
            JOIN bmsql_warehouse ON (w_id = c_w_id) \
            WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
        no_update_district: "UPDATE bmsql_district SET d_next_o_id = d_next_o_id + 1 \
            WHERE d_w_id = $1 AND d_id = $2",
        no_insert_order: "INSERT INTO bmsql_oorder \
            (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
            VALUES ($1, $2, $3, $4, $5, $6, $7)",
        no_insert_new_order: "INSERT INTO bmsql_new_order (no_o_id, no_d_id, no_w_id) \
            VALUES ($1, $2, $3)",
        no_select_item: "SELECT i_price, i_name, i_data FROM bmsql_item WHERE i_id = $1",
        no_select_stock: "SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, \
            s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM bmsql_stock \
            WHERE s_w_id = $1 AND s_i_id = $2 FOR UPDATE",
        no_update_stock: "UPDATE bmsql_stock SET s_quantity = $1, s_ytd = s_ytd + $2, \
            s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $3 \
            WHERE s_w_id = $4 AND s_i_id = $5",
        no_insert_order_line: "INSERT INTO bmsql_order_line (ol_o_id, ol_d_id, ol_w_id, \
            ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",

        pay_update_district: "UPDATE bmsql_district SET d_ytd = d_ytd + $1 \
            WHERE d_w_id = $2 AND d_id = $3",
        pay_select_district: "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip \
            FROM bmsql_district WHERE d_w_id = $1 AND d_id = $2",
        pay_update_warehouse: "UPDATE bmsql_warehouse SET w_ytd = w_ytd + $1 WHERE w_id = $2",
        pay_select_warehouse: "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip \
            FROM bmsql_warehouse WHERE w_id = $1",
        select_customers_by_name: "SELECT c_id FROM bmsql_customer \
            WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
        pay_select_customer: "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, \
            c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance \
            FROM bmsql_customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 FOR UPDATE",
        pay_select_customer_data: "SELECT c_data FROM bmsql_customer \
            WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
        pay_update_customer: "UPDATE bmsql_customer SET c_balance = c_balance - $1, \
            c_ytd_payment = c_ytd_payment + $2, c_payment_cnt = c_payment_cnt + 1 \
            WHERE c_w_id = $3 AND c_d_id = $4 AND c_id = $5",
        pay_update_customer_data: "UPDATE bmsql_customer SET c_balance = c_balance - $1, \
            c_ytd_payment = c_ytd_payment + $2, c_payment_cnt = c_payment_cnt + 1, c_data = $3 \
            WHERE c_w_id = $4 AND c_d_id = $5 AND c_id = $6",
        pay_insert_history: "INSERT INTO bmsql_history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, \
            h_w_id, h_date, h_amount, h_data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",

        os_select_customer: "SELECT c_first, c_middle, c_last, c_balance FROM bmsql_customer \
            WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
        os_select_last_order: "SELECT o_id, o_entry_d, o_carrier_id FROM bmsql_oorder \
            WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 AND o_id = ( \
            SELECT max(o_id) FROM bmsql_oorder WHERE o_w_id = $4 AND o_d_id = $5 AND o_c_id = $6)",
        os_select_order_lines: "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
            ol_delivery_d FROM bmsql_order_line \
            WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 \
            ORDER BY ol_w_id, ol_d_id, ol_o_id, ol_number",

        dl_select_new_order: "SELECT no_o_id FROM bmsql_new_order \
            WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id ASC",
        dl_delete_new_order: "DELETE FROM bmsql_new_order \
            WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
        dl_update_order: "UPDATE bmsql_oorder SET o_carrier_id = $1 \
            WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4",
        dl_select_order: "SELECT o_c_id FROM bmsql_oorder \
            WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3",
        dl_update_order_lines: "UPDATE bmsql_order_line SET ol_delivery_d = $1 \
            WHERE ol_w_id = $2 AND ol_d_id = $3 AND ol_o_id = $4",
        dl_select_amount: "SELECT sum(ol_amount) AS sum_ol_amount FROM bmsql_order_line \
            WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
        dl_update_customer: "UPDATE bmsql_customer SET c_balance = c_balance + $1, \
            c_delivery_cnt = c_delivery_cnt + 1 \
            WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",

        sl_count_low: "SELECT count(*) AS low_stock FROM ( \
            SELECT s_w_id, s_i_id, s_quantity FROM bmsql_stock \
            WHERE s_w_id = $1 AND s_quantity < $2 AND s_i_id IN ( \
            SELECT ol_i_id FROM bmsql_district JOIN bmsql_order_line ON ol_w_id = d_w_id \
            AND ol_d_id = d_id AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id \
            WHERE d_w_id = $3 AND d_id = $4)) AS low",
    }
}

statements! {
    /// The calls of the procedures mode.
    Procedures {
        call_new_order: "SELECT * FROM tpcc_new_order($1, $2, $3, $4, $5, $6, $7)",
        call_payment: "SELECT * FROM tpcc_payment($1, $2, $3, $4, $5, $6, $7, $8)",
        call_order_status: "SELECT * FROM tpcc_order_status($1, $2, $3, $4)",
        call_delivery: "SELECT * FROM tpcc_delivery($1, $2, $3)",
        call_stock_level: "SELECT * FROM tpcc_stock_level($1, $2, $3)",
    }
}

/// The statements of one mode.
pub enum ModeStatements {
    /// Statement by statement.
    Interactive(Box<Interactive>),
    /// One call per transaction.
    Procedures(Box<Procedures>),
}

/// A session with its prepared statements.
pub struct Desk {
    /// The connection.
    pub session: Session,
    /// BEGIN, COMMIT and ROLLBACK.
    pub brackets: Brackets,
    /// True from the moment a COMMIT is sent until the next transaction: from here on a lost
    /// connection leaves the outcome unknown.
    pub commit_sent: bool,
}

impl Desk {
    /// Wraps a fresh session.
    pub fn new(mut session: Session) -> Result<Self> {
        let brackets = Brackets::prepare(&mut session)?;
        Ok(Desk {
            session,
            brackets,
            commit_sent: false,
        })
    }

    /// Queues BEGIN ahead of the first statement; its rows then come from place 1.
    pub fn begin(&mut self) -> Result<()> {
        self.commit_sent = false;
        self.session.queue(&self.brackets.begin, &[])
    }

    /// Commits; anything but a COMMIT in answer is a failure.
    pub fn commit(&mut self) -> Result<()> {
        self.commit_sent = true;
        let done = self.session.run(&self.brackets.commit, &[])?;
        if &done.tag != b"COMM" {
            return Err(Failure::unexpected("COMMIT was answered with a rollback"));
        }
        Ok(())
    }

    /// Rolls back.
    pub fn rollback(&mut self) -> Result<()> {
        self.session.discard_queued();
        self.session.run(&self.brackets.rollback, &[]).map(|_| ())
    }
}
