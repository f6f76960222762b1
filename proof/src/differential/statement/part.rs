//! Data-modifying WITH parts that a statement reads in SET, WHERE or RETURNING.
use super::super::schema::{Column, Table};
use super::change::assignments;
use super::{Source, by_key, condition, value};
use rand::Rng;
use rand::rngs::SmallRng;

/// What reads the part: it runs when that is asked for first.
const READ: &str = "(SELECT count(*) FROM part)";

/// Where a statement reads the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Set,
    Where,
    Returning,
}

/// A part in front of a statement, or none.
#[derive(Clone, Debug)]
pub(super) struct Part {
    place: Option<Place>,
    with: String,
}

impl Part {
    pub(super) fn none() -> Part {
        Part {
            place: None,
            with: String::new(),
        }
    }

    pub(super) fn is_some(&self) -> bool {
        self.place.is_some()
    }

    /// Goes before the statement.
    pub(super) fn with(&self) -> &str {
        &self.with
    }

    /// Goes behind a condition.
    pub(super) fn condition(&self) -> String {
        match self.place {
            Some(Place::Where) => format!(" AND {READ} >= 0"),
            _ => String::new(),
        }
    }

    /// What is returned, if the statement would return `usual`.
    pub(super) fn returning(&self, usual: &str, all: &str) -> String {
        match self.place {
            Some(Place::Returning) => format!(" RETURNING {all}, {READ}"),
            _ => usual.to_owned(),
        }
    }

    /// The new value of a column.
    pub(super) fn value(&self, column: &Column, new: String) -> String {
        match self.place {
            Some(Place::Set) if new != "DEFAULT" => format!(
                "CASE WHEN {READ} >= 0 THEN CAST({new} AS {}) END",
                column.kind.plain()
            ),
            _ => new,
        }
    }
}

impl Source<'_> {
    /// Now and then a part before a statement on `table`.
    ///
    /// A part that SET or WHERE reads runs before the first row is changed. One that RETURNING
    /// reads runs after that: then it leaves the table alone if there are several rows. Which of
    /// them is the first one is a matter of the plan.
    pub(super) fn part(
        &self,
        rng: &mut SmallRng,
        table: &Table,
        places: &[Place],
        is_several: bool,
    ) -> Part {
        if !rng.random_ratio(1, 6) {
            return Part::none();
        }
        let place = places[rng.random_range(0..places.len())];
        let changed = if rng.random() { table } else { self.table(rng) };
        if is_several && place == Place::Returning && changed.name == table.name {
            return Part::none();
        }
        Part {
            place: Some(place),
            with: format!(
                "WITH part AS ({} RETURNING {}) ",
                change(rng, changed),
                changed.key_list()
            ),
        }
    }
}

fn change(rng: &mut SmallRng, table: &Table) -> String {
    let name = &table.name;
    match rng.random_range(0..6) {
        0 | 1 => {
            let values: Vec<String> = table
                .columns
                .iter()
                .map(|column| value(rng, column))
                .collect();
            let column = &table.set_column().name;
            let conflict = match rng.random_range(0..3) {
                0 => String::new(),
                1 => " ON CONFLICT DO NOTHING".to_owned(),
                _ => format!(
                    " ON CONFLICT ({}) DO UPDATE SET {column} = excluded.{column}",
                    table.key_list()
                ),
            };
            format!(
                "INSERT INTO {name} VALUES ({}){conflict}",
                values.join(", ")
            )
        }
        2 | 3 => format!(
            "UPDATE {name} SET {} WHERE {}",
            assignments(rng, table, true, &Part::none()),
            by_key(rng, table)
        ),
        4 => format!("DELETE FROM {name} WHERE {}", by_key(rng, table)),
        _ => format!(
            "UPDATE {name} SET {} WHERE {}",
            assignments(rng, table, false, &Part::none()),
            condition(rng, table, &format!("{name}."))
        ),
    }
}
