//! Tables, keys, indexes and foreign keys, as BenchmarkSQL names and types them.
//!
//! One description serves all engines: [`Engine::create`] says how the same columns become a table.
//! Each engine lives in a PostgreSQL schema of its own, found through `search_path`, so that every
//! statement is the same text for all. Foreign tables have no foreign keys.

use crate::engine::Engine;

/// One table.
pub struct Table {
    /// Its name.
    pub name: &'static str,
    columns: &'static str,
    /// Constraint name and columns of the primary key; `bmsql_config` has its key in the columns.
    primary_key: Option<(&'static str, &'static str)>,
    /// Statements for secondary indexes.
    indexes: &'static [&'static str],
    /// BenchmarkSQL gives these tables room for HOT updates; only heap pages have such a thing.
    heap_fill_percent: Option<u8>,
}

const ADDRESS: &str = "street_1 varchar(20), street_2 varchar(20), city varchar(20), state char(2), \
                       zip char(9)";

/// All tables: TPC-C's nine and the one for the load's constants.
pub const TABLES: [Table; 10] = [
    Table {
        name: "bmsql_config",
        columns: "cfg_name varchar(30) PRIMARY KEY, cfg_value varchar(50)",
        primary_key: None,
        indexes: &[],
        heap_fill_percent: None,
    },
    Table {
        name: "bmsql_warehouse",
        columns: "w_id integer NOT NULL, w_ytd decimal(12,2), w_tax decimal(4,4), \
                  w_name varchar(10), w_@address",
        primary_key: Some(("bmsql_warehouse_pkey", "w_id")),
        indexes: &[],
        heap_fill_percent: Some(50),
    },
    Table {
        name: "bmsql_district",
        columns: "d_w_id integer NOT NULL, d_id integer NOT NULL, d_ytd decimal(12,2), \
                  d_tax decimal(4,4), d_next_o_id integer, d_name varchar(10), d_@address",
        primary_key: Some(("bmsql_district_pkey", "d_w_id, d_id")),
        indexes: &[],
        heap_fill_percent: Some(79),
    },
    Table {
        name: "bmsql_customer",
        columns: "c_w_id integer NOT NULL, c_d_id integer NOT NULL, c_id integer NOT NULL, \
                  c_discount decimal(4,4), c_credit char(2), c_last varchar(16), \
                  c_first varchar(16), c_credit_lim decimal(12,2), c_balance decimal(12,2), \
                  c_ytd_payment decimal(12,2), c_payment_cnt integer, c_delivery_cnt integer, \
                  c_@address, c_phone char(16), c_since timestamp, c_middle char(2), \
                  c_data varchar(500)",
        primary_key: Some(("bmsql_customer_pkey", "c_w_id, c_d_id, c_id")),
        indexes: &[
            "CREATE INDEX bmsql_customer_idx1 ON bmsql_customer (c_w_id, c_d_id, c_last, c_first)",
        ],
        heap_fill_percent: Some(90),
    },
    Table {
        name: "bmsql_history",
        columns: "hist_id integer, h_c_id integer, h_c_d_id integer, h_c_w_id integer, \
                  h_d_id integer, h_w_id integer, h_date timestamp, h_amount decimal(6,2), \
                  h_data varchar(24)",
        primary_key: Some(("bmsql_history_pkey", "hist_id")),
        indexes: &[],
        heap_fill_percent: None,
    },
    Table {
        name: "bmsql_new_order",
        columns: "no_w_id integer NOT NULL, no_d_id integer NOT NULL, no_o_id integer NOT NULL",
        primary_key: Some(("bmsql_new_order_pkey", "no_w_id, no_d_id, no_o_id")),
        indexes: &[],
        heap_fill_percent: None,
    },
    Table {
        name: "bmsql_oorder",
        columns: "o_w_id integer NOT NULL, o_d_id integer NOT NULL, o_id integer NOT NULL, \
                  o_c_id integer, o_carrier_id integer, o_ol_cnt integer, o_all_local integer, \
                  o_entry_d timestamp",
        primary_key: Some(("bmsql_oorder_pkey", "o_w_id, o_d_id, o_id")),
        indexes: &[
            // Of the customer, which Order-Status asks for, not of the carrier, which no statement
            // does (README.md, "Schema").
            "CREATE UNIQUE INDEX bmsql_oorder_idx1 ON bmsql_oorder (o_w_id, o_d_id, o_c_id, o_id)",
        ],
        heap_fill_percent: Some(80),
    },
    Table {
        name: "bmsql_order_line",
        columns: "ol_w_id integer NOT NULL, ol_d_id integer NOT NULL, ol_o_id integer NOT NULL, \
                  ol_number integer NOT NULL, ol_i_id integer NOT NULL, ol_delivery_d timestamp, \
                  ol_amount decimal(6,2), ol_supply_w_id integer, ol_quantity integer, \
                  ol_dist_info char(24)",
        primary_key: Some((
            "bmsql_order_line_pkey",
            "ol_w_id, ol_d_id, ol_o_id, ol_number",
        )),
        indexes: &[],
        heap_fill_percent: Some(80),
    },
    Table {
        name: "bmsql_item",
        columns: "i_id integer NOT NULL, i_name varchar(24), i_price decimal(5,2), \
                  i_data varchar(50), i_im_id integer",
        primary_key: Some(("bmsql_item_pkey", "i_id")),
        indexes: &[],
        heap_fill_percent: None,
    },
    Table {
        name: "bmsql_stock",
        columns: "s_w_id integer NOT NULL, s_i_id integer NOT NULL, s_quantity integer, \
                  s_ytd integer, s_order_cnt integer, s_remote_cnt integer, s_data varchar(50), \
                  s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24), \
                  s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), \
                  s_dist_09 char(24), s_dist_10 char(24)",
        primary_key: Some(("bmsql_stock_pkey", "s_w_id, s_i_id")),
        indexes: &[],
        heap_fill_percent: Some(95),
    },
];

