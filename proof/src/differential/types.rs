//! Types of columns, and their values.
use crate::classes;
use rand::Rng;
use rand::rngs::SmallRng;

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
    /// A text by which others are equal.
    Loose,
    /// The row type `d_types.spelled`, in an order of its own, as are the next ones.
    Spelled,
    /// The row type `d_types.amount`.
    Amount,
    /// A range of spelled texts.
    Stretch,
    /// An array of them.
    SpelledArray,
}

/// The schema of the types of columns that both sides have in common.
pub const SHARED: &str = "d_types";

/// What makes these: a row type of a number and a text, an enum with a value that was put between
/// others, and types with an order of their own.
pub fn shared_types() -> String {
    let own = classes::definitions(SHARED).join("; ");
    format!("{SHARED_TYPES}; {own}")
}

const SHARED_TYPES: &str = "DROP SCHEMA IF EXISTS d_types CASCADE; CREATE SCHEMA d_types; \
    CREATE TYPE d_types.pair AS (n int, t text COLLATE \"C\"); \
    CREATE TYPE d_types.mood AS ENUM ('low', 'high', 'higher'); \
    ALTER TYPE d_types.mood ADD VALUE 'fair' BEFORE 'high'";

/// Those of keys.
pub const KEY_TYPES: [Type; 20] = [
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
    Type::Loose,
    Type::Spelled,
    Type::Amount,
    Type::Stretch,
    Type::SpelledArray,
];
/// All.
pub const TYPES: [Type; 24] = [
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
    Type::Loose,
    Type::Spelled,
    Type::Amount,
    Type::Stretch,
    Type::SpelledArray,
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
            Type::Loose => "text COLLATE d_types.loose",
            Type::Spelled => "d_types.spelled",
            Type::Amount => "d_types.amount",
            Type::Stretch => "d_types.stretch",
            Type::SpelledArray => "d_types.spelled[]",
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
                | Type::Loose
        ) && !self.has_own_order()
    }

    /// Its order is that of a class in `crate::classes`.
    pub fn has_own_order(self) -> bool {
        matches!(
            self,
            Type::Spelled | Type::Amount | Type::Stretch | Type::SpelledArray
        )
    }

    /// Statements that change definitions draw indexes on it.
    pub fn may_be_indexed(self) -> bool {
        self.is_ordered()
            || self.has_own_order()
            || self == Type::Loose
            || !self.classes().is_empty()
    }

    /// Operator classes that an index may have beside its own, with how their tests are written,
    /// in the place of `?`.
    pub fn classes(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Type::Int => &[("d_types.far_ops", "OPERATOR(d_types.?#)")],
            Type::Row | Type::Spelled | Type::Amount => &[("record_image_ops", "*?")],
            _ => &[],
        }
    }

    /// An expression that is written the same for values that are equal.
    pub fn normal(self, expression: &str) -> String {
        match self {
            Type::Loose => format!("lower({expression})"),
            kind if kind.has_own_order() => format!("lower({expression}::text)"),
            _ => expression.to_owned(),
        }
    }

    /// The least and the greatest value, if there are such.
    pub fn extremes(self) -> Option<[&'static str; 2]> {
        match self {
            Type::Int => Some(["(-2147483648)", "2147483647"]),
            Type::Bigint => Some(["(-9223372036854775808)", "9223372036854775807"]),
            Type::Smallint => Some(["(-32768)::smallint", "32767::smallint"]),
            Type::Float => Some(["'-infinity'", "'nan'"]),
            Type::Date | Type::Timestamp => Some(["'-infinity'", "'infinity'"]),
            _ => None,
        }
    }

    /// A value; `span` says how many there are.
    pub fn literal(self, rng: &mut SmallRng, span: i32) -> String {
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
            _ => self.literal_of_class(n),
        }
    }

    /// A value of a type that functions of users order.
    fn literal_of_class(self, n: i32) -> String {
        match self {
            Type::Loose => format!("'{}'", spelled(n)),
            Type::Spelled => format!("'({})'::d_types.spelled", spelled(n)),
            Type::Amount => format!(
                "'({},{})'::d_types.amount",
                n / 3,
                ["eur", "EUR", ""][n.unsigned_abs() as usize % 3]
            ),
            // Some without an end, and empty ones.
            Type::Stretch => {
                let word = spelled(n);
                let range = match n % 4 {
                    0 => format!("[\"({word})\",)"),
                    1 => format!("[\"({word})\",\"({word})\")"),
                    _ => format!("[\"({word})\",\"(z)\"]"),
                };
                format!("'{range}'::d_types.stretch")
            }
            Type::SpelledArray => format!(
                "'{{({}),{}}}'::d_types.spelled[]",
                spelled(n / 2),
                ["(a)", "(A)", "NULL"][n.unsigned_abs() as usize % 3]
            ),
            Type::Word => {
                format!(
                    "'{}{n}'",
                    ["a", "A", "\u{e4}", "b-"][n.unsigned_abs() as usize % 4]
                )
            }
            _ => unreachable!("a type of the server's own"),
        }
    }
}

/// A word; of two neighbours one is the other one in capitals.
fn spelled(n: i32) -> String {
    let word = format!("w{}", (n + 4) / 2);
    match n % 2 {
        0 => word,
        _ => word.to_uppercase(),
    }
}
