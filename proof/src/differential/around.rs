//! What a table's rows are also reached by: a view over it, with a CHECK OPTION, triggers or rules,
//! and a heap table that it inherits from.

use super::schema::Table;
use super::statement::condition;
use super::triggers::LOG;
use rand::Rng;
use rand::rngs::SmallRng;

/// A view, and a parent, if the table has them. Both have the columns that the table was made with.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The statements that make the view.
    view: Option<Vec<String>>,
    has_parent: bool,
}

/// How a view takes changes.
#[derive(Clone, Copy, Debug)]
enum Takes {
    /// It hands them on: core rewrites the statement.
    Plain,
    /// The same, and rows have to stay in it.
    Checked,
    /// The same, and its condition comes before all others.
    Barrier,
    /// Triggers do what is to be done.
    Triggers,
    /// Rules say which statements run instead.
    Rules,
}

/// Another name for a table in a statement.
pub struct Other {
    /// With the table's own name as an alias, so that nothing else in the statement changes.
    pub name: String,
    /// There may be several rows of a key.
    pub has_twins: bool,
}

impl Around {
    /// Draws them.
    pub fn draw(rng: &mut SmallRng, table: &Table) -> Around {
        let takes = [
            Takes::Plain,
            Takes::Checked,
            Takes::Barrier,
            Takes::Triggers,
            Takes::Rules,
        ][rng.random_range(0..5)];
        Around {
            view: rng.random_ratio(2, 3).then(|| view(rng, table, takes)),
            has_parent: !table.ordinary.is_partitioned && rng.random_ratio(1, 3),
        }
    }

    /// The statements that make them, the same on both sides: neither has rows in memory.
    pub fn create(&self, table: &Table) -> Vec<String> {
        let mut statements = Vec::new();
        if let Some(parent) = self.parent(table) {
            let columns: Vec<String> = table
                .columns
                .iter()
                .map(|column| format!("{} {}", column.name, column.kind.sql()))
                .collect();
            statements.push(format!(
                "CREATE TABLE {parent} ({}) WITH (autovacuum_enabled = off)",
                columns.join(", ")
            ));
            statements.push(format!("ALTER TABLE {} INHERIT {parent}", table.name));
        }
        if let Some(view) = &self.view {
            statements.extend(view.iter().cloned());
        }
        statements
    }

    /// The parent's name.
    pub fn parent(&self, table: &Table) -> Option<String> {
        self.has_parent.then(|| format!("{}_parent", table.name))
    }

    /// Now and then another way to the table's rows.
    pub fn other(&self, rng: &mut SmallRng, table: &Table) -> Option<Other> {
        let name = &table.name;
        match (rng.random_range(0..6), &self.view) {
            (0, Some(_)) => Some(Other {
                name: format!("{name}_view AS {name}"),
                has_twins: false,
            }),
            (1, _) if self.has_parent => Some(Other {
                name: format!("{name}_parent AS {name}"),
                has_twins: true,
            }),
            _ => None,
        }
    }
}

fn view(rng: &mut SmallRng, table: &Table, takes: Takes) -> Vec<String> {
    let name = &table.name;
    let names: Vec<&str> = table
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    let (columns, set) = (names.join(", "), &table.set_column().name);
    let filter = condition(rng, table, "");
    let of = |row: &str| -> String {
        let values: Vec<String> = names.iter().map(|name| format!("{row}.{name}")).collect();
        values.join(", ")
    };
    let is_old: Vec<String> = table
        .key()
        .iter()
        .map(|column| format!("{name}.{0} = OLD.{0}", column.name))
        .collect();
    let is_old = is_old.join(" AND ");
    let make = format!("SELECT {columns} FROM {name} WHERE {filter}");
    let mut statements = Vec::new();
    match takes {
        Takes::Plain => statements.push(format!("CREATE VIEW {name}_view AS {make}")),
        Takes::Checked => {
            let (inner, level) = (
                condition(rng, table, ""),
                ["LOCAL", "CASCADED"][rng.random_range(0..2)],
            );
            statements.push(format!(
                "CREATE VIEW {name}_inner AS SELECT {columns} FROM {name} WHERE {inner}"
            ));
            statements.push(format!(
                "CREATE VIEW {name}_view AS SELECT {columns} FROM {name}_inner WHERE \
                {filter} WITH {level} CHECK OPTION"
            ));
        }
        Takes::Barrier => statements.push(format!(
            "CREATE VIEW {name}_view WITH (security_barrier) AS {make}"
        )),
        Takes::Triggers => {
            statements.push(format!("CREATE VIEW {name}_view AS {make}"));
            statements.push(format!(
                "CREATE FUNCTION {name}_instead() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                   IF TG_OP = 'INSERT' THEN INSERT INTO {name} ({columns}) VALUES ({});
                   ELSIF TG_OP = 'UPDATE' THEN UPDATE {name} SET {set} = NEW.{set} WHERE {is_old};
                   ELSE DELETE FROM {name} WHERE {is_old}; END IF;
                   IF NOT FOUND THEN RETURN NULL; END IF;
                   INSERT INTO {LOG} VALUES (TG_NAME, TG_OP, CASE WHEN TG_OP = 'DELETE' THEN OLD::text ELSE \
                   NEW::text END);
                   IF TG_OP = 'DELETE' THEN RETURN OLD; ELSE RETURN NEW; END IF; END $$",
                of("NEW")
            ));
            statements.push(format!(
                "CREATE TRIGGER {name}_instead INSTEAD OF INSERT OR UPDATE OR DELETE ON {name}_view FOR EACH \
                 ROW EXECUTE FUNCTION {name}_instead()"
            ));
        }
        Takes::Rules => {
            statements.push(format!("CREATE VIEW {name}_view AS {make}"));
            let gives = format!("RETURNING {}", of(name));
            let on = |event: &str| {
                format!("CREATE RULE {name}_on_{event} AS ON {event} TO {name}_view DO")
            };
            statements.push(format!(
                "{} INSTEAD INSERT INTO {name} ({columns}) VALUES ({}) {gives}",
                on("INSERT"),
                of("NEW")
            ));
            statements.push(format!(
                "{} INSTEAD (INSERT INTO {LOG} VALUES ('rule', 'UPDATE', NEW.{set}::text, OLD.{set}::text);
                   UPDATE {name} SET {set} = NEW.{set} WHERE {is_old} {gives})",
                on("UPDATE")
            ));
            statements.push(format!(
                "{} INSTEAD DELETE FROM {name} WHERE {is_old} {gives}",
                on("DELETE")
            ));
        }
    }
    statements
}
