//! The tables that pairs run on, the functions that do the first thing, and the triggers.

use tpcc::engine::Engine;

pub const ITEM: &str = "item";
/// With an AFTER trigger that does nothing.
pub const WATCHED: &str = "watched";
/// With a BEFORE trigger that changes the row, and a generated column.
pub const GUARDED: &str = "guarded";
/// A view of `item`.
pub const VIEW: &str = "item_view";
/// A heap table with two partitions of the side's kind.
pub const PARTS: &str = "parts";
/// With a BEFORE trigger of rows.
pub const BEFORE: &str = "before_item";
/// With an AFTER trigger of rows.
pub const AFTER: &str = "after_item";
/// For what is done to another table.
pub const ASIDE: &str = "aside";

/// Those that have rows of their own, or of their partitions.
pub const ALL: [&str; 7] = [ITEM, WATCHED, GUARDED, PARTS, BEFORE, AFTER, ASIDE];
/// What a trigger does, and at which event of which row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act<'a> {
    pub function: &'a str,
    pub event: &'a str,
    pub at: i32,
}

/// The statements that make a side.
pub fn create(schema: &str, engine: Engine) -> Vec<String> {
    let unique = |name: &str| {
        format!("CONSTRAINT {name}_key PRIMARY KEY (id), CONSTRAINT {name}_n UNIQUE (n)")
    };
    let mut statements = vec![format!(
        "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; SET search_path = {schema}"
    )];
    for name in [ITEM, WATCHED, GUARDED, BEFORE, AFTER, ASIDE] {
        let generated = match name {
            GUARDED => "length int GENERATED ALWAYS AS (length(name)) STORED, ",
            _ => "",
        };
        statements.push(engine.create(&format!(
            "{name} (id int, name text, n int, {generated}{})",
            unique(name)
        )));
    }
    statements.push(format!(
        "CREATE TABLE {PARTS} (id int, name text, n int) PARTITION BY LIST ((id % 2))"
    ));
    for (name, value) in [("parts_odd", 1), ("parts_even", 0)] {
        statements.push(engine.create(&format!(
            "{name} PARTITION OF {PARTS} ({}) FOR VALUES IN ({value})",
            unique(name)
        )));
    }
    statements.push(format!(
        "CREATE VIEW {VIEW} AS SELECT id, name, n FROM {ITEM} WHERE id > 0 WITH CHECK OPTION"
    ));
    // By settings of the session, so that one trigger does for all pairs.
    statements.push(
        "CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE this record := NEW; met int; BEGIN
           IF TG_OP = 'DELETE' THEN this := OLD; END IF;
           met := this.id;
           IF TG_OP = 'UPDATE' THEN met := OLD.id; END IF;
           IF TG_OP = current_setting('pairs.event') AND met::text = current_setting('pairs.at') THEN
             EXECUTE format('SELECT %I()', current_setting('pairs.function'));
           END IF;
           RETURN this; END $$"
            .to_owned(),
    );
    statements.push(
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
            .to_owned(),
    );
    statements.push(
        "CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
           NEW.name := NEW.name || ' guarded'; RETURN NEW; END $$"
            .to_owned(),
    );
    for (table, when, does) in [
        (WATCHED, "AFTER", "nothing"),
        (GUARDED, "BEFORE", "guard"),
        (BEFORE, "BEFORE", "act"),
        (AFTER, "AFTER", "act"),
    ] {
        statements.push(format!(
            "CREATE TRIGGER {table} {when} INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW WHEN \
             (pg_trigger_depth() = 0) EXECUTE FUNCTION {does}()"
        ));
    }
    statements.push(no_act());
    statements.extend(ALL.map(fill));
    statements
}

/// A function that does the first thing of a pair.
pub fn function(name: &str, language: &str, statement: &str) -> String {
    let body = match (language, statement.strip_prefix("SELECT ")) {
        ("sql", _) => format!("{statement}; SELECT 1"),
        (_, Some(rest)) => format!("BEGIN PERFORM {rest}; RETURN 1; END"),
        (_, None) => format!("BEGIN {statement}; RETURN 1; END"),
    };
    format!("CREATE FUNCTION {name}() RETURNS int LANGUAGE {language} VOLATILE AS $${body}$$")
}

/// Makes triggers act.
pub fn set_act(act: &Act<'_>) -> String {
    let Act {
        function,
        event,
        at,
    } = act;
    format!("SET pairs.function = '{function}'; SET pairs.event = '{event}'; SET pairs.at = {at}")
}

/// Makes triggers do nothing.
pub fn no_act() -> String {
    set_act(&Act {
        function: "",
        event: "",
        at: 0,
    })
}

/// The rows that each table has.
fn fill(table: &str) -> String {
    format!(
        "INSERT INTO {table} VALUES (1, 'first row', 10), (2, 'second row', 20), (3, 'third row', 30), (4, \
         'fourth row', 40)"
    )
}

/// Gives a table its first rows back.
pub fn restore(table: &str) -> String {
    format!("DELETE FROM {table}; {}", fill(table))
}

/// The same where its rows cannot be read, or to be rid of old versions.
pub fn renew(table: &str) -> String {
    format!("TRUNCATE {table}; {}", fill(table))
}

/// All rows of a table, and what its other key finds.
pub fn read(table: &str) -> String {
    format!("SELECT * FROM {table} ORDER BY id; SELECT n, id FROM {table} ORDER BY n")
}

/// Looks whether what is stored holds together; for MOT tables.
pub fn check(table: &str) -> String {
    let check = |name: &str| format!("SELECT rows FROM mot.check('{name}')");
    match table {
        PARTS => format!("{}; {}", check("parts_odd"), check("parts_even")),
        name => check(name),
    }
}
