//! Random conditions over the columns of a table, many of them such as one of its indexes answers.
use super::tables::{Column, Table};
use super::types::{Class, Type, one};
use rand::Rng;
use rand::rngs::SmallRng;

/// Draws expressions, and notes what they take.
pub struct Drawing<'a> {
    pub rng: &'a mut SmallRng,
    /// Types of the parameters; `None`: literals only.
    pub parameters: Option<Vec<String>>,
    /// An expression in a condition may raise an error, and whether it does is a matter of the
    /// plan.
    pub may_fail: bool,
    /// Aggregates are such as may be computed inside the scan.
    pub is_plain: bool,
    /// One that is not in a condition may.
    pub may_overflow: bool,
}

impl<'a> Drawing<'a> {
    /// Of expressions that raise no errors.
    pub fn new(rng: &'a mut SmallRng, has_parameters: bool) -> Drawing<'a> {
        let is_plain = rng.random();
        Drawing {
            rng,
            parameters: has_parameters.then(Vec::new),
            may_fail: false,
            is_plain,
            may_overflow: false,
        }
    }
}

const COMPARISONS: [&str; 8] = ["=", "=", "<", "<=", ">", ">=", "<>", "="];
const ORDERS: [&str; 4] = ["<", "<=", ">", ">="];

impl Drawing<'_> {
    pub fn chance(&mut self, of: u32) -> bool {
        self.rng.random_ratio(1, of)
    }

