//! How a query is asked: plainly, prepared, in a PL/pgSQL function, through a cursor.
use super::super::condition::Drawing;
use super::super::select::Query;
use super::super::types::{TYPES, one};
use super::Round;
use crate::failure::Result;
use crate::wire::Standing;
use rand::Rng;

impl Round<'_> {
    fn drawing(&mut self, has_parameters: bool) -> Query {
        Drawing::new(&mut self.rng, has_parameters).query(&self.tables)
    }

    fn ask_plainly(&mut self, query: &Query) -> Result<()> {
        self.has_changed |= query.locks;
        self.both(&query.text, query.is_ordered, query.may_fail)
    }

    pub(super) fn ask(&mut self) -> Result<()> {
        match self.rng.random_range(0..12) {
            0..=2 => {
                let query = self.drawing(true);
                self.ask_prepared(&query)
            }
            4 => {
                let query = self.drawing(true);
                self.make_function(query)
            }
            5 if !self.functions.is_empty() => {
                let at = self.rng.random_range(0..self.functions.len());
                let (name, query) = self.functions.swap_remove(at);
                self.ask_function(&name, &query)?;
                self.functions.push((name, query));
                Ok(())
            }
            3 => {
                let query = self.drawing(false);
                self.ask_cursor(&query)
            }
            _ => {
                let query = self.drawing(false);
                self.ask_plainly(&query)
            }
        }
    }

    /// Makes a PL/pgSQL function of a query, and asks it.
    fn make_function(&mut self, query: Query) -> Result<()> {
        self.prepared += 1;
        let name = format!("f{}", self.prepared);
        self.both(
            &format!(
                "CREATE FUNCTION {name}({}) RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN \
                 FOR r IN {} LOOP RETURN NEXT r::text; END LOOP; END $$",
                query.parameters.join(", "),
                query.text
            ),
            true,
            false,
        )?;
        self.ask_function(&name, &query)?;
        // It may be rolled back otherwise.
        if self.sides[1].standing == Standing::Idle {
            self.functions.push((name, query));
        }
        Ok(())
    }

    fn ask_function(&mut self, name: &str, query: &Query) -> Result<()> {
        self.has_changed |= query.locks;
        // A name among the arguments leaves the others without a collation.
        let may_fail = query.may_fail || query.parameters.iter().any(|sql| sql.starts_with("name"));
        for _ in 0..one(&mut self.rng, &[1, 2, 7]) {
            let values = self.arguments(query);
            self.both(
                &format!("SELECT * FROM {name}({values})"),
                query.is_ordered,
                may_fail,
            )?;
            if self.sides[1].standing == Standing::Failed {
                break;
            }
            if self.rng.random_ratio(1, 6) {
                self.change()?;
            }
        }
        Ok(())
    }

    fn arguments(&mut self, query: &Query) -> String {
        let values: Vec<String> = query
            .parameters
            .iter()
            .map(|sql| self.argument(sql))
            .collect();
        values.join(", ")
    }

    pub(super) fn ask_prepared(&mut self, query: &Query) -> Result<()> {
        let types = match query.parameters.is_empty() {
            true => String::new(),
            false => format!(" ({})", query.parameters.join(", ")),
        };
        self.prepared += 1;
        self.has_changed |= query.locks;
        let name = format!("q{}", self.prepared);
        self.both(
            &format!("PREPARE {name}{types} AS {}", query.text),
            true,
            query.may_fail,
        )?;
        if self.sides[1].standing != Standing::Failed {
            let is_before = self.sides[1].standing == Standing::Open;
            for _ in 0..one(&mut self.rng, &[1, 2, 2, 7]) {
                let values = match query.parameters.is_empty() {
                    true => String::new(),
                    false => format!("({})", self.arguments(query)),
                };
                self.both(
                    &format!("EXECUTE {name}{values}"),
                    query.is_ordered,
                    query.may_fail,
                )?;
                if is_before && self.sides[1].standing == Standing::Failed {
                    break;
                }
                if self.rng.random_ratio(1, 6) {
                    self.change()?;
                }
            }
        }
        if self.sides[1].standing != Standing::Failed {
            self.both("DEALLOCATE ALL", true, false)?;
        }
        Ok(())
    }

    fn argument(&mut self, sql: &str) -> String {
        if self.rng.random_ratio(1, 12) {
            return "NULL".to_owned();
        }
        let element = sql.trim_end_matches("[]");
        let kind = TYPES
            .into_iter()
            .find(|kind| kind.sql() == element)
            .expect("a parameter of one of the types");
        if element == sql {
            return kind.bare(&mut self.rng);
        }
        let count = self.rng.random_range(0..6);
        let values: Vec<String> = (0..count)
            .map(|_| match self.rng.random_ratio(1, 10) {
                true => "NULL".to_owned(),
                false => kind.literal(&mut self.rng),
            })
            .collect();
        format!("ARRAY[{}]::{sql}", values.join(", "))
    }

    fn ask_cursor(&mut self, query: &Query) -> Result<()> {
        let is_in_transaction = self.sides[1].standing == Standing::Open;
        if !is_in_transaction {
            self.both("BEGIN", true, false)?;
        }
        self.has_changed |= query.locks;
        let scroll = match query.locks {
            true => "NO SCROLL",
            false => one(&mut self.rng, &["SCROLL", "NO SCROLL"]),
        };
        let declare = format!("DECLARE c {scroll} CURSOR FOR {}", query.text);
        self.both(&declare, true, query.may_fail)?;
        // Of rows in no order only the count is known.
        let fetches: &[&str] = match (query.is_ordered, scroll) {
            (true, "SCROLL") => &[
                "FETCH 3 FROM c",
                "FETCH BACKWARD 2 FROM c",
                "FETCH LAST FROM c",
                "FETCH ABSOLUTE 2 FROM c",
                "FETCH FORWARD ALL FROM c",
                "FETCH BACKWARD ALL FROM c",
                "MOVE 2 IN c",
            ],
            (true, _) => &["FETCH 3 FROM c", "FETCH FORWARD ALL FROM c", "MOVE 2 IN c"],
            _ => &["FETCH ALL FROM c"],
        };
        for _ in 0..self.rng.random_range(1..6) {
            if self.sides[1].standing != Standing::Open {
                break;
            }
            match self.rng.random_range(0..8) {
                0 => {
                    self.change()?;
                    continue;
                }
                1 => {
                    self.both("SAVEPOINT c", true, false)?;
                    self.change()?;
                    self.both("ROLLBACK TO SAVEPOINT c", true, false)?;
                    continue;
                }
                _ => {}
            }
            let fetch = one(&mut self.rng, fetches);
            self.both(fetch, query.is_ordered, query.may_fail)?;
        }
        let end = match (is_in_transaction, self.sides[1].standing) {
            (true, Standing::Failed) => return Ok(()),
            (true, _) => "CLOSE c",
            (false, _) => "ROLLBACK",
        };
        self.both(end, true, false)
    }
}
