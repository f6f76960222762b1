//! Random queries.
use super::condition::Drawing;
use super::tables::{Column, Table};
use super::types::{Class, one};
use rand::Rng;

/// A query.
pub struct Query {
    pub text: String,
    /// Its rows come in one order only.
    pub is_ordered: bool,
    /// Whether it fails is a matter of the plan.
    pub may_fail: bool,
    /// It locks rows, or changes them.
    pub locks: bool,
    /// Types of its parameters.
    pub parameters: Vec<String>,
}

/// A query's text, and whether its rows are ordered.
pub type Drawn = (String, bool);

impl Drawing<'_> {
    /// A query over the tables.
    pub fn query(mut self, tables: &[Table]) -> Query {
        let table = &tables[self.rng.random_range(0..tables.len())];
        let other = &tables[self.rng.random_range(0..tables.len())];
        let (text, is_ordered) = match self.rng.random_range(0..30) {
            0..=4 => self.rows(table),
            5..=7 => self.first_keys(table),
            8..=13 => self.aggregates(table),
            14..=20 => self.groups(table),
            21..=22 => self.join(table, other),
            23 => self.exists(table, other),
            24..=25 => self.lateral(table, other),
            26 => self.scalar(table, other),
            27 => self.distinct(table),
            28 => self.window(table),
            _ => self.union(table, other),
        };
        let is_cut = [" LIMIT ", "OFFSET ", "LATERAL", " x "]
            .iter()
            .any(|part| text.contains(part));
        let may_fail = self.may_fail || is_cut && self.may_overflow;
        // Both sides evaluate the same of the same rows. (A plan for a parameter's value may have
        // its conditions in another order.)
        let is_alike = table.is_bare
            && self.parameters.as_ref().is_none_or(Vec::is_empty)
            && ![" x ", " LIMIT "].iter().any(|part| text.contains(part));
        Query {
            may_fail: may_fail && !is_alike,
            locks: text.contains(" FOR "),
            text,
            is_ordered,
            parameters: self.parameters.unwrap_or_default(),
        }
    }

    /// An UPDATE or DELETE; `None`: it might fail on one side only.
    pub fn change(mut self, table: &Table) -> Option<Query> {
        let filter = self.filter(table, "");
        if self.may_fail || self.may_overflow {
            return None;
        }
        let column = table.any(self.rng).clone();
        let value = match self.rng.random_range(0..4) {
            0 if column.kind.is_integer() => format!("{} + 1", column.name),
            1 => "NULL".to_owned(),
            _ => column.kind.bare(self.rng),
        };
        let name = table.name;
        let verb = match self.chance(4) {
            true => format!("DELETE FROM {name} WHERE id % 4 = 1 AND {filter}"),
            false => format!("UPDATE {name} SET {} = {value} WHERE {filter}", column.name),
        };
        let text = match self.rng.random_range(0..7) {
            // What the statement itself has changed is not seen.
            4 => format!(
                "UPDATE {name} SET c0 = (SELECT count(*) FROM {name} z WHERE z.c1 >= {name}.c1 AND z.c0 < \
                 9)::int4 WHERE {filter}"
            ),
            5 => format!(
                "UPDATE {name} SET c0 = (SELECT max(s.n) FROM (SELECT z.c1, count(*) AS n FROM {name} z GROUP \
                 BY z.c1) s)::int4 WHERE {filter}"
            ),
            6 => format!(
                "UPDATE {name} SET c0 = y.c0 FROM u y WHERE y.id = {name}.id + 1 AND {name}.id % 3 = 0"
            ),
            0 => verb,
            1 => format!("{verb} RETURNING *"),
            _ => format!("WITH w AS ({verb} RETURNING *) SELECT count(*), sum(id) FROM w"),
        };
        Some(Query {
            text,
            is_ordered: false,
            may_fail: false,
            locks: true,
            parameters: self.parameters.unwrap_or_default(),
        })
    }

    pub(super) fn filter(&mut self, table: &Table, prefix: &str) -> String {
        match self.chance(8) {
            true => "true".to_owned(),
            false => {
                let depth = self.rng.random_range(1..4);
                self.condition(table, prefix, depth)
            }
        }
    }

    /// An order by columns of an index, or any.
    fn order(&mut self, table: &Table, prefix: &str) -> (Vec<Column>, String) {
        let mut columns: Vec<Column> = match self.rng.random_range(0..3) {
            0 if !table.indexes.is_empty() => {
                let key = &table.indexes[self.rng.random_range(0..table.indexes.len())];
                let count = self.rng.random_range(1..=key.len());
                key[..count]
                    .iter()
                    .map(|at| table.columns[*at].clone())
                    .collect()
            }
            _ => vec![table.any(self.rng).clone()],
        };
        columns.dedup_by(|left, right| left.name == right.name);
        let way = one(self.rng, &["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        let list: Vec<String> = columns
            .iter()
            .map(|column| format!("{prefix}{}{way}", column.name))
            .collect();
        (columns, list.join(", "))
    }

    fn rows(&mut self, table: &Table) -> Drawn {
        let filter = self.filter(table, "");
        if self.chance(2) {
            return (
                format!("SELECT * FROM {} WHERE {filter}", table.name),
                false,
            );
        }
        let (_, order) = self.order(table, "");
        let limit = self.limit();
        let lock = match self.chance(6) {
            true => " FOR UPDATE",
            false => "",
        };
        let text = format!(
            "SELECT * FROM {} WHERE {filter} ORDER BY {order}, id{limit}{lock}",
            table.name
        );
        (text, true)
    }

    pub(super) fn limit(&mut self) -> String {
        match self.rng.random_range(0..3) {
            0 => format!(" LIMIT {}", self.rng.random_range(0..7)),
            1 => format!(" OFFSET {} LIMIT 4", self.rng.random_range(0..4)),
            _ => String::new(),
        }
    }

    /// The first rows by some columns, and those columns alone.
    fn first_keys(&mut self, table: &Table) -> Drawn {
        let filter = self.filter(table, "");
        let (columns, order) = self.order(table, "");
        let list: Vec<String> = columns
            .iter()
            .map(|column| column.kind.normal(&column.name))
            .collect();
        let limit = self.limit();
        let text = format!(
            "SELECT {} FROM {} WHERE {filter} ORDER BY {order}{limit}",
            list.join(", "),
            table.name
        );
        (text, true)
    }

    /// Columns of both that can be compared.
    fn pair(&mut self, table: &Table, other: &Table) -> String {
        for _ in 0..9 {
            let left = table.any(self.rng).clone();
            let is_same = self.chance(2);
            let found = other.any_that(self.rng, |right| match is_same {
                true => right.kind == left.kind,
                false => {
                    right.kind.class() == left.kind.class() && left.kind.class() != Class::Text
                }
            });
            if let Some(right) = found {
                let order = one(
                    self.rng,
                    &["=", "=", "=", "=", "<", ">=", "IS NOT DISTINCT FROM"],
                );
                return format!("x.{} {order} y.{}", left.name, right.name);
            }
        }
        "x.c0 = y.c0".to_owned()
    }

    fn join(&mut self, table: &Table, other: &Table) -> Drawn {
        let on = match self.chance(4) {
            true => format!(
                "{} AND {}",
                self.pair(table, other),
                self.pair(table, other)
            ),
            false if self.chance(5) => {
                let order = one(self.rng, &["<", ">", ">=", "<="]);
                format!("(x.c0, x.c1) {order} (y.c0, y.c1)")
            }
            false => self.pair(table, other),
        };
        let kind = one(
            self.rng,
            &["JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"],
        );
        // FULL JOIN takes equality only.
        let on = match kind {
            "FULL JOIN" => "x.c0 = y.c0".to_owned(),
            _ => on,
        };
        let (left, right) = (self.filter(table, "x."), self.filter(other, "y."));
        let filter = match self.chance(3) {
            true => format!("{left} AND x.id < 40 AND y.id < 40"),
            false => format!("x.id < 20 AND {left} AND {right}"),
        };
        let from = format!(
            "{} x {kind} {} y ON {on} WHERE {filter}",
            table.name, other.name
        );
        match self.chance(3) {
            true => {
                let list = self.aggregate_list(table, "x.");
                let list = list.replace("ORDER BY x.id", "ORDER BY x.id, y.id");
                (format!("SELECT {list} FROM {from}"), true)
            }
            false => (format!("SELECT x.id, y.id, x.c0, y.c1 FROM {from}"), false),
        }
    }

    fn exists(&mut self, table: &Table, other: &Table) -> Drawn {
        let (filter, inner) = (self.filter(table, "x."), self.filter(other, "y."));
        let name = other.name;
        let test = match self.rng.random_range(0..4) {
            0 => format!(
                "EXISTS (SELECT FROM {name} y WHERE {} AND {inner})",
                self.pair(table, other)
            ),
            1 => format!(
                "NOT EXISTS (SELECT FROM {name} y WHERE {} AND {inner})",
                self.pair(table, other)
            ),
            2 => format!("x.c1 IN (SELECT y.c0 FROM {name} y WHERE {inner})"),
            _ => format!(
                "x.c0 NOT IN (SELECT y.c1 FROM {name} y WHERE y.c1 IS NOT NULL AND {inner})"
            ),
        };
        let what = match self.chance(2) {
            true => "count(*), min(x.c0)",
            false => "x.id, x.c1",
        };
        (
            format!(
                "SELECT {what} FROM {} x WHERE {filter} AND {test}",
                table.name
            ),
            false,
        )
    }

    /// Aggregates once for each row of another table.
    fn lateral(&mut self, table: &Table, other: &Table) -> Drawn {
        let list = self.aggregate_list(other, "y.");
        let (filter, inner) = (self.filter(table, "x."), self.filter(other, "y."));
        let pair = self.pair(table, other);
        let row = match self.chance(4) {
            true => " AND (y.c0, y.c1) > (x.c0, x.c1)",
            false => "",
        };
        let (group, key) = match self.chance(3) {
            true => (" GROUP BY y.c0", "y.c0, "),
            false => ("", ""),
        };
        let text = format!(
            "SELECT x.id, s.* FROM {} x CROSS JOIN LATERAL (SELECT {key}{list} FROM {} y WHERE {pair}{row} AND \
             {inner}{group}) s WHERE x.id < 25 AND {filter}",
            table.name, other.name
        );
        (text, false)
    }

    fn scalar(&mut self, table: &Table, other: &Table) -> Drawn {
        let order = one(self.rng, &["=", "<", ">", ">=", "<>"]);
        let aggregate = one(self.rng, &["max", "min", "avg", "sum", "count"]);
        let inner = self.filter(other, "y.");
        let correlated = match self.chance(2) {
            true => format!(" AND {}", self.pair(table, other)),
            false => String::new(),
        };
        let filter = self.filter(table, "x.");
        let test = format!(
            "x.c1 {order} (SELECT {aggregate}(y.c0) FROM {} y WHERE {inner}{correlated})",
            other.name
        );
        match self.chance(2) {
            true => (
                format!("SELECT id FROM {} x WHERE {filter} AND {test}", table.name),
                false,
            ),
            false => {
                let list = self.aggregate_list(table, "x.");
                (
                    format!(
                        "SELECT {list} FROM {} x WHERE {filter} AND {test}",
                        table.name
                    ),
                    true,
                )
            }
        }
    }

    fn distinct(&mut self, table: &Table) -> Drawn {
        let filter = self.filter(table, "");
        let (one, other) = (table.any(self.rng).clone(), table.any(self.rng).clone());
        let (one, other) = (one.kind.normal(&one.name), other.kind.normal(&other.name));
        (
            format!(
                "SELECT DISTINCT {one}, {other} FROM {} WHERE {filter}",
                table.name
            ),
            false,
        )
    }

    fn window(&mut self, table: &Table) -> Drawn {
        let filter = self.filter(table, "");
        let (_, order) = self.order(table, "");
        let text = format!(
            "SELECT id, row_number() OVER (PARTITION BY c0 ORDER BY {order}, id), sum(c1) OVER (PARTITION BY \
             c0), count(*) OVER () FROM {} WHERE {filter}",
            table.name
        );
        (text, false)
    }

    fn union(&mut self, table: &Table, other: &Table) -> Drawn {
        let kind = one(self.rng, &["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
        let (left, right) = (self.filter(table, ""), self.filter(other, ""));
        let grouped = self.chance(2);
        let text = match grouped {
            true => format!(
                "SELECT c0, count(*) FROM {} WHERE {left} GROUP BY c0 {kind} SELECT c1::int8, count(c0) FROM \
                 {} WHERE {right} GROUP BY c1",
                table.name, other.name
            ),
            false => format!(
                "SELECT c0::int8 FROM {} WHERE {left} {kind} SELECT c1 FROM {} WHERE {right}",
                table.name, other.name
            ),
        };
        (text, false)
    }
}
