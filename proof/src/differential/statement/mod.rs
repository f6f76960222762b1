//! Random statements.

mod change;
mod merge;
mod part;
mod prepared;
mod select;

use super::schema::{Column, Table};
use super::types::Type;
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
    if column.kind == Type::Bool || rng.random_ratio(1, 10) {
        return match rng.random_range(0..3) {
            0 => format!("{name} IS NULL"),
            1 => format!("{name} IS NOT NULL"),
            _ => format!("{name} = {literal}"),
        };
    }
    let (literal, other) = (column.bound(rng), column.bound(rng));
    if let Some((_, operator)) = column.kind.classes().first()
        && rng.random_ratio(1, 4)
    {
        let test = ["<", "<=", "=", ">=", ">"][rng.random_range(0..5)];
        return format!("{name} {} {literal}", operator.replace('?', test));
    }
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

/// A condition on columns of a table.
pub fn condition(rng: &mut SmallRng, table: &Table, prefix: &str) -> String {
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
            47..=53 => self.delete(rng),
            54..=55 => self.pass_on(rng),
            56..=60 => self.merge(rng),
            61..=73 => self.select(rng, false),
            74..=83 => self.select(rng, true),
            84..=95 => self.execute(rng),
            _ => self.cursor(rng),
        }
    }

    /// What a statement names in the table's place, and whether that may have several rows of a
    /// key.
    fn target(&self, rng: &mut SmallRng, table: &Table) -> (String, bool) {
        match table.around.other(rng, table) {
            Some(other) => (other.name, other.has_twins),
            None => (table.name.clone(), false),
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
}

fn qualified_key(table: &Table, name: &str) -> String {
    let names: Vec<String> = table
        .key()
        .iter()
        .map(|column| format!("{name}.{}", column.name))
        .collect();
    names.join(", ")
}
