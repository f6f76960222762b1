//! Random statements.

use super::schema::{Column, Table, Type};
use rand::Rng;
use rand::rngs::SmallRng;

/// A statement, the same on both sides.
#[derive(Clone, Debug)]
pub struct Statement {
    pub text: String,
    /// Its rows have an order.
    pub is_ordered: bool,
    /// Locks rows in the order of its plan, which may be another on the other side.
    pub locks_several: bool,
    /// The table that the session's cursor stands on afterwards.
    pub declares: Option<usize>,
    /// Changes a definition.
    pub defines: bool,
}

impl Statement {
    /// One without rows, that locks no more than one row.
    pub fn plain(text: impl Into<String>) -> Statement {
        Statement {
            text: text.into(),
            is_ordered: true,
            locks_several: false,
            declares: None,
            defines: false,
        }
    }

    /// The number of the prepared transaction that it makes or ends.
    pub fn prepared_transaction(&self) -> Option<u64> {
        let (_, rest) = self.text.split_once("'proof_@_")?;
        rest.trim_end_matches('\'').parse().ok()
    }

    /// Whether it may lock a row and leave it as it is.
    pub fn may_lock_only(&self) -> bool {
        ["FOR ", "EXECUTE lock_", " DO UPDATE "]
            .iter()
            .any(|mark| self.text.contains(mark))
    }
}

/// What statements of tables are drawn from.
pub struct Source<'a> {
    pub tables: &'a [Table],
    /// What this session's cursor may stand on.
    pub cursor_table: Option<usize>,
}

fn value(rng: &mut SmallRng, column: &Column) -> String {
    match rng.random_range(0..12) {
        0 if column.is_nullable => "NULL".to_owned(),
        // Refused where there is a NOT NULL.
        1 if rng.random_ratio(1, 8) => "NULL".to_owned(),
        _ => column.literal(rng),
    }
}

fn condition_on(rng: &mut SmallRng, column: &Column, prefix: &str) -> String {
    let name = format!("{prefix}{}", column.name);
    let literal = column.literal(rng);
    if matches!(column.kind, Type::Jsonb | Type::IntArray | Type::Bool) || rng.random_ratio(1, 10) {
        return match rng.random_range(0..3) {
            0 => format!("{name} IS NULL"),
            1 => format!("{name} IS NOT NULL"),
            _ => format!("{name} = {literal}"),
        };
    }
    let other = column.literal(rng);
    match rng.random_range(0..8) {
        0 | 1 => format!("{name} = {literal}"),
        2 => format!("{name} IN ({literal}, {other}, {})", column.literal(rng)),
        3 => format!("{name} < {literal}"),
        4 => format!("{name} >= {literal}"),
        5 => format!("{name} BETWEEN {literal} AND {other}"),
        6 => format!("{name} > {literal} AND {name} <= {other}"),
        _ => format!("{name} <> {literal}"),
    }
}

fn condition(rng: &mut SmallRng, table: &Table, prefix: &str) -> String {
    let one = |rng: &mut SmallRng| {
        let column = if rng.random() {
            &table.columns[0]
        } else {
            table.any(rng)
        };
        condition_on(rng, column, prefix)
    };
    match rng.random_range(0..10) {
        0 => "true".to_owned(),
        1..=5 => one(rng),
        6..=8 => format!("{} AND {}", one(rng), one(rng)),
        _ => format!("({} OR {})", one(rng), one(rng)),
    }
}

fn by_key(rng: &mut SmallRng, table: &Table) -> String {
    let parts: Vec<String> = table
        .key()
        .iter()
        .map(|column| format!("{} = {}", column.name, column.literal(rng)))
        .collect();
    parts.join(" AND ")
}