impl Table {
    /// The statement that creates the table.
    pub fn create(&self, engine: Engine) -> String {
        let columns = self.spelled_columns();
        let create = engine.create(&format!("{} ({columns})", self.name));
        match self.heap_fill_percent {
            Some(fill) if engine == Engine::Heap => format!("{create} WITH (fillfactor = {fill})"),
            _ => create,
        }
    }

    /// The statements that add its primary key and its secondary indexes.
    pub fn keys(&self) -> Vec<String> {
        let primary = self.primary_key.map(|(constraint, columns)| {
            format!(
                "ALTER TABLE {} ADD CONSTRAINT {constraint} PRIMARY KEY ({columns})",
                self.name
            )
        });
        primary
            .into_iter()
            .chain(self.indexes.iter().map(|&index| index.to_owned()))
            .collect()
    }

    /// Columns with the `x_@address` shorthand written out.
    fn spelled_columns(&self) -> String {
        let Some((before, after)) = self.columns.split_once("_@address") else {
            return self.columns.to_owned();
        };
        let (start, prefix) = before.split_at(before.len() - 1);
        let address: Vec<String> = ADDRESS
            .split(", ")
            .map(|column| format!("{prefix}_{}", column.trim()))
            .collect();
        format!("{start}{}{after}", address.join(", "))
    }
}

/// Statements before the tables: the schema, an empty one, and for MOT the extension.
pub fn prologue(engine: Engine, schema: &str) -> Vec<String> {
    let mut statements = Vec::new();
    if engine.is_mot() {
        statements.push("CREATE EXTENSION IF NOT EXISTS mot".to_owned());
    }
    statements.push(format!("DROP SCHEMA IF EXISTS {schema} CASCADE"));
    statements.push(format!("CREATE SCHEMA {schema}"));
    statements
}