    fn of(&mut self, texts: &[&'static str]) -> &'static str {
        one(self.rng, texts)
    }

    /// A parameter of the type, if there may be one.
    fn parameter(&mut self, sql: &str) -> Option<String> {
        let parameters = self.parameters.as_mut()?;
        if parameters.len() > 12 || self.rng.random_ratio(1, 3) {
            return None;
        }
        parameters.push(sql.to_owned());
        Some(format!("${}", parameters.len()))
    }

    /// A value to compare a column of this type with.
    pub fn value(&mut self, kind: Type) -> String {
        let kind = kind.comparable(self.rng);
        if let Some(parameter) = self.parameter(kind.sql()) {
            return parameter;
        }
        match self.rng.random_range(0..40) {
            0 => "NULL".to_owned(),
            1 => format!("(SELECT {})", kind.literal(self.rng)),
            2 if matches!(kind, Type::Float8) => self
                .of(&[
                    "0.1::float8",
                    "1e-320::float8",
                    "1e300::float8",
                    "0.1::float4",
                    "16777217",
                    "9007199254740993",
                ])
                .to_owned(),
            2..=4 if kind.class() == Class::Day => self
                .of(&[
                    "now()",
                    "current_date",
                    "localtimestamp",
                    "now() - interval '1 month'",
                    "date_trunc('year', now())",
                    "'2020-01-01 12:00'::text::timestamptz",
                ])
                .to_owned(),
            _ => kind.literal(self.rng),
        }
    }

    fn array(&mut self, kind: Type) -> String {
        let kind = kind.comparable(self.rng);
        let element = kind.sql();
        if let Some(parameter) = self.parameter(&format!("{element}[]")) {
            return parameter;
        }
        if self.chance(20) {
            return format!("NULL::{element}[]");
        }
        let count = self.rng.random_range(0..6);
        let values: Vec<String> = (0..count)
            .map(|_| match self.chance(10) {
                true => "NULL".to_owned(),
                false => self
                    .parameter(element)
                    .unwrap_or_else(|| kind.literal(self.rng)),
            })
            .collect();
        format!("ARRAY[{}]::{element}[]", values.join(", "))
    }

    /// An expression of an integer type.
    pub fn integer(&mut self, table: &Table, prefix: &str, depth: u32) -> String {
        if depth == 0 || self.chance(3) {
            let found = table.any_that(self.rng, |column| column.kind.is_integer());
            return match found {
                _ if self.chance(8) => format!("{prefix}id"),
                Some(column) if !self.chance(3) => format!("{prefix}{}", column.name),
                _ => self
                    .of(&["1", "2", "-1", "7", "3", "NULL::int4", "2::int8", "3::int2"])
                    .to_owned(),
            };
        }
        self.may_overflow = true;
        let left = self.integer(table, prefix, depth - 1);
        let right = self.integer(table, prefix, depth - 1);
        match self.rng.random_range(0..12) {
            0..=2 => format!("({left} + {right})"),
            3..=5 => format!("({left} - {right})"),
            6..=7 => format!("({left} * {right})"),
            8 => format!("({left} / {right})"),
            9 => format!("({left} % {right})"),
            10 => format!("(- {left})"),
            _ => format!("coalesce({left}, {right})"),
        }
    }

    /// Conditions such as an index answers: equal in its first columns, a range behind.
    fn of_index(&mut self, table: &Table, prefix: &str) -> Option<String> {
        if table.indexes.is_empty() {
            return None;
        }
        let key = &table.indexes[self.rng.random_range(0..table.indexes.len())];
        let fixed = self.rng.random_range(0..=key.len().min(3));
        let mut conditions = vec![];
        let mut known = vec![];
        for at in &key[..fixed] {
            let column = &table.columns[*at];
            let name = format!("{prefix}{}", column.name);
            conditions.push(match self.rng.random_range(0..10) {
                0 => format!("{name} IS NULL"),
                1..=2 => format!("{name} = ANY ({})", self.array(column.kind)),
                _ => {
                    let value = self.row_value(column.kind);
                    known.push((column.name.clone(), value.clone()));
                    format!("{name} = {value}")
                }
            });
        }
        // From one of the fixed columns on, too.
        let from = self.rng.random_range(fixed.saturating_sub(2)..=fixed);
        let rest = &key[from.min(key.len())..];
        for _ in 0..self.rng.random_range(1..3) {
            match (rest, self.rng.random_range(0..10)) {
                ([], _) => {}
                ([_, _, ..], 0..=6) => {
                    let length = self.rng.random_range(2..=rest.len());
                    let mut columns: Vec<&Column> = rest[..length]
                        .iter()
                        .map(|at| &table.columns[*at])
                        .collect();
                    if self.chance(4) {
                        columns.push(table.any(self.rng));
                    }
                    conditions.push(self.row(&columns, prefix, &known));
                }
                (_, 7) => conditions.push(format!(
                    "{prefix}{} IS NOT NULL",
                    table.columns[rest[0]].name
                )),
                _ => {
                    let column = &table.columns[rest[0]];
                    let order = self.of(&ORDERS);
                    let value = self.value(column.kind);
                    conditions.push(format!("{prefix}{} {order} {value}", column.name));
                }
            }
        }
        (!conditions.is_empty()).then(|| conditions.join(" AND "))
    }

    /// A comparison of rows; `known` are columns that are fixed, and their values.
    fn row(&mut self, columns: &[&Column], prefix: &str, known: &[(String, String)]) -> String {
        let names: Vec<String> = columns
            .iter()
            .map(|column| format!("{prefix}{}", column.name))
            .collect();
        let values: Vec<String> = columns
            .iter()
            .map(|column| {
                let known = known.iter().find(|(name, _)| *name == column.name);
                match (known, self.rng.random_range(0..16)) {
                    (_, 0) => format!("NULL::{}", column.kind.sql()),
                    (Some((_, value)), 1..11) => value.clone(),
                    _ => self.row_value(column.kind),
                }
            })
            .collect();
        let (names, values) = (names.join(", "), values.join(", "));
        let order = match self.chance(8) {
            true => self.of(&["=", "<>"]),
            false => self.of(&ORDERS),
        };
        match self.chance(5) {
            true => format!("({values}) {order} ({names})"),
            false => format!("({names}) {order} ({values})"),
        }
    }

    /// Not NULL without a type, which has no operator in a row.
    fn row_value(&mut self, kind: Type) -> String {
        match self.value(kind) {
            value if value == "NULL" => format!("NULL::{}", kind.sql()),
            value => value,
        }
    }

    /// A condition.
    pub fn condition(&mut self, table: &Table, prefix: &str, depth: u32) -> String {
        if depth > 0 {
            match self.rng.random_range(0..12) {
                0..=3 => {
                    let left = self.condition(table, prefix, depth - 1);
                    let right = self.condition(table, prefix, depth - 1);
                    return format!("{left} AND {right}");
                }
                4 => {
                    let left = self.condition(table, prefix, depth - 1);
                    let right = self.condition(table, prefix, depth - 1);
                    return format!("({left} OR {right})");
                }
                5 => return format!("NOT ({})", self.condition(table, prefix, depth - 1)),
                6 => {
                    let inner = self.condition(table, prefix, depth - 1);
                    let test = self.of(&[
                        "TRUE",
                        "NOT TRUE",
                        "FALSE",
                        "NOT FALSE",
                        "UNKNOWN",
                        "NOT UNKNOWN",
                    ]);
                    return format!("({inner}) IS {test}");
                }
                7..=10 => {
                    if let Some(conditions) = self.of_index(table, prefix) {
                        return conditions;
                    }
                }
                _ => {}
            }
        }
        self.simple(table, prefix)
    }

    fn simple(&mut self, table: &Table, prefix: &str) -> String {
        let column = table.any(self.rng).clone();
        let kind = column.kind;
        let name = format!("{prefix}{}", column.name);
        let order = self.of(&COMPARISONS);
        if let Some((_, operator)) = kind.other_class()
            && self.chance(6)
        {
            let operator = operator.replace('?', order);
            return format!("{name} {operator} {}", kind.literal(self.rng));
        }
        match self.rng.random_range(0..40) {
            0..=1 => format!("{name} IS NULL"),
            2..=3 => format!("{name} IS NOT NULL"),
            4..=5 => format!(
                "{name} BETWEEN {} AND {}",
                self.value(kind),
                self.value(kind)
            ),
            6 => format!(
                "{name} NOT BETWEEN SYMMETRIC {} AND {}",
                self.value(kind),
                self.value(kind)
            ),
            7..=8 => {
                let not = self.of(&["", "", "NOT "]);
                // They become one type, which may be too small for some.
                self.may_fail |= matches!(kind.class(), Class::Number | Class::Day);
                format!(
                    "{name} {not}IN ({}, {}, {})",
                    self.value(kind),
                    self.value(kind),
                    self.value(kind)
                )
            }
            9..=11 => format!("{name} = ANY ({})", self.array(kind)),
            12 => {
                let quantor = self.of(&["ANY", "ALL"]);
                format!("{name} {order} {quantor} ({})", self.array(kind))
            }
            13..=14 => {
                let other = table.any(self.rng).clone();
                let third = table.any(self.rng).clone();
                match self.chance(2) {
                    true => self.row(&[&column, &other], prefix, &[]),
                    false => self.row(&[&column, &other, &third], prefix, &[]),
                }
            }
            15 => {
                let not = self.of(&["", "NOT "]);
                format!("{name} IS {not}DISTINCT FROM {}", self.value(kind))
            }
            16..=17 => format!("{} {order} {name}", self.value(kind)),
            18..=19 => {
                let class = kind.class();
                let other = table.any_that(self.rng, |other| other.kind.class() == class);
                let other = other.map_or(name.clone(), |other| format!("{prefix}{}", other.name));
                // Of two collations: an error for each row that is looked at.
                self.may_fail |= class == Class::Text;
                format!("{name} {order} {other}")
            }
            20..=22 => {
                self.may_fail = true;
                let left = self.integer(table, prefix, 2);
                let right = self.integer(table, prefix, 1);
                format!("{left} {order} {right}")
            }
            31 => {
                let function = self.of(&["stable_count", "volatile_count"]);
                format!("{prefix}id < 12 AND {prefix}c0 {order} {function}({prefix}c1)")
            }
            32 if prefix.is_empty() => {
                let not = self.of(&["", "NOT "]);
                format!("{}.* IS {not}NULL", table.name)
            }
            23 => format!("{prefix}id {order} {}", self.rng.random_range(0..80)),
            24 => {
                let (sign, value) = (self.of(&["+", "-"]), self.rng.random_range(0..40));
                self.may_fail = true;
                format!("{prefix}id {sign} {name}::text::int4 {order} {value}")
            }
            25 => format!(
                "coalesce({name}, {}) {order} {}",
                kind.literal(self.rng),
                kind.literal(self.rng)
            ),
            26 => format!(
                "CASE WHEN {name} IS NULL THEN {prefix}id < 30 ELSE {name} {order} {} END",
                kind.literal(self.rng)
            ),
            27 if kind.class() == Class::Number => {
                let cast = self.of(&["::float8", "::numeric", "::text::float8"]);
                // Not of infinity, before 14.
                format!(
                    "{name}{cast} {order} {}",
                    one(self.rng, &["1", "1.5", "2::float8", "0"])
                )
            }
            28 if kind.class() == Class::Day => {
                self.may_fail = true;
                let cast = self.of(&["::date", "::timestamp", "::timestamptz"]);
                format!("{name}{cast} {order} {}", self.value(kind))
            }
            _ if kind.class() == Class::Text && kind != Type::Name && self.chance(2) => {
                let pattern = self.of(&[
                    "a%", "ab%", "%b", "a", "%", "", "a_b", "a\\%", "%b%", "_%", "ä%", "a%b%",
                    "%%b", "a%a",
                ]);
                let operator = self.of(&["LIKE", "LIKE", "NOT LIKE", "ILIKE", "^@"]);
                let parameter = match operator {
                    "^@" | "ILIKE" => None,
                    _ => self.parameter("text"),
                };
                if kind == Type::LanguageText && operator == "^@" {
                    return format!("{name} LIKE '{pattern}'");
                }
                let pattern = parameter.unwrap_or_else(|| format!("'{pattern}'"));
                self.may_fail |= pattern.starts_with('$') || kind == Type::LooseText;
                format!("{name} {operator} {pattern}")
            }
            _ if kind == Type::Bool && self.chance(2) => {
                let not = self.of(&["", "NOT "]);
                format!("{not}{name}")
            }
            _ => format!("{name} {order} {}", self.value(kind)),
        }
    }
}