/// A row's new values. Several rows at once get no new keys: which fails first depends on the order.
fn assignments(rng: &mut SmallRng, table: &Table, one_row: bool) -> String {
    let mut parts = Vec::new();
    for _ in 0..rng.random_range(1..3) {
        let column = if one_row && rng.random_ratio(1, 6) {
            table.any(rng)
        } else {
            table.payload(rng)
        };
        let is_taken = parts.iter().any(|(name, _)| *name == column.name);
        if is_taken || (column.is_unique && !one_row) || !table.may_assign(column) {
            continue;
        }
        let new = match rng.random_range(0..4) {
            0 if column.kind.is_number() => format!("{}.{} + 1", table.name, column.name),
            1 if column.kind == Type::Text => {
                format!("left({}.{} || 'y', 8)", table.name, column.name)
            }
            2 if rng.random_ratio(1, 3) => "DEFAULT".to_owned(),
            _ => value(rng, column),
        };
        parts.push((column.name.as_str(), new));
    }
    if parts.is_empty() {
        let column = table.set_column();
        parts.push((&column.name, format!("{}.{}", table.name, column.name)));
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, new)| format!("{name} = {new}"))
        .collect();
    parts.join(", ")
}

impl Source<'_> {
    pub(super) fn table(&self, rng: &mut SmallRng) -> &Table {
        &self.tables[rng.random_range(0..self.tables.len())]
    }

    /// A statement on rows. `calm`: only plain reads.
    pub fn draw(&self, rng: &mut SmallRng, calm: bool) -> Statement {
        if calm {
            return self.select(rng, false);
        }
        match rng.random_range(0..100) {
            0..=24 => self.insert(rng),
            25..=46 => self.update(rng),
            47..=55 => self.delete(rng),
            56..=73 => self.select(rng, false),
            74..=83 => self.select(rng, true),
            84..=95 => self.execute(rng),
            _ => self.cursor(rng),
        }
    }

    fn row(&self, rng: &mut SmallRng, columns: &[&Column]) -> String {
        let values: Vec<String> = columns
            .iter()
            .map(|column| {
                if rng.random_ratio(1, 15) {
                    "DEFAULT".to_owned()
                } else {
                    value(rng, column)
                }
            })
            .collect();
        format!("({})", values.join(", "))
    }

    /// An INSERT. Its rows come in the order of its list.
    pub fn insert(&self, rng: &mut SmallRng) -> Statement {
        let table = self.table(rng);
        let name = &table.name;
        let columns: Vec<&Column> = table
            .columns
            .iter()
            .enumerate()
            .filter(|(number, _)| *number < table.key_columns || rng.random_ratio(5, 6))
            .map(|(_, column)| column)
            .collect();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let rows: Vec<String> = (0..rng.random_range(1..4))
            .map(|_| self.row(rng, &columns))
            .collect();
        let conflict = match rng.random_range(0..10) {
            0..=2 => " ON CONFLICT DO NOTHING".to_owned(),
            3..=6 => {
                let column = table.payload(rng);
                let column = if table.may_assign(column) {
                    &column.name
                } else {
                    &table.set_column().name
                };
                let new = if rng.random() {
                    format!("excluded.{column}")
                } else {
                    format!("{name}.{column}")
                };
                let filter = if rng.random_ratio(1, 4) {
                    format!(" WHERE {}", condition(rng, table, &format!("{name}.")))
                } else {
                    String::new()
                };
                format!(
                    " ON CONFLICT ({}) DO UPDATE SET {column} = {new}{filter}",
                    table.key_list()
                )
            }
            _ => String::new(),
        };
        let returning = if rng.random() { " RETURNING *" } else { "" };
        let rows = rows.join(", ");
        Statement::plain(format!(
            "INSERT INTO {name} ({}) VALUES {rows}{conflict}{returning}",
            names.join(", ")
        ))
    }

    fn update(&self, rng: &mut SmallRng) -> Statement {
        let table = self.table(rng);
        let name = &table.name;
        let one_row = rng.random_ratio(3, 5);
        let set = assignments(rng, table, one_row);
        let (from, filter) = if one_row {
            (String::new(), by_key(rng, table))
        } else if !table.locks_what_it_reads() && rng.random_ratio(1, 3) {
            let (other, on) = self.join(rng, table);
            (
                format!(" FROM {} o", other.name),
                format!("{on} AND {}", condition(rng, other, "o.")),
            )
        } else {
            (String::new(), condition(rng, table, &format!("{name}.")))
        };
        let returning = match rng.random_range(0..4) {
            0 => format!(" RETURNING {name}.*"),
            1 => format!(" RETURNING {}", qualified_key(table, name)),
            _ => String::new(),
        };
        Statement {
            is_ordered: false,
            locks_several: !one_row,
            ..Statement::plain(format!(
                "UPDATE {name} SET {set}{from} WHERE {filter}{returning}"
            ))
        }
    }

    fn delete(&self, rng: &mut SmallRng) -> Statement {
        let table = self.table(rng);
        let name = &table.name;
        let one_row = rng.random_ratio(3, 5);
        let (using, filter) = if one_row {
            (String::new(), by_key(rng, table))
        } else if !table.locks_what_it_reads() && rng.random_ratio(1, 4) {
            let (other, on) = self.join(rng, table);
            (
                format!(" USING {} o", other.name),
                format!("{on} AND {}", condition(rng, other, "o.")),
            )
        } else {
            (
                String::new(),
                format!(
                    "{} AND {}",
                    condition(rng, table, ""),
                    condition(rng, table, "")
                ),
            )
        };
        let returning = if rng.random_ratio(1, 3) {
            format!(" RETURNING {name}.*")
        } else {
            String::new()
        };
        Statement {
            is_ordered: false,
            locks_several: !one_row,
            ..Statement::plain(format!(
                "DELETE FROM {name}{using} WHERE {filter}{returning}"
            ))
        }
    }

    /// Another table `o`, and a condition on columns of one type, or on none.
    fn join(&self, rng: &mut SmallRng, table: &Table) -> (&Table, String) {
        let other = self.table(rng);
        let mut pairs = Vec::new();
        for left in &table.columns {
            for right in &other.columns {
                if left.kind == right.kind {
                    pairs.push(format!("{}.{} = o.{}", table.name, left.name, right.name));
                }
            }
        }
        if pairs.is_empty() {
            return (
                other,
                format!(
                    "{} IS NOT NULL",
                    qualified_key(table, &table.name)
                        .split(',')
                        .next()
                        .unwrap_or("1")
                ),
            );
        }
        let at = rng.random_range(0..pairs.len());
        (other, pairs.swap_remove(at))
    }

    fn select(&self, rng: &mut SmallRng, locking: bool) -> Statement {
        let table = self.table(rng);
        let name = &table.name;
        let key = table.key_list();
        if locking {
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
            return Statement {
                is_ordered: true,
                locks_several: !one_row,
                ..Statement::plain(format!(
                    "SELECT * FROM {name} WHERE {filter} ORDER BY {key}{limit} {lock}{policy}"
                ))
            };
        }
        let filter = condition(rng, table, "");
        let (text, is_ordered) = match rng.random_range(0..10) {
            0..=2 => (format!("SELECT * FROM {name} WHERE {filter}"), false),
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
                let mut list =
                    format!("count(*), count({column_name}), count(DISTINCT {column_name})");
                if column.kind.has_exact_sum() {
                    list += &format!(", sum({column_name}), avg({column_name}::numeric)");
                }
                if column.kind.is_ordered() {
                    list += &format!(", min({column_name}), max({column_name})");
                }
                (format!("SELECT {list} FROM {name} WHERE {filter}"), true)
            }
            6 => {
                let column = &table.any(rng).name;
                (
                    format!(
                        "SELECT {column}, count(*) FROM {name} WHERE {filter} GROUP BY {column}"
                    ),
                    false,
                )
            }
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

    /// What each session prepares, of each table.
    pub fn prepare(&self) -> Vec<String> {
        let mut all = Vec::new();
        for table in self.tables {
            let name = &table.name;
            let types = |columns: &[Column]| {
                let types: Vec<&str> = columns.iter().map(|column| column.kind.plain()).collect();
                types.join(", ")
            };
            let key_types = types(table.key());
            let count = table.key_columns;
            let key: Vec<String> = table
                .key()
                .iter()
                .enumerate()
                .map(|(at, column)| format!("{} = ${}", column.name, at + 1))
                .collect();
            let key = key.join(" AND ");
            let column = table.set_column();
            let first = &table.columns[0];
            all.push(format!(
                "PREPARE get_{name} ({key_types}) AS SELECT * FROM {name} WHERE {key}"
            ));
            all.push(format!(
                "PREPARE lock_{name} ({key_types}) AS SELECT * FROM {name} WHERE {key} FOR UPDATE"
            ));
            all.push(format!(
                "PREPARE set_{name} ({key_types}, {}) AS UPDATE {name} SET {} = ${} WHERE {key}",
                column.kind.plain(),
                column.name,
                count + 1
            ));
            all.push(format!(
                "PREPARE del_{name} ({key_types}) AS DELETE FROM {name} WHERE {key}"
            ));
            let places: Vec<String> = (1..=table.columns.len())
                .map(|at| format!("${at}"))
                .collect();
            all.push(format!(
                "PREPARE put_{name} ({}) AS INSERT INTO {name} VALUES ({})",
                types(&table.columns),
                places.join(", ")
            ));
            all.push(format!(
                "PREPARE range_{name} ({0}, {0}) AS SELECT * FROM {name} WHERE {1} BETWEEN $1 AND $2 ORDER BY {2}",
                first.kind.plain(),
                first.name,
                table.key_list()
            ));
        }
        all
    }

    fn execute(&self, rng: &mut SmallRng) -> Statement {
        let table = self.table(rng);
        let name = &table.name;
        let key: Vec<String> = table
            .key()
            .iter()
            .map(|column| column.literal(rng))
            .collect();
        let key = key.join(", ");
        let text = match rng.random_range(0..12) {
            0..=2 => format!("EXECUTE get_{name}({key})"),
            3 => format!("EXECUTE lock_{name}({key})"),
            4..=6 => format!(
                "EXECUTE set_{name}({key}, {})",
                value(rng, table.set_column())
            ),
            7 => format!("EXECUTE del_{name}({key})"),
            8..=10 => {
                let values: Vec<String> = table
                    .columns
                    .iter()
                    .map(|column| value(rng, column))
                    .collect();
                format!("EXECUTE put_{name}({})", values.join(", "))
            }
            _ => {
                let first = &table.columns[0];
                format!(
                    "EXECUTE range_{name}({}, {})",
                    first.literal(rng),
                    first.literal(rng)
                )
            }
        };
        Statement::plain(text)
    }

    /// The cursor of a session: declared, moved, used.
    fn cursor(&self, rng: &mut SmallRng) -> Statement {
        let Some(table) = self.cursor_table else {
            let table = rng.random_range(0..self.tables.len());
            return self.declare(rng, table);
        };
        let table = &self.tables[table];
        let text = match rng.random_range(0..6) {
            0 => "CLOSE c".to_owned(),
            1 => "MOVE FORWARD 2 FROM c".to_owned(),
            2 => format!(
                "UPDATE {} SET {} WHERE CURRENT OF c",
                table.name,
                assignments(rng, table, true)
            ),
            3 => format!("DELETE FROM {} WHERE CURRENT OF c", table.name),
            _ => "FETCH 3 FROM c".to_owned(),
        };
        Statement::plain(text)
    }

    /// Declares a cursor on a table.
    fn declare(&self, rng: &mut SmallRng, number: usize) -> Statement {
        let table = &self.tables[number];
        let lock = if rng.random() { " FOR UPDATE" } else { "" };
        let hold = if lock.is_empty() && rng.random_ratio(1, 3) {
            " WITH HOLD"
        } else {
            ""
        };
        Statement {
            locks_several: !lock.is_empty(),
            declares: Some(number),
            ..Statement::plain(format!(
                "DECLARE c CURSOR{hold} FOR SELECT * FROM {} WHERE {} ORDER BY {}{lock}",
                table.name,
                condition(rng, table, ""),
                table.key_list()
            ))
        }
    }
}

fn qualified_key(table: &Table, name: &str) -> String {
    let names: Vec<String> = table
        .key()
        .iter()
        .map(|column| format!("{name}.{}", column.name))
        .collect();
    names.join(", ")
}
