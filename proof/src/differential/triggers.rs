//! Random triggers: before and after, of rows and statements, with conditions; they note what they
//! see, change it, pass over it or refuse it.

use super::schema::{Column, Table};
use rand::Rng;
use rand::rngs::SmallRng;
use tpcc::engine::Engine;

/// Where triggers write. Of the side's kind, like the tables they belong to.
pub const LOG: &str = "log";

/// What the triggers of a side need.
pub fn prepare(engine: Engine) -> Vec<String> {
    // What a row is: for a statement nothing, for a deletion the old one.
    let row = "CASE WHEN TG_LEVEL = 'STATEMENT' THEN NULL WHEN TG_OP = 'DELETE' THEN OLD::text ELSE NEW::text END";
    let old = "CASE WHEN TG_LEVEL = 'ROW' AND TG_OP = 'UPDATE' THEN OLD::text END";
    let returned = "IF TG_OP = 'DELETE' THEN RETURN OLD; ELSE RETURN NEW; END IF";
    vec![
        engine.create(&format!("{LOG} (who text, what text, row text, old text)")),
        format!(
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
               INSERT INTO {LOG} VALUES (TG_NAME, TG_OP, {row}, {old}); {returned}; END $$"
        ),
        // By what the row says, so that both sides choose alike.
        format!(
            "CREATE FUNCTION choose() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE number int := \
             abs(hashtext({row}) % 12); BEGIN
               IF number < 2 AND TG_WHEN = 'BEFORE' THEN RETURN NULL; END IF;
               IF number = 2 THEN RAISE EXCEPTION 'refused'; END IF; {returned}; END $$"
        ),
        note_rows("note_old", "NULL", &all("old_rows")),
        note_rows("note_new", &all("new_rows"), "NULL"),
        note_rows("note_both", &all("new_rows"), &all("old_rows")),
    ]
}

/// All rows of a transition table, in no order of a plan.
fn all(rows: &str) -> String {
    format!("(SELECT string_agg(r::text, '|' ORDER BY r::text COLLATE \"C\") FROM {rows} r)")
}

/// A function for triggers with transition tables.
fn note_rows(name: &str, new: &str, old: &str) -> String {
    format!(
        "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           INSERT INTO {LOG} VALUES (TG_NAME, TG_OP, {new}, {old}); RETURN NULL; END $$"
    )
}

/// A trigger with transition tables: of one event, after the statement.
fn of_rows(rng: &mut SmallRng, table: &str, number: usize) -> String {
    let (event, tables, function) = [
        ("INSERT", "NEW TABLE AS new_rows", "note_new"),
        (
            "UPDATE",
            "OLD TABLE AS old_rows NEW TABLE AS new_rows",
            "note_both",
        ),
        ("DELETE", "OLD TABLE AS old_rows", "note_old"),
    ][rng.random_range(0..3)];
    format!(
        "CREATE TRIGGER {table}_{number} AFTER {event} ON {table} REFERENCING {tables} FOR EACH STATEMENT \
         EXECUTE FUNCTION {function}()"
    )
}

/// Draws a table's.
pub fn draw(rng: &mut SmallRng, table: &Table) -> Vec<String> {
    let mut statements = Vec::new();
    let count = [0, 0, 1, 2, 3][rng.random_range(0..5)];
    for number in 0..count {
        let name = &table.name;
        let column = table.payload(rng);
        let events = [
            "INSERT",
            "UPDATE",
            "DELETE",
            "INSERT OR UPDATE",
            "UPDATE OR DELETE",
            "INSERT OR UPDATE OR DELETE",
        ][rng.random_range(0..6)];
        let when = if rng.random() { "BEFORE" } else { "AFTER" };
        let trigger = format!("CREATE TRIGGER {name}_{number} {when}");
        let statement = match rng.random_range(0..8) {
            0 => format!("{trigger} {events} ON {name} EXECUTE FUNCTION note()"),
            1 => format!(
                "{trigger} UPDATE OF {} ON {name} FOR EACH ROW EXECUTE FUNCTION note()",
                column.name
            ),
            2 if !column.is_unique => {
                statements.push(change(rng, name, number, column));
                format!(
                    "CREATE TRIGGER {name}_{number} BEFORE INSERT OR UPDATE ON {name} FOR EACH ROW EXECUTE \
                     FUNCTION change_{name}_{number}()"
                )
            }
            3 => format!("{trigger} {events} ON {name} FOR EACH ROW EXECUTE FUNCTION choose()"),
            4..=5 => of_rows(rng, name, number),
            _ => format!(
                "{trigger} {events} ON {name} FOR EACH ROW{} EXECUTE FUNCTION note()",
                condition(rng, events, column)
            ),
        };
        statements.push(statement);
    }
    statements
}

fn change(rng: &mut SmallRng, table: &str, number: usize, column: &Column) -> String {
    let (name, value) = (&column.name, column.literal(rng));
    format!(
        "CREATE FUNCTION change_{table}_{number}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF NEW.{name} IS NULL OR hashtext(NEW.{name}::text) % 3 = 0 THEN NEW.{name} := {value}; END IF; \
           RETURN NEW; END $$"
    )
}

fn condition(rng: &mut SmallRng, events: &str, column: &Column) -> String {
    let name = &column.name;
    match (events, rng.random_range(0..3)) {
        (_, 0) => String::new(),
        ("UPDATE", 1) => format!(" WHEN (OLD.{name}::text IS DISTINCT FROM NEW.{name}::text)"),
        ("INSERT" | "INSERT OR UPDATE", _) => format!(" WHEN (NEW.{name} IS NOT NULL)"),
        ("DELETE" | "UPDATE" | "UPDATE OR DELETE", _) => format!(" WHEN (OLD.{name} IS NOT NULL)"),
        _ => String::new(),
    }
}
