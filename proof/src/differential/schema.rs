//! Random tables: types, keys, unique constraints, checks, defaults, indexes. Small domains, so
//! that rows collide.

use super::around::Around;
use super::ordinary::Ordinary;
use super::triggers;
use super::types::{KEY_TYPES, TYPES, Type};
use rand::Rng;
use rand::rngs::SmallRng;
use std::fmt::Write;
use tpcc::engine::Engine;

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Type,
    pub is_nullable: bool,
    /// Part of a unique constraint or index.
    pub is_unique: bool,
    /// How many values are in use: few where two columns make a key, so that keys are met again.
    span: i32,
    definition: String,
}

impl Column {
    /// One of the values in use; half of the time one of the few that are used most.
    pub fn literal(&self, rng: &mut SmallRng) -> String {
        let span = if rng.random() {
            self.span
        } else {
            self.span.min(HOT)
        };
        self.kind.literal(rng, span)
    }

    /// An operator class for an index on it, behind its name; often none.
    pub fn class(&self, rng: &mut SmallRng) -> String {
        let classes = self.kind.classes();
        if classes.is_empty() || rng.random() {
            return String::new();
        }
        format!(" {}", classes[rng.random_range(0..classes.len())].0)
    }

    /// Takes the values of a key that it refers to, and NULL.
    pub fn refer_to(&mut self, rng: &mut SmallRng, key: &Column) {
        self.kind = key.kind;
        self.span = key.span;
        self.is_nullable = true;
        self.definition = key.kind.sql().to_owned();
        if rng.random() {
            let _ = write!(self.definition, " DEFAULT {}", self.literal(rng));
        }
    }

    /// A value to compare with: one in use, or now and then one that nothing is beyond.
    pub fn bound(&self, rng: &mut SmallRng) -> String {
        match self.kind.extremes() {
            Some(extremes) if rng.random_ratio(1, 10) => {
                extremes[usize::from(rng.random::<bool>())].to_owned()
            }
            _ => self.literal(rng),
        }
    }
}

/// Values in use: of a column outside the key, of a key's only column, of one of several.
const SPANS: [i32; 3] = [24, 14, 5];
/// Of these, those that are used most, so that sessions meet.
const HOT: i32 = 5;

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// The first columns are the primary key.
    pub key_columns: usize,
    constraints: Vec<String>,
    indexes: Vec<String>,
    triggers: Vec<String>,
    pub around: Around,
    pub ordinary: Ordinary,
}

