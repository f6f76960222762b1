//! What a transaction changes, in the few numbers by which it can be found in the database again.

use crate::scale::DISTRICTS;

/// Districts of a warehouse, as an array length.
pub const DISTRICTS_PER_WAREHOUSE: usize = DISTRICTS as usize;

/// Longest tag of a payment: `h_data` has 24 characters.
pub const MAX_TAG_BYTES: usize = 24;

/// One order delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Delivered {
    /// District.
    pub d: i32,
    /// Order.
    pub o: i32,
    /// Sum of its lines' amounts.
    pub amount_cents: i64,
}

/// A transaction's identifiable effect. Known in full before its COMMIT is sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing to be found: the transaction only reads, or nothing was delivered.
    Nothing,
    /// A new order.
    NewOrder {
        /// Warehouse.
        w: i32,
        /// District.
        d: i32,
        /// Order number.
        o: i32,
        /// Number of its lines.
        lines: i32,
        /// Sum of its lines' amounts.
        total_cents: i64,
    },
    /// A payment; its row in `bmsql_history` starts with the run, the terminal and the sequence
    /// number that the ledger line carries.
    Payment {
        /// Warehouse that took the money.
        w: i32,
        /// District that took the money.
        d: i32,
        /// The customer's warehouse.
        c_w: i32,
        /// The customer's district.
        c_d: i32,
        /// The customer.
        c: i32,
        /// The amount.
        amount_cents: i64,
    },
    /// A delivery.
    Delivery {
        /// Warehouse.
        w: i32,
        /// Carrier.
        carrier: i32,
        /// What was delivered, at most one order per district.
        orders: Vec<Delivered>,
    },
}

/// Where a transaction notes its effect; reused so that noting allocates nothing.
pub struct EffectNote {
    /// The effect of the transaction under way or just ended.
    pub effect: Effect,
    spare_orders: Vec<Delivered>,
}

impl Default for EffectNote {
    fn default() -> Self {
        EffectNote {
            effect: Effect::Nothing,
            spare_orders: Vec::with_capacity(DISTRICTS_PER_WAREHOUSE),
        }
    }
}

impl EffectNote {
    /// Starts a transaction without an effect so far.
    pub fn clear(&mut self) {
        if let Effect::Delivery { orders, .. } =
            std::mem::replace(&mut self.effect, Effect::Nothing)
        {
            self.spare_orders = orders;
        }
    }

    /// Notes an empty delivery and gives the list to fill.
    pub fn delivery(&mut self, w: i32, carrier: i32) -> &mut Vec<Delivered> {
        self.clear();
        let mut orders = std::mem::take(&mut self.spare_orders);
        orders.clear();
        self.effect = Effect::Delivery { w, carrier, orders };
        match &mut self.effect {
            Effect::Delivery { orders, .. } => orders,
            _ => unreachable!("the effect was set to a delivery just above"),
        }
    }
}
