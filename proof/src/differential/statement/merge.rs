//! MERGE.
use super::super::schema::{Column, Table};
use super::change::assignments;
use super::part::Part;
use super::{Source, Statement, condition, value};
use rand::Rng;
use rand::rngs::SmallRng;

impl Source<'_> {
    /// A MERGE of a few rows by the key.
    pub(super) fn merge(&self, rng: &mut SmallRng) -> Statement {
        let table = self.table(rng);
        let name = &table.name;
        let count = [1, 1, 2, 3][rng.random_range(0..4)];
        let on: Vec<String> = table
            .key()
            .iter()
            .map(|column| format!("{name}.{0} = s.{0}", column.name))
            .collect();
        let whens = [
            matched(rng, table, count == 1, true),
            matched(rng, table, count == 1, false),
            not_matched(rng, table),
        ];
        Statement {
            is_ordered: false,
            locks_several: count > 1,
            ..Statement::plain(format!(
                "MERGE INTO {name} USING ({}) AS s ({}) ON {}{}",
                rows(rng, table, count),
                list(table, ""),
                on.join(" AND "),
                whens.concat()
            ))
        }
    }
}

/// A list of columns that a table was made with.
fn list(table: &Table, prefix: &str) -> String {
    let names: Vec<String> = table
        .columns
        .iter()
        .map(|column| format!("{prefix}{}", column.name))
        .collect();
    names.join(", ")
}

fn rows(rng: &mut SmallRng, table: &Table, count: usize) -> String {
    let mut typed =
        |column: &Column| format!("CAST({} AS {})", value(rng, column), column.kind.plain());
    let rows: Vec<String> = (0..count)
        .map(|_| {
            let row: Vec<String> = table.columns.iter().map(&mut typed).collect();
            format!("({})", row.join(", "))
        })
        .collect();
    format!("VALUES {}", rows.join(", "))
}

/// What becomes of a row that is there; with a condition, or of all that are left.
fn matched(rng: &mut SmallRng, table: &Table, one_row: bool, is_first: bool) -> String {
    let filter = match is_first {
        true => format!(
            " AND {}",
            condition(rng, table, &format!("{}.", table.name))
        ),
        false => String::new(),
    };
    let action = match rng.random_range(0..6) {
        0 => return String::new(),
        1 => "DELETE".to_owned(),
        2 => "DO NOTHING".to_owned(),
        _ => {
            let set = assignments(rng, table, one_row, &Part::none());
            format!("UPDATE SET {set}")
        }
    };
    format!(" WHEN MATCHED{filter} THEN {action}")
}

/// What becomes of a row that is not there. Always said: a MERGE has an action.
fn not_matched(rng: &mut SmallRng, table: &Table) -> String {
    let action = match rng.random_range(0..5) {
        0 => "DO NOTHING".to_owned(),
        _ => format!(
            "INSERT ({}) VALUES ({})",
            list(table, ""),
            list(table, "s.")
        ),
    };
    format!(" WHEN NOT MATCHED THEN {action}")
}
