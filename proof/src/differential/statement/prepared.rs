//! What a session keeps: prepared statements, and its cursor.
use super::super::schema::Column;
use super::change::assignments;
use super::part::Part;
use super::{Source, Statement, condition, value};
use rand::Rng;
use rand::rngs::SmallRng;

impl Source<'_> {
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

    pub(super) fn execute(&self, rng: &mut SmallRng) -> Statement {
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
    pub(super) fn cursor(&self, rng: &mut SmallRng) -> Statement {
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
                assignments(rng, table, true, &Part::none())
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
