//! Types of columns.
use crate::classes;
use rand::Rng;
use rand::rngs::SmallRng;

/// What makes the extensions that have some of the types; they stay in the database.
pub const EXTENSIONS: [&str; 3] = [
    "CREATE EXTENSION IF NOT EXISTS citext SCHEMA public",
    "CREATE EXTENSION IF NOT EXISTS ltree SCHEMA public",
    "CREATE EXTENSION IF NOT EXISTS seg SCHEMA public",
];

/// What makes types and collations of a side's own, in its schema.
pub fn definitions(schema: &str) -> String {
    let own = classes::definitions(schema).join("; ");
    format!(
        "CREATE DOMAIN small AS int4 CHECK (VALUE > -1000); CREATE TYPE pair AS (n int4, t text COLLATE \"C\"); {own}"
    )
}

/// Types of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Int2,
    Int4,
    Int8,
    Numeric,
    Amount,
    Float4,
    Float8,
    /// Under the collation C.
    Text,
    /// Under the database's collation.
    DatabaseText,
    /// Under one that does not order by bytes.
    LanguageText,
    Varchar,
    Char,
    Name,
    Date,
    Timestamp,
    Timestamptz,
    Time,
    Bool,
    Uuid,
    Bytea,
    Interval,
    Byte,
    Oid,
    Money,
    Timetz,
    Inet,
    Varbit,
    /// Under a collation that says of different texts that they are equal; long ones, too.
    LooseText,
    /// A domain over `int4`.
    Domain,
    Json,
    Search,
    SearchQuery,
    /// A row type.
    Row,
    Rows,
    /// Texts that are compared in lower case.
    Folded,
    Ltree,
    Segment,
    /// Row types in an order of their own, as are the next two.
    Spelled,
    Quantity,
    /// A range of these.
    Stretch,
    SpelledArray,
}

/// Types whose values can be compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Number,
    Text,
    Day,
    Own(Type),
}

pub const TYPES: [Type; 41] = [
    Type::Int2,
    Type::Int4,
    Type::Int8,
    Type::Numeric,
    Type::Amount,
    Type::Float4,
    Type::Float8,
    Type::Text,
    Type::DatabaseText,
    Type::LanguageText,
    Type::Varchar,
    Type::Char,
    Type::Name,
    Type::Date,
    Type::Timestamp,
    Type::Timestamptz,
    Type::Time,
    Type::Bool,
    Type::Uuid,
    Type::Bytea,
    Type::Interval,
    Type::Byte,
    Type::Oid,
    Type::Money,
    Type::Timetz,
    Type::Inet,
    Type::Varbit,
    Type::LooseText,
    Type::Domain,
    Type::Json,
    Type::Search,
    Type::SearchQuery,
    Type::Row,
    Type::Rows,
    Type::Folded,
    Type::Ltree,
    Type::Segment,
    Type::Spelled,
    Type::Quantity,
    Type::Stretch,
    Type::SpelledArray,
];

/// One of several.
pub fn one<T: Copy>(rng: &mut SmallRng, of: &[T]) -> T {
    of[rng.random_range(0..of.len())]
}

impl Type {
    /// In a definition of a column.
    pub fn definition(self) -> String {
        let collation = match self {
            Type::Text | Type::Char => " COLLATE \"C\"",
            Type::LooseText => " COLLATE loose",
            Type::LanguageText => " COLLATE \"und-x-icu\"",
            _ => "",
        };
        format!("{}{collation}", self.sql())
    }