impl Table {
    /// Draws one, to stand beside `earlier` ones; the MOT side's is kept by `engine`.
    pub fn draw(rng: &mut SmallRng, name: &str, earlier: &[Table]) -> Table {
        let mut ordinary = Ordinary::draw(rng);
        let key_columns = if rng.random_ratio(1, 3) { 2 } else { 1 };
        let count = key_columns + rng.random_range(2..6);
        let mut columns: Vec<Column> = (0..count)
            .map(|number| {
                let is_key = number < key_columns;
                let types: &[Type] = if is_key { &KEY_TYPES } else { &TYPES };
                let kind = types[rng.random_range(0..types.len())];
                let is_nullable = !is_key && rng.random_ratio(3, 4);
                let mut definition = kind.sql().to_owned();
                if !is_nullable && !is_key {
                    definition += " NOT NULL";
                }
                if !is_key && (!is_nullable || rng.random_ratio(1, 4)) && rng.random_ratio(3, 4) {
                    let _ = write!(definition, " DEFAULT {}", kind.literal(rng, SPANS[0]));
                }
                Column {
                    name: format!("c{number}"),
                    kind,
                    is_nullable,
                    is_unique: is_key,
                    span: SPANS[if is_key { key_columns } else { 0 }],
                    definition,
                }
            })
            .collect();
        let key: Vec<String> = columns[..key_columns]
            .iter()
            .map(|column| column.name.clone())
            .collect();
        let mut constraints = vec![format!(
            "CONSTRAINT {name}_key PRIMARY KEY ({})",
            key.join(", ")
        )];
        let refers = rng.random_range(key_columns..count);
        let reference = ordinary.refer(rng, name, &mut columns[refers], earlier);
        constraints.extend(reference);
        let mut indexes = Vec::new();
        let first = columns[0].name.clone();
        for (number, column) in columns.iter_mut().enumerate().skip(key_columns) {
            let is_key_type = KEY_TYPES.contains(&column.kind)
                || matches!(
                    column.kind,
                    Type::Uuid | Type::Bool | Type::Float | Type::Search
                );
            let column_name = column.name.clone();
            if column.kind.is_number() && rng.random_ratio(1, 4) {
                constraints.push(format!(
                    "CONSTRAINT {name}_{column_name}_check CHECK ({column_name} < 18)"
                ));
            }
            // Keys of a partitioned table have all columns that it is partitioned by.
            let may_be_unique = is_key_type
                && column.kind != Type::Bool
                && !ordinary.is_partitioned
                && !(ordinary.refers_to.is_some() && number == refers);
            if may_be_unique && rng.random_ratio(1, 5) {
                column.is_unique = true;
                constraints.push(format!(
                    "CONSTRAINT {name}_{column_name}_unique UNIQUE ({column_name})"
                ));
            } else if is_key_type && rng.random_ratio(2, 5) {
                let order =
                    ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"][rng.random_range(0..4)];
                let more = if rng.random() {
                    format!(", {first}")
                } else {
                    String::new()
                };
                let class = column.class(rng);
                let key = match rng.random_ratio(1, 4) {
                    true => format!("(coalesce({column_name})){class}"),
                    false => format!("{column_name}{class}"),
                };
                let unique = match may_be_unique && rng.random_ratio(1, 5) {
                    true => " UNIQUE",
                    false => "",
                };
                column.is_unique |= !unique.is_empty();
                let rest = match rng.random_range(0..6) {
                    0 => format!(" WHERE {column_name} IS NOT NULL"),
                    1 => format!(" INCLUDE ({first})"),
                    _ => String::new(),
                };
                indexes.push(format!(
                    "CREATE{unique} INDEX {name}_{column_name}_index ON {name} ({key}{order}{more}){rest}"
                ));
            }
        }
        let mut table = Table {
            name: name.to_owned(),
            columns,
            key_columns,
            constraints,
            indexes,
            triggers: Vec::new(),
            around: Around::default(),
            ordinary,
        };
        if !table.set_column().is_unique {
            table.triggers = triggers::draw(rng, &table);
        }
        table.around = Around::draw(rng, &table);
        table
    }

    /// The column outside the key that prepared statements change.
    pub fn set_column(&self) -> &Column {
        let payload = &self.columns[self.key_columns..];
        payload
            .iter()
            .find(|column| !column.is_unique)
            .unwrap_or(&payload[0])
    }

    /// The statements that make it.
    pub fn create(&self, engine: Engine) -> Vec<String> {
        let columns = self
            .columns
            .iter()
            .map(|column| format!("{} {}", column.name, column.definition));
        let body: Vec<String> = columns.chain(self.constraints.iter().cloned()).collect();
        let body = body.join(", ");
        let tables = self.ordinary.create(&self.name, &body, engine);
        tables
            .into_iter()
            .chain(self.indexes.iter().cloned())
            .chain(self.triggers.iter().cloned())
            .chain(self.around.create(self))
            .collect()
    }

    /// The key's columns.
    pub fn key(&self) -> &[Column] {
        &self.columns[..self.key_columns]
    }

    /// The key's columns, with commas.
    pub fn key_list(&self) -> String {
        let names: Vec<&str> = self
            .key()
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        names.join(", ")
    }

    /// Any column.
    pub fn any(&self, rng: &mut SmallRng) -> &Column {
        &self.columns[rng.random_range(0..self.columns.len())]
    }

    /// A column outside the key.
    pub fn payload(&self, rng: &mut SmallRng) -> &Column {
        &self.columns[rng.random_range(self.key_columns..self.columns.len())]
    }
}
