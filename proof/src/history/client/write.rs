//! Writes, each with a value of its own.
use super::super::record::{Action, By, Kind, Level};
use super::super::tables::GROUP;
use super::super::workload::WriteForm;
use super::read::values;
use super::{Client, Stepped, Stop};
use std::sync::atomic::Ordering;

impl Client<'_> {
    pub(super) fn value(&self) -> i64 {
        self.crowd.next_value.fetch_add(1, Ordering::Relaxed)
    }

    /// The expression of a row's new value.
    pub(super) fn change(&self, value: i64) -> String {
        match self.crowd.kind {
            Kind::List => format!("v || {value}"),
            Kind::Register => value.to_string(),
        }
    }

    pub(super) fn write(&mut self, form: WriteForm, key: u64) -> Stepped<()> {
        let table = self.crowd.tables.of_key(key);
        let value = self.value();
        let change = self.change(value);
        let write = Action::Write {
            value,
            undone: false,
        };
        match form {
            WriteForm::Upsert => {
                self.note(key, "INSERT ON CONFLICT", write);
                self.upsert(table, key, value)
            }
            WriteForm::Function => {
                self.note(key, "function", write);
                self.ask(&format!("SELECT put_{table}({key}, {value})"))
                    .map(|_| ())
            }
            WriteForm::Update | WriteForm::Prepared => {
                let (statement, name) = match form {
                    WriteForm::Update => (
                        format!("UPDATE {table} SET v = {change} WHERE k = {key}"),
                        "UPDATE",
                    ),
                    _ => (
                        format!("EXECUTE set_{table}({key}, {value})"),
                        "prepared UPDATE",
                    ),
                };
                self.note(key, name, write);
                if self.ask(&statement)?.count() == 0 {
                    self.upsert(table, key, value)?;
                }
                Ok(())
            }
            WriteForm::ReadThenReplace => {
                let (lock, by) = match self.crowd.level {
                    Level::ReadCommitted => (" FOR NO KEY UPDATE", By::Lock),
                    _ => ("", By::Key),
                };
                let query = format!("SELECT k, v FROM {table} WHERE k = {key}{lock}");
                let seen = self.read_all(&query, "SELECT before UPDATE", by, vec![key])?;
                self.note(key, "UPDATE with the client's value", write);
                if seen.is_empty() {
                    return self.upsert(table, key, value);
                }
                let whole = self.whole(seen, value);
                let update = format!("UPDATE {table} SET v = {whole} WHERE k = {key}");
                if self.ask(&update)?.count() != 1 {
                    return Err(Stop::Refused(format!(
                        "XX001: a row that was read is not there, in {update}"
                    )));
                }
                Ok(())
            }
            WriteForm::DeleteThenInsert => {
                let delete = format!("DELETE FROM {table} WHERE k = {key} RETURNING k, v");
                let answer = self.ask(&delete)?;
                let Some(row) = answer.rows.first() else {
                    self.note(key, "INSERT ON CONFLICT", write);
                    return self.upsert(table, key, value);
                };
                let seen = values(row.get(1));
                self.note(
                    key,
                    "DELETE RETURNING",
                    Action::Read {
                        seen: seen.clone(),
                        by: By::Lock,
                    },
                );
                self.note(key, "INSERT after DELETE", write);
                let whole = self.whole(seen, value);
                self.ask(&format!(
                    "INSERT INTO {table} VALUES ({key}, {}, {whole})",
                    key / GROUP
                ))
                .map(|_| ())
            }
            WriteForm::CompareAndSet => {
                let query = format!("SELECT k, v FROM {table} WHERE k = {key}");
                let seen = self.read_all(&query, "SELECT before UPDATE", By::Key, vec![key])?;
                let Some(expected) = seen.first() else {
                    return Ok(());
                };
                let update =
                    format!("UPDATE {table} SET v = {value} WHERE k = {key} AND v = {expected}");
                if self.ask(&update)?.count() == 1 {
                    self.note(
                        key,
                        "UPDATE if unchanged",
                        Action::Read { seen, by: By::Lock },
                    );
                    self.note(key, "UPDATE if unchanged", write);
                }
                Ok(())
            }
        }
    }

    /// A whole new value, as a literal.
    pub(super) fn whole(&self, mut seen: Vec<i64>, value: i64) -> String {
        if self.crowd.kind == Kind::Register {
            return value.to_string();
        }
        seen.push(value);
        let values: Vec<String> = seen.iter().map(ToString::to_string).collect();
        format!("'{{{}}}'", values.join(","))
    }

    pub(super) fn upsert(&mut self, table: &str, key: u64, value: i64) -> Stepped<()> {
        let (new, put) = match self.crowd.kind {
            Kind::List => (
                format!("ARRAY[{value}]"),
                format!("{table}.v || excluded.v"),
            ),
            Kind::Register => (value.to_string(), "excluded.v".to_owned()),
        };
        let group = key / GROUP;
        self.ask(&format!(
            "INSERT INTO {table} VALUES ({key}, {group}, {new}) ON CONFLICT (k) DO UPDATE SET v = {put}"
        ))
        .map(|_| ())
    }
}
