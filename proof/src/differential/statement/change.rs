//! INSERT, UPDATE and DELETE.
use super::super::schema::{Column, Table};
use super::super::types::Type;
use super::part::{Part, Place};
use super::{Source, Statement, by_key, condition, qualified_key, value};
use rand::Rng;
use rand::rngs::SmallRng;

/// A row's new values. Several rows at once get no new keys: which fails first depends on the
/// order.
pub(super) fn assignments(rng: &mut SmallRng, table: &Table, one_row: bool, part: &Part) -> String {
    let mut parts = Vec::new();
    for _ in 0..rng.random_range(1..3) {
        let column = if one_row && rng.random_ratio(1, 6) {
            table.any(rng)
        } else {
            table.payload(rng)
        };
        let is_taken = parts.iter().any(|(name, _)| *name == column.name);
        if is_taken || (column.is_unique && !one_row) {
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
        parts.push((column.name.as_str(), part.value(column, new)));
    }
    if parts.is_empty() {
        let column = table.set_column();
        let old = format!("{}.{}", table.name, column.name);
        parts.push((&column.name, part.value(column, old)));
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, new)| format!("{name} = {new}"))
        .collect();
    parts.join(", ")
}

impl Source<'_> {
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
        let choice = rng.random_range(0..10);
        let updates = (3..=6).contains(&choice);
        let places: &[Place] = if updates {
            &[Place::Set, Place::Where, Place::Returning]
        } else {
            &[Place::Returning]
        };
        let part = self.part(rng, table, places, false);
        let conflict = match choice {
            0..=2 => " ON CONFLICT DO NOTHING".to_owned(),
            _ if updates => self.conflict(rng, table, &part),
            _ => String::new(),
        };
        let returning = if rng.random() { " RETURNING *" } else { "" };
        let returning = part.returning(returning, "*");
        let rows = rows.join(", ");
        let (target, _) = self.target(rng, table);
        Statement {
            locks_several: part.is_some(),
            ..Statement::plain(format!(
                "{}INSERT INTO {target} ({}) VALUES {rows}{conflict}{returning}",
                part.with(),
                names.join(", ")
            ))
        }
    }

    /// What becomes of a row whose key is taken.
    fn conflict(&self, rng: &mut SmallRng, table: &Table, part: &Part) -> String {
        let name = &table.name;
        let column = table.payload(rng);
        let of = if rng.random() { "excluded" } else { name };
        let new = part.value(column, format!("{of}.{}", column.name));
        let more = part.condition();
        let filter = if rng.random_ratio(1, 4) {
            format!(
                " WHERE {}{more}",
                condition(rng, table, &format!("{name}."))
            )
        } else if more.is_empty() {
            String::new()
        } else {
            format!(" WHERE true{more}")
        };
        format!(
            " ON CONFLICT ({}) DO UPDATE SET {} = {new}{filter}",
            table.key_list(),
            column.name
        )
    }

    pub(super) fn update(&self, rng: &mut SmallRng) -> Statement {
        let table = self.table(rng);
        let name = &table.name;
        let one_row = rng.random_ratio(3, 5);
        let (target, has_twins) = self.target(rng, table);
        let places = [Place::Set, Place::Where, Place::Returning];
        let part = self.part(rng, table, &places, !one_row || has_twins);
        let set = assignments(rng, table, one_row, &part);
        let (from, filter) = if one_row {
            (String::new(), by_key(rng, table))
        } else if rng.random_ratio(1, 3) {
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
        let returning = part.returning(&returning, &format!("{name}.*"));
        Statement {
            is_ordered: false,
            locks_several: !one_row || has_twins || part.is_some(),
            ..Statement::plain(format!(
                "{}UPDATE {target} SET {set}{from} WHERE {filter}{}{returning}",
                part.with(),
                part.condition()
            ))
        }
    }

    pub(super) fn delete(&self, rng: &mut SmallRng) -> Statement {
        let table = self.table(rng);
        let name = &table.name;
        let one_row = rng.random_ratio(3, 5);
        let (target, has_twins) = self.target(rng, table);
        let (using, filter) = if one_row {
            (String::new(), by_key(rng, table))
        } else if rng.random_ratio(1, 4) {
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
        let places = [Place::Where, Place::Returning];
        let part = self.part(rng, table, &places, !one_row || has_twins);
        let returning = part.returning(&returning, &format!("{name}.*"));
        Statement {
            is_ordered: false,
            locks_several: !one_row || has_twins || part.is_some(),
            ..Statement::plain(format!(
                "{}DELETE FROM {target}{using} WHERE {filter}{}{returning}",
                part.with(),
                part.condition()
            ))
        }
    }

    /// A statement that goes on with the rows that another one in it has changed: gives them, or
    /// puts them in again.
    pub(super) fn pass_on(&self, rng: &mut SmallRng) -> Statement {
        let table = self.table(rng);
        let name = &table.name;
        let filter = condition(rng, table, &format!("{name}."));
        let (target, _) = self.target(rng, table);
        let text = match rng.random_range(0..3) {
            0 => format!(
                "WITH gone AS (DELETE FROM {target} WHERE {filter} AND {} RETURNING *) SELECT * FROM gone",
                condition(rng, table, &format!("{name}."))
            ),
            1 => format!(
                "WITH new AS (UPDATE {target} SET {} WHERE {filter} RETURNING {}) SELECT (SELECT count(*) FROM \
                 {name}), * FROM new",
                assignments(rng, table, false, &Part::none()),
                table.key_list()
            ),
            _ => format!(
                "WITH gone AS (DELETE FROM {target} WHERE {filter} RETURNING *) INSERT INTO {name} SELECT * \
                 FROM gone ON CONFLICT DO NOTHING RETURNING *"
            ),
        };
        Statement {
            is_ordered: false,
            locks_several: true,
            ..Statement::plain(text)
        }
    }
}
