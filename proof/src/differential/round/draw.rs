//! What a session does next.
use super::super::statement::{Source, Statement};
use super::{PREPARED_MOST, Round};
use crate::history::record::Level;
use crate::wire::Standing;
use rand::Rng;

impl Round<'_> {
    fn is_calm(&self) -> bool {
        self.waiting.is_some_and(|who| {
            self.pairs[who]
                .waits_with()
                .is_some_and(|statement| statement.locks_several)
        })
    }

    pub(super) fn draw(&mut self, who: usize) -> Statement {
        let calm = self.is_calm();
        let source = Source {
            tables: &self.tables,
            cursor_table: self.cursors[who],
        };
        let rng = &mut self.rng;
        let draw = rng.random_range(0..100);
        let ending = if calm { 40 } else { 9 };
        match self.pairs[who].standing() {
            Standing::Failed => match draw {
                0..=24 if self.has_savepoint[who] => Statement::plain("ROLLBACK TO SAVEPOINT s"),
                25..=34 if !calm => source.draw(rng, false),
                35..=50 => Statement::plain("COMMIT"),
                _ => Statement::plain("ROLLBACK"),
            },
            Standing::Idle => match draw {
                0..=54 => {
                    self.pairs[who].known.level = match rng.random_range(0..10) {
                        0..=4 => Level::ReadCommitted,
                        5..=7 => Level::RepeatableRead,
                        _ => Level::Serializable,
                    };
                    Statement::plain(format!(
                        "BEGIN ISOLATION LEVEL {}",
                        self.pairs[who].known.level
                    ))
                }
                55..=57 if !calm => {
                    self.definitions += 1;
                    source.define(rng, self.definitions)
                }
                58..=72 if !self.prepared.is_empty() => {
                    let number = self.prepared[rng.random_range(0..self.prepared.len())];
                    let verb = ["COMMIT", "COMMIT", "ROLLBACK"][rng.random_range(0..3)];
                    Statement::plain(format!("{verb} PREPARED 'proof_@_{number}'"))
                }
                _ => source.draw(rng, calm),
            },
            Standing::Open => match draw {
                _ if draw < ending => Statement::plain("COMMIT"),
                40..=44 => Statement::plain("ROLLBACK"),
                45..=51 => Statement::plain("SAVEPOINT s"),
                52..=57 if self.has_savepoint[who] => Statement::plain("ROLLBACK TO SAVEPOINT s"),
                58..=60 if self.has_savepoint[who] => Statement::plain("RELEASE SAVEPOINT s"),
                61 if !calm => {
                    self.definitions += 1;
                    source.define(rng, self.definitions)
                }
                62..=66 if self.prepared.len() < PREPARED_MOST => {
                    Statement::plain(format!("PREPARE TRANSACTION 'proof_@_{}'", self.done))
                }
                _ => source.draw(rng, calm),
            },
        }
    }
}
