//! Random tables: types, keys, unique constraints, checks, defaults, indexes. Small domains, so
//! that rows collide.

use super::around::Around;
use super::ordinary::Ordinary;
use super::triggers;
use rand::Rng;
use rand::rngs::SmallRng;
use std::fmt::Write;
use tpcc::engine::Engine;

/// Types of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Int,
    Bigint,
    Smallint,
    Text,
    Varchar,
    Bool,
    Numeric,
    Float,
    Date,
    Timestamp,
    Uuid,
    Bytea,
    Jsonb,
    IntArray,
    /// The row type `d_types.pair`.
    Row,
    Search,
    /// The enum `d_types.mood`.
    Mood,
    Span,
    /// A text in the order of a language.
    Word,
}

/// Makes the types of columns that both sides have in common: a row type of a number and a text,
/// and an enum with a value that was put between others.
pub const SHARED_TYPES: &str = "DROP SCHEMA IF EXISTS d_types CASCADE; CREATE SCHEMA d_types; \
    CREATE TYPE d_types.pair AS (n int, t text COLLATE \"C\"); \
    CREATE TYPE d_types.mood AS ENUM ('low', 'high', 'higher'); \
    ALTER TYPE d_types.mood ADD VALUE 'fair' BEFORE 'high'";

const KEY_TYPES: [Type; 15] = [
    Type::Int,
    Type::Bigint,
    Type::Text,
    Type::Numeric,
    Type::Date,
    Type::Timestamp,
    Type::Varchar,
    Type::Smallint,
    Type::Bytea,
    Type::Jsonb,
    Type::IntArray,
    Type::Row,
    Type::Mood,
    Type::Span,
    Type::Word,
];
const TYPES: [Type; 19] = [
    Type::Int,
    Type::Bigint,
    Type::Smallint,
    Type::Text,
    Type::Varchar,
    Type::Bool,
    Type::Numeric,
    Type::Float,
    Type::Date,
    Type::Timestamp,
    Type::Uuid,
    Type::Bytea,
    Type::Jsonb,
    Type::IntArray,
    Type::Row,
    Type::Search,
    Type::Mood,
    Type::Span,
    Type::Word,
];

impl Type {
    /// In SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Type::Int => "int",
            Type::Bigint => "bigint",
            Type::Smallint => "smallint",
            Type::Text => "text COLLATE \"C\"",
            Type::Varchar => "varchar(12) COLLATE \"C\"",
            Type::Bool => "boolean",
            Type::Numeric => "numeric(12,2)",
            Type::Float => "float8",
            Type::Date => "date",
            Type::Timestamp => "timestamp",
            Type::Uuid => "uuid",
            Type::Bytea => "bytea",
            Type::Jsonb => "jsonb",
            Type::IntArray => "int[]",
            Type::Row => "d_types.pair",
            Type::Search => "tsvector",
            Type::Mood => "d_types.mood",
            Type::Span => "int4range",
            Type::Word => "text COLLATE \"en-x-icu\"",
        }
    }

    /// Without a collation, for parameters.
    pub fn plain(self) -> &'static str {
        self.sql().split(" COLLATE").next().unwrap_or_default()
    }

    /// Can be added to.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Type::Int | Type::Bigint | Type::Smallint | Type::Numeric | Type::Float
        )
    }

    /// Sums do not depend on the order.
    pub fn has_exact_sum(self) -> bool {
        self.is_number() && self != Type::Float
    }

    /// A number of a fixed point, or of a time.
    pub fn is_plain(self) -> bool {
        self.has_exact_sum() || matches!(self, Type::Date | Type::Timestamp)
    }

    /// Has comparisons, min and max.
    pub fn is_ordered(self) -> bool {
        !matches!(
            self,
            Type::Jsonb
                | Type::IntArray
                | Type::Row
                | Type::Search
                | Type::Span
                | Type::Bool
                | Type::Uuid
                | Type::Bytea
        )
    }

    /// The least and the greatest value, if there are such.
    fn extremes(self) -> Option<[&'static str; 2]> {
        match self {
            Type::Int => Some(["(-2147483648)", "2147483647"]),
            Type::Bigint => Some(["(-9223372036854775808)", "9223372036854775807"]),
            Type::Smallint => Some(["(-32768)::smallint", "32767::smallint"]),
            Type::Float => Some(["'-infinity'", "'nan'"]),
            Type::Date | Type::Timestamp => Some(["'-infinity'", "'infinity'"]),
            _ => None,
        }
    }

    fn literal(self, rng: &mut SmallRng, span: i32) -> String {
        let n: i32 = rng.random_range(-4..span - 4);
        match self {
            Type::Int | Type::Bigint | Type::Smallint => n.to_string(),
            Type::Text => match n {
                -4 => "''".to_owned(),
                -3 => "repeat('long ', 300)".to_owned(),
                _ => format!("'t{}'", "x".repeat(n.unsigned_abs() as usize % 9)),
            },
            Type::Varchar => format!("'v{n}'"),
            Type::Bool => (n % 2 == 0).to_string(),
            Type::Numeric => format!("{n}.{}", n.unsigned_abs() % 3 * 25),
            Type::Float => match n {
                -4 => "'-infinity'".to_owned(),
                -3 => "'nan'".to_owned(),
                -2 => "'-0'".to_owned(),
                _ => format!("{n}.5"),
            },
            Type::Date => format!("date '2000-01-01' + {}", n * 40),
            Type::Timestamp => format!("timestamp '1999-12-31 12:00' + interval '{n} days'"),
            Type::Uuid => format!("'00000000-0000-0000-0000-0000000000{:02x}'", n + 4),
            Type::Bytea => format!(
                "'\\x{:02x}{}'",
                n + 4,
                "00".repeat(n.unsigned_abs() as usize % 3)
            ),
            Type::Jsonb => format!("'{{\"a\": {n}}}'"),
            Type::IntArray => format!("'{{{n},{}}}'", n + 1),
            // Some with NULL in them.
            Type::Row => match n % 3 {
                0 => format!("'({n},)'::d_types.pair"),
                _ => format!("'({},t{n})'::d_types.pair", n % 2),
            },
            Type::Search => format!("'t{}:{}'", n % 4, n.unsigned_abs() + 1),
            Type::Mood => format!(
                "'{}'::d_types.mood",
                ["low", "fair", "high", "higher"][n.unsigned_abs() as usize % 4]
            ),
            Type::Span => match n % 3 {
                0 => format!("'[{n},)'::int4range"),
                _ => format!("'[{n},{})'::int4range", n + 3),
            },
            Type::Word => {
                format!(
                    "'{}{n}'",
                    ["a", "A", "\u{e4}", "b-"][n.unsigned_abs() as usize % 4]
                )
            }
        }
    }
}

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
        for number in key_columns..count {
            let column = &mut columns[number];
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
                    format!(", {}", columns[0].name)
                } else {
                    String::new()
                };
                let key = match rng.random_ratio(1, 4) {
                    true => format!("(coalesce({column_name}))"),
                    false => column_name.clone(),
                };
                let rest = match rng.random_range(0..6) {
                    0 => format!(" WHERE {column_name} IS NOT NULL"),
                    1 => format!(" INCLUDE ({})", columns[0].name),
                    _ => String::new(),
                };
                indexes.push(format!(
                    "CREATE INDEX {name}_{column_name}_index ON {name} ({key}{order}{more}){rest}"
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
