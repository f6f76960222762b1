//! SELECT, with row locks and without.
use super::{Source, Statement, Table, by_key, condition};
use rand::Rng;
use rand::rngs::SmallRng;

impl Source<'_> {
    pub(super) fn select(&self, rng: &mut SmallRng, locking: bool) -> Statement {
        let table = self.table(rng);
        let name = &table.name;
        if locking {
            return select_locking(rng, table);
        }
        let key = table.key_list();
        let filter = condition(rng, table, "");
        let (target, _) = self.target(rng, table);
        let (text, is_ordered) = match rng.random_range(0..10) {
            0..=2 => (format!("SELECT * FROM {target} WHERE {filter}"), false),
            3..=4 => {
                let direction = if rng.random() { " DESC" } else { "" };
                let key = key.replace(", ", &format!("{direction}, "));
                let limit = if rng.random() {
                    " LIMIT 4 OFFSET 1"
                } else {
                    ""
                };
                (
                    format!("SELECT * FROM {name} WHERE {filter} ORDER BY {key}{direction}{limit}"),
                    true,
                )
            }
            5 => {
                let column = table.any(rng);
                let column_name = &column.name;
                let mut list = format!("count(*), count({column_name})");
                // With core's alone all of them are core's.
                let is_core = rng.random();
                if is_core {
                    list += &format!(", count(DISTINCT {column_name})");
                } else if rng.random() {
                    list += &format!(" FILTER (WHERE {})", condition(rng, table, ""));
                }
                if column.kind.has_exact_sum() {
                    let kind = if is_core { "::numeric" } else { "" };
                    list += &format!(", sum({column_name}), avg({column_name}{kind})");
                }
                if column.kind.is_ordered() && (is_core || column.kind.is_plain()) {
                    list += &format!(", min({column_name}), max({column_name})");
                }
                (format!("SELECT {list} FROM {target} WHERE {filter}"), true)
            }
            6 => {
                let column = table.any(rng);
                let (column, value) = (&column.name, column.kind.normal(&column.name));
                (
                    format!(
                        "SELECT {value}, count(*) FROM {name} WHERE {filter} GROUP BY {column}"
                    ),
                    false,
                )
            }
            7 if rng.random() => (in_order_of_class(rng, table, &filter), true),
            7..=8 => {
                let (other, on) = self.join(rng, table);
                let kind = if rng.random() { "JOIN" } else { "LEFT JOIN" };
                let filter = condition(rng, table, &format!("{name}."));
                (
                    format!(
                        "SELECT {name}.*, o.* FROM {name} {kind} {} o ON {on} WHERE {filter}",
                        other.name
                    ),
                    false,
                )
            }
            _ => {
                let (other, on) = self.join(rng, table);
                let not = if rng.random() { "" } else { "NOT " };
                (
                    format!(
                        "SELECT * FROM {name} WHERE {not}EXISTS (SELECT FROM {} o WHERE {on})",
                        other.name
                    ),
                    false,
                )
            }
        };
        Statement {
            is_ordered,
            ..Statement::plain(text)
        }
    }
}

/// Rows in the order of an operator class that an index may have.
fn in_order_of_class(rng: &mut SmallRng, table: &Table, filter: &str) -> String {
    let column = table.any(rng);
    let test = ["<", ">"][rng.random_range(0..2)];
    let order = match column.kind.classes().first() {
        Some((_, operator)) => format!(" USING {}", operator.replace('?', test)),
        None => [" NULLS FIRST", " DESC"][rng.random_range(0..2)].to_owned(),
    };
    format!(
        "SELECT * FROM {} WHERE {filter} ORDER BY {}{order}, {}",
        table.name,
        column.name,
        table.key_list()
    )
}

fn select_locking(rng: &mut SmallRng, table: &Table) -> Statement {
    let lock = [
        "FOR UPDATE",
        "FOR NO KEY UPDATE",
        "FOR SHARE",
        "FOR KEY SHARE",
    ][rng.random_range(0..4)];
    let policy = ["", "", " NOWAIT", " SKIP LOCKED"][rng.random_range(0..4)];
    let one_row = rng.random();
    let filter = if one_row {
        by_key(rng, table)
    } else {
        condition(rng, table, "")
    };
    let limit = if rng.random_ratio(1, 4) {
        " LIMIT 3"
    } else {
        ""
    };
    let (name, key) = (&table.name, table.key_list());
    Statement {
        is_ordered: true,
        locks_several: !one_row,
        ..Statement::plain(format!(
            "SELECT * FROM {name} WHERE {filter} ORDER BY {key}{limit} {lock}{policy}"
        ))
    }
}
