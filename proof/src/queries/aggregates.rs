//! Random aggregates, over all rows and by groups.
use super::condition::Drawing;
use super::select::Drawn;
use super::tables::{Column, Table};
use super::types::{Type, one};
use rand::Rng;

impl Drawing<'_> {
    /// One aggregate.
    pub(super) fn aggregate(&mut self, table: &Table, prefix: &str) -> String {
        let column = table.any(self.rng).clone();
        let is_plain = self.is_plain;
        let number = table
            .any_that(self.rng, |column| {
                column.kind.has_sum() && (!is_plain || column.kind.is_plain())
            })
            .unwrap_or(&table.columns[0])
            .clone();
        let kinds = match is_plain {
            true => 15,
            false => 20,
        };
        let name = format!("{prefix}{}", column.name);
        let of = |function: &str, column: &Column| format!("{function}({prefix}{})", column.name);
        // With the type of a result that may be written in several ways: which it is depends on the
        // order of rows.
        let (mut found, several) = match self.rng.random_range(0..kinds) {
            0 if prefix.is_empty() => (format!("count({}.*)", table.name), None),
            0..=1 => ("count(*)".to_owned(), None),
            2..=3 => (of("count", &column), None),
            4..=7 => {
                let is_float = matches!(number.kind, Type::Float4 | Type::Float8);
                let function = one(self.rng, &["sum", "avg"]);
                (of(function, &number), is_float.then_some(number.kind))
            }
            8..=9 => {
                let function = one(self.rng, &["sum", "avg", "min", "max", "count"]);
                let argument = self.integer(table, prefix, 2);
                (format!("{function}({argument})"), None)
            }
            10..=14 => {
                let column = table
                    .any_that(self.rng, |column| {
                        column.kind.has_extremes() && (!is_plain || column.kind.is_plain())
                    })
                    .unwrap_or(&table.columns[0])
                    .clone();
                let function = one(self.rng, &["min", "max"]);
                (of(function, &column), Some(column.kind))
            }
            15 => {
                let function = one(self.rng, &["bool_and", "bool_or", "every"]);
                let found = table.any_that(self.rng, |column| column.kind == Type::Bool);
                let argument = match found {
                    Some(column) if self.chance(2) => format!("{prefix}{}", column.name),
                    _ => self.condition(table, prefix, 1),
                };
                (format!("{function}({argument})"), None)
            }
            16 => (format!("count(DISTINCT {name})"), None),
            17 => (
                format!("sum(DISTINCT {prefix}{})", number.name),
                Some(number.kind),
            ),
            18 => (format!("array_agg({name} ORDER BY {prefix}id)"), None),
            _ => (
                format!("string_agg({name}::text, ',' ORDER BY {prefix}id DESC)"),
                None,
            ),
        };
        if self.chance(if is_plain { 12 } else { 5 }) {
            let condition = self.condition(table, prefix, 1);
            found = format!("{found} FILTER (WHERE {condition})");
        }
        several.map_or(found.clone(), |kind| kind.normal(&found))
    }

    pub(super) fn aggregate_list(&mut self, table: &Table, prefix: &str) -> String {
        let count = self.rng.random_range(1..5);
        let found: Vec<String> = (0..count)
            .map(|_| {
                let found = self.aggregate(table, prefix);
                match self.rng.random_range(0..24) {
                    0 => format!("({found}, count(*) + 1)::text"),
                    1 => format!("CASE WHEN count(*) > 3 THEN {found} END"),
                    2 => format!("coalesce({found}::text, 'none') || count(*)"),
                    3 => format!("{found}, (SELECT max(z.c1) FROM u z WHERE z.c0 < 3)"),
                    _ => found,
                }
            })
            .collect();
        found.join(", ")
    }

    fn having(&mut self, table: &Table) -> String {
        let order = one(self.rng, &["=", "<", ">", ">=", "<>"]);
        let number = self.rng.random_range(0..9);
        match self.rng.random_range(0..4) {
            0 => format!(" HAVING count(*) {order} {number}"),
            1 => format!(" HAVING sum({}) {order} {number}", table.columns[1].name),
            2 => format!(
                " HAVING max({}) IS NOT NULL AND count(*) {order} {number}",
                table.columns[0].name
            ),
            3 if self.chance(2) => {
                format!(" HAVING count(*) {order} (SELECT count(*) FROM t z WHERE z.c0 = {number})")
            }
            _ => String::new(),
        }
    }

    pub(super) fn aggregates(&mut self, table: &Table) -> Drawn {
        let list = self.aggregate_list(table, "");
        let filter = self.filter(table, "");
        let having = self.having(table);
        let name = table.name;
        let text = match self.chance(6) {
            // All columns of a subquery.
            true => {
                format!("SELECT {list} FROM (SELECT * FROM {name} WHERE {filter} OFFSET 0) {name}")
            }
            false => format!("SELECT {list} FROM {name} WHERE {filter}{having}"),
        };
        (text, true)
    }

    pub(super) fn groups(&mut self, table: &Table) -> Drawn {
        let count = match self.is_plain {
            true => one(self.rng, &[1, 2, 2]),
            false => one(self.rng, &[1, 1, 1, 2, 2, 3]),
        };
        let mut keys: Vec<(String, String)> = vec![];
        // Of all rows, of which few are expected, and so few groups: they may not fit into memory.
        let is_larger = self.chance(6);
        if is_larger {
            keys.push(("(id * 3)".to_owned(), "(id * 3)".to_owned()));
        }
        for _ in usize::from(is_larger)..count {
            let key = match self.chance(5) {
                true => {
                    let key = self.integer(table, "", 1);
                    // A number stands for a column.
                    let key = match self.rng.random_range(0..3) {
                        0 => "(id / 2)".to_owned(),
                        1 => "(id % 9)".to_owned(),
                        _ => format!("({key} + 0)"),
                    };
                    (key.clone(), key)
                }
                false => {
                    let is_plain = self.is_plain;
                    let small = |column: &Column| {
                        if is_plain && !column.kind.is_plain() {
                            return false;
                        }
                        !matches!(
                            column.kind,
                            Type::Numeric | Type::Amount | Type::Interval | Type::Bytea
                        )
                    };
                    let column = match is_plain || self.chance(2) {
                        true => table.any_that(self.rng, small).unwrap_or(&table.columns[0]),
                        false => table.any(self.rng),
                    };
                    (column.name.clone(), column.kind.normal(&column.name))
                }
            };
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let list = self.aggregate_list(table, "");
        let filter = match is_larger {
            true => "id % 10000 = id".to_owned(),
            false => self.filter(table, ""),
        };
        let having = self.having(table);
        let shown: Vec<&str> = keys.iter().map(|key| key.1.as_str()).collect();
        let by: Vec<&str> = keys.iter().map(|key| key.0.as_str()).collect();
        let (shown, by) = (shown.join(", "), by.join(", "));
        let name = table.name;
        let group = match self.rng.random_range(0..24) {
            0 => format!("ROLLUP ({by})"),
            1 => format!("GROUPING SETS (({by}), ())"),
            _ => by.clone(),
        };
        let is_plain = group == by;
        if is_plain && !table.is_bare && !table.is_partitioned && self.chance(16) {
            // The key decides all columns.
            let text =
                format!("SELECT id, c0, c1, {list} FROM {name} WHERE {filter} GROUP BY id{having}");
            return (text, false);
        }
        if is_plain && self.chance(16) {
            let text = format!(
                "SELECT {shown}, generate_series(1, 2), {list} FROM {name} WHERE {filter} GROUP BY {by}{having}"
            );
            return (text, false);
        }
        if is_plain && self.chance(12) {
            let text = format!(
                "SELECT {shown}, (SELECT sum(z.c1) FROM u z WHERE z.c0 = {name}.c0), {list} FROM {name} WHERE \
                 {filter} GROUP BY {by}, c0{having}"
            );
            return (text, false);
        }
        if is_plain && self.chance(12) {
            let text = format!(
                "SELECT {shown}, count(*), rank() OVER (ORDER BY count(*)), sum(count(*)) OVER () FROM {name} \
                 WHERE {filter} GROUP BY {by}{having}"
            );
            return (text, false);
        }
        let shown = match (is_plain, self.chance(8)) {
            (true, true) => "1".to_owned(),
            (true, false) => shown,
            // Of a column that is grouped by, or not.
            (false, _) => "1".to_owned(),
        };
        let text =
            format!("SELECT {shown}, {list} FROM {name} WHERE {filter} GROUP BY {group}{having}");
        if is_plain && self.chance(3) {
            let way = one(self.rng, &["", " DESC"]);
            let order: Vec<String> = keys.iter().map(|key| format!("{}{way}", key.0)).collect();
            let limit = self.limit();
            return (format!("{text} ORDER BY {}{limit}", order.join(", ")), true);
        }
        (text, false)
    }
}