    /// In a cast, or as a parameter's.
    pub fn sql(self) -> &'static str {
        match self {
            Type::Int2 => "int2",
            Type::Int4 => "int4",
            Type::Int8 => "int8",
            Type::Numeric => "numeric",
            Type::Amount => "numeric(8,2)",
            Type::Float4 => "float4",
            Type::Float8 => "float8",
            Type::Text | Type::DatabaseText | Type::LanguageText | Type::LooseText => "text",
            Type::Varchar => "varchar(8)",
            Type::Char => "char(4)",
            Type::Name => "name",
            Type::Date => "date",
            Type::Timestamp => "timestamp",
            Type::Timestamptz => "timestamptz",
            Type::Time => "time",
            Type::Bool => "bool",
            Type::Uuid => "uuid",
            Type::Bytea => "bytea",
            Type::Interval => "interval",
            Type::Byte => "\"char\"",
            Type::Oid => "oid",
            Type::Money => "money",
            Type::Timetz => "timetz",
            Type::Inet => "inet",
            Type::Varbit => "varbit(9)",
            Type::Domain => "small",
            Type::Json => "jsonb",
            Type::Search => "tsvector",
            Type::SearchQuery => "tsquery",
            Type::Row => "pair",
            Type::Rows => "pair[]",
            Type::Folded => "citext",
            Type::Ltree => "ltree",
            Type::Segment => "seg",
            Type::Spelled => "spelled",
            Type::Quantity => "amount",
            Type::Stretch => "stretch",
            Type::SpelledArray => "spelled[]",
        }
    }

    pub fn class(self) -> Class {
        match self {
            Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Numeric
            | Type::Amount
            | Type::Float4
            | Type::Domain
            | Type::Float8 => Class::Number,
            Type::Text
            | Type::DatabaseText
            | Type::LanguageText
            | Type::LooseText
            | Type::Varchar
            | Type::Char
            | Type::Name => Class::Text,
            Type::Date | Type::Timestamp | Type::Timestamptz => Class::Day,
            own => Class::Own(own),
        }
    }

    pub fn is_integer(self) -> bool {
        matches!(self, Type::Int2 | Type::Int4 | Type::Int8 | Type::Domain)
    }

    /// Has `sum` and `avg`.
    pub fn has_sum(self) -> bool {
        self.class() == Class::Number || self == Type::Interval
    }

    /// Aggregates of it may be computed inside the scan, and some groups by it.
    pub fn is_plain(self) -> bool {
        matches!(
            self,
            Type::Int2
                | Type::Int4
                | Type::Int8
                | Type::Numeric
                | Type::Amount
                | Type::Date
                | Type::Timestamp
                | Type::Timestamptz
                | Type::Bool
        )
    }

    /// Has `min` and `max`.
    pub fn has_extremes(self) -> bool {
        !matches!(
            self,
            Type::Bool
                | Type::Uuid
                | Type::Bytea
                | Type::Byte
                | Type::Name
                | Type::Varbit
                | Type::Json
                | Type::Search
                | Type::SearchQuery
                | Type::Row
                | Type::Ltree
                | Type::Segment
        ) && !self.has_own_order()
    }

    /// Its order is that of a class in `crate::classes`.
    fn has_own_order(self) -> bool {
        matches!(
            self,
            Type::Spelled | Type::Quantity | Type::Stretch | Type::SpelledArray
        )
    }

    /// An operator class that an index may have beside the type's own, with how its tests are
    /// written, in the place of `?`.
    pub fn other_class(self) -> Option<(&'static str, &'static str)> {
        match self {
            Type::Int4 => Some(("far_ops", "?#")),
            Type::Row | Type::Spelled | Type::Quantity => Some(("record_image_ops", "*?")),
            _ => None,
        }
    }

    /// An index may have it.
    pub fn can_be_key(self) -> bool {
        self != Type::LooseText
    }

    /// Another type whose values this one's can be compared with, often the same.
    pub fn comparable(self, rng: &mut SmallRng) -> Type {
        if rng.random() {
            return self;
        }
        let of: &[Type] = match self.class() {
            Class::Number => &[
                Type::Int2,
                Type::Int4,
                Type::Int8,
                Type::Numeric,
                Type::Float4,
                Type::Float8,
            ],
            // A name brings its own collation, which meets the column's.
            Class::Text => &[Type::Text, Type::Varchar, Type::Char],
            Class::Day => &[Type::Date, Type::Timestamp, Type::Timestamptz],
            Class::Own(_) => return self,
        };
        one(rng, of)
    }

    /// An expression that is written the same for values that are equal.
    pub fn normal(self, expression: &str) -> String {
        match self {
            Type::Numeric | Type::Amount => format!("trim_scale({expression})"),
            Type::Float4 | Type::Float8 => format!("({expression} + 0)"),
            Type::LooseText | Type::Folded => format!("lower({expression}::text)"),
            Type::Interval => format!("justify_interval({expression})"),
            kind if kind.has_own_order() => format!("lower({expression}::text)"),
            _ => expression.to_owned(),
        }
    }
}
