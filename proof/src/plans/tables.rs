//! The tables of the fixed queries, as heap and as MOT tables of the same rows.
//!
//! Nothing is random: values are hashes of the row's number, so that every run has the same rows.
use super::side::Side;
use crate::failure::Result;

/// What makes the tables of a side: `{rows}` is the number of rows of the largest, `{with}` what a
/// table is made with.
const TABLES: &str = "
CREATE TABLE items (id int PRIMARY KEY, a int NOT NULL, b int NOT NULL, c int NOT NULL, g int NOT NULL,
  kind smallint NOT NULL, flag bool NOT NULL, n int, t text NOT NULL, u text COLLATE \"C\" NOT NULL,
  d timestamp NOT NULL, s text NOT NULL){with};
CREATE TABLE orders (id int PRIMARY KEY, item int NOT NULL, day date NOT NULL, amount int NOT NULL,
  state text COLLATE \"C\" NOT NULL){with};
CREATE TABLE small (id int PRIMARY KEY, k int NOT NULL, label text NOT NULL){with};
CREATE TABLE parts (id int NOT NULL, region int NOT NULL, v int NOT NULL) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO ({rows} / 8){with};
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ({rows} / 8) TO (MAXVALUE){with};
INSERT INTO items SELECT i, abs(hashint4(i)) % 1000, abs(hashint4(i + 77777777)) % 1000,
  abs(hashint4(i + 33333333)) % 100000, i / 100, abs(hashint4(i + 5555555)) % 8,
  abs(hashint4(i + 1111111)) % 100 = 0, CASE WHEN abs(hashint4(i + 222222)) % 50 = 0 THEN i % 500 END,
  'word' || abs(hashint4(i + 444444)) % 20000, 'key-' || lpad((abs(hashint4(i + 666666)) % 50000)::text, 5, '0'),
  timestamp '2024-01-01' + i * interval '1 minute', repeat('s', 60)
  FROM generate_series(1, {rows}) i;
INSERT INTO orders SELECT i, 1 + abs(hashint4(i)) % {rows}, date '2024-01-01' + abs(hashint4(i + 88888)) % 365,
  abs(hashint4(i + 99999)) % 10000, CASE abs(hashint4(i + 7777)) % 20 WHEN 0 THEN 'open' WHEN 1 THEN 'late' \
  ELSE 'done' END
  FROM generate_series(1, {rows} / 3) i;
INSERT INTO small SELECT i, abs(hashint4(i)) % {rows}, 'label' || i % 100 FROM generate_series(1, 1000) i;
INSERT INTO parts SELECT i, i % 50, abs(hashint4(i)) % 10000 FROM generate_series(1, {rows} / 4) i;
CREATE INDEX items_a ON items (a);
CREATE INDEX items_b ON items (b);
CREATE INDEX items_c ON items (c);
CREATE INDEX items_ab ON items (a, b);
CREATE INDEX items_gc ON items (g, c);
CREATE INDEX items_kind_id ON items (kind, id);
CREATE INDEX items_flag ON items (flag);
CREATE INDEX items_n ON items (n);
CREATE INDEX items_t ON items (t text_pattern_ops);
CREATE INDEX items_u ON items (u);
CREATE INDEX items_d ON items (d);
CREATE INDEX items_lower ON items (lower(t) text_pattern_ops) WHERE flag;
CREATE INDEX orders_item ON orders (item);
CREATE INDEX orders_day_amount ON orders (day, amount DESC);
CREATE INDEX orders_state_id ON orders (state, id);
CREATE INDEX small_k ON small (k);
CREATE UNIQUE INDEX parts_id ON parts (id);
CREATE INDEX parts_region_id ON parts (region, id);
";

/// Makes the tables of a side; nobody's, if they are there with as many rows.
pub fn make(side: &mut Side, rows: u64) -> Result<()> {
    let schema = side.schema;
    let found = side.session.must(&format!(
        "SELECT obj_description(oid) FROM pg_namespace WHERE nspname = '{schema}'"
    ))?;
    if found.value() == Some(&format!("{rows} rows")) {
        return Ok(());
    }
    side.make_schema()?;
    let with = format!(" USING {}", side.method);
    let statements = TABLES
        .replace("{rows}", &rows.to_string())
        .replace("{with}", &with);
    for statement in statements.split(";\n") {
        side.session.must(statement)?;
    }
    side.settle()?;
    side.session
        .must(&format!("COMMENT ON SCHEMA {schema} IS '{rows} rows'"))?;
    Ok(())
}