/// BenchmarkSQL's foreign keys: table, name, columns, and the key that they name.
const FOREIGN_KEYS: [[&str; 4]; 10] = [
    [
        "bmsql_district",
        "d_warehouse_fkey",
        "d_w_id",
        "bmsql_warehouse (w_id)",
    ],
    [
        "bmsql_customer",
        "c_district_fkey",
        "c_w_id, c_d_id",
        "bmsql_district (d_w_id, d_id)",
    ],
    [
        "bmsql_history",
        "h_customer_fkey",
        "h_c_w_id, h_c_d_id, h_c_id",
        "bmsql_customer (c_w_id, c_d_id, c_id)",
    ],
    [
        "bmsql_history",
        "h_district_fkey",
        "h_w_id, h_d_id",
        "bmsql_district (d_w_id, d_id)",
    ],
    [
        "bmsql_new_order",
        "no_order_fkey",
        "no_w_id, no_d_id, no_o_id",
        "bmsql_oorder (o_w_id, o_d_id, o_id)",
    ],
    [
        "bmsql_oorder",
        "o_customer_fkey",
        "o_w_id, o_d_id, o_c_id",
        "bmsql_customer (c_w_id, c_d_id, c_id)",
    ],
    [
        "bmsql_order_line",
        "ol_order_fkey",
        "ol_w_id, ol_d_id, ol_o_id",
        "bmsql_oorder (o_w_id, o_d_id, o_id)",
    ],
    [
        "bmsql_order_line",
        "ol_stock_fkey",
        "ol_supply_w_id, ol_i_id",
        "bmsql_stock (s_w_id, s_i_id)",
    ],
    [
        "bmsql_stock",
        "s_warehouse_fkey",
        "s_w_id",
        "bmsql_warehouse (w_id)",
    ],
    ["bmsql_stock", "s_item_fkey", "s_i_id", "bmsql_item (i_id)"],
];

/// The statements that add the foreign keys, once all rows and primary keys are there.
pub fn foreign_keys() -> impl Iterator<Item = String> {
    FOREIGN_KEYS.iter().map(|[table, name, columns, key]| {
        format!(
            "ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({columns}) REFERENCES {key}"
        )
    })
}

/// The sequence behind `bmsql_history.hist_id`.
pub const CREATE_HISTORY_SEQUENCE: &str = "CREATE SEQUENCE bmsql_hist_id_seq";

/// After the load: the sequence continues past the loaded rows and becomes the column's default.
pub const ATTACH_HISTORY_SEQUENCE: [&str; 2] = [
    "SELECT setval('bmsql_hist_id_seq', (SELECT max(hist_id) FROM bmsql_history))",
    "ALTER TABLE bmsql_history ALTER COLUMN hist_id SET DEFAULT nextval('bmsql_hist_id_seq')",
];

/// The statement that collects a table's statistics after the load.
pub fn analyze(table: &Table) -> String {
    format!("VACUUM (ANALYZE) {}", table.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_engines_get_the_same_columns() {
        for table in &TABLES {
            let (heap, mot) = (table.create(Engine::Heap), table.create(Engine::Mot));
            let columns = |text: &str| {
                let start = text.find('(').unwrap();
                text[start..text.rfind(" USING").unwrap()].to_owned()
            };
            assert_eq!(columns(&heap), columns(&mot));
            assert!(mot.starts_with("CREATE TABLE bmsql_") && mot.ends_with(" USING mot"));
        }
    }

    #[test]
    fn addresses_are_written_out() {
        let warehouse = TABLES[1].create(Engine::Mot);
        assert!(warehouse.contains("w_name varchar(10), w_street_1 varchar(20), w_street_2"));
        assert!(warehouse.contains("w_zip char(9)) USING mot"));
        let customer = TABLES[3].create(Engine::Heap);
        assert!(customer.contains("c_zip char(9), c_phone char(16)"));
        assert!(customer.ends_with("c_data varchar(500)) USING heap WITH (fillfactor = 90)"));
    }
}
