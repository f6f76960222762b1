//! Reads, and what they saw.
use super::super::record::{Action, By};
use super::super::workload::ReadForm;
use super::{Client, Stepped, Stop};

impl Client<'_> {
    /// Asks for keys and values; what has no row is empty. Returns what the last of the keys holds.
    pub(super) fn read_all(
        &mut self,
        query: &str,
        form: &str,
        by: By,
        keys: Vec<u64>,
    ) -> Stepped<Vec<i64>> {
        let answer = self.ask(query)?;
        let mut found: Vec<(u64, Vec<i64>)> = Vec::with_capacity(answer.rows.len());
        for row in &answer.rows {
            found.push((number(row.first()) as u64, values(row.get(1))));
        }
        let mut newest = Vec::new();
        for key in keys {
            let mut rows = found.iter().filter(|(of, _)| *of == key);
            newest = rows.next().map_or(Vec::new(), |(_, seen)| seen.clone());
            if rows.next().is_some() {
                let what = format!("XX001: key {key} has two rows, in {query}");
                return Err(Stop::Refused(what));
            }
            self.note(
                key,
                form,
                Action::Read {
                    seen: newest.clone(),
                    by,
                },
            );
        }
        Ok(newest)
    }

    pub(super) fn read(&mut self, form: ReadForm, key: u64) -> Stepped<()> {
        let table = self.crowd.tables.of_key(key);
        let plain = format!("SELECT k, v FROM {table} WHERE k = {key}");
        match form {
            ReadForm::Plain => self.read_all(&plain, "SELECT", By::Key, vec![key])?,
            ReadForm::Prepared => {
                let execute = format!("EXECUTE get_{table}({key})");
                self.read_all(&execute, "prepared SELECT", By::Key, vec![key])?
            }
            ReadForm::Locking(lock) => {
                let by = if lock.ends_with("SHARE") {
                    By::WasLocked
                } else {
                    By::Lock
                };
                self.read_all(&format!("{plain} {lock}"), lock, by, vec![key])?
            }
            ReadForm::SkipLocked => {
                let answer = self.ask(&format!("{plain} FOR UPDATE SKIP LOCKED"))?;
                if let Some(row) = answer.rows.first() {
                    let seen = values(row.get(1));
                    self.note(
                        key,
                        "FOR UPDATE SKIP LOCKED",
                        Action::Read { seen, by: By::Lock },
                    );
                }
                Vec::new()
            }
        };
        Ok(())
    }
}

pub(super) fn number(value: Option<&Option<String>>) -> i64 {
    value
        .and_then(Option::as_deref)
        .and_then(|text| text.parse().ok())
        .unwrap_or(-1)
}

/// The values of a row's column: an array or a number.
pub fn values(value: Option<&Option<String>>) -> Vec<i64> {
    let text = value.and_then(Option::as_deref).unwrap_or_default();
    text.trim_matches(['{', '}'])
        .split(',')
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().unwrap_or(-1))
        .collect()
}
