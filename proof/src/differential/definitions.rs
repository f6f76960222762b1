//! Random changes of definitions, or of all rows: alone, in transactions, and beside the
//! transactions of others.

use super::schema::Column;
use super::statement::{Source, Statement};
use rand::Rng;
use rand::rngs::SmallRng;

impl Source<'_> {
    /// A change of a definition, the run's `number`th.
    pub fn define(&self, rng: &mut SmallRng, number: u64) -> Statement {
        let table = self.table(rng);
        let name = &table.name;
        let may_be_key = |column: &&Column| column.kind.may_be_indexed();
        let ordered: Vec<&Column> = table.columns.iter().filter(may_be_key).collect();
        if ordered.is_empty() {
            return Statement {
                defines: true,
                ..Statement::plain(format!("TRUNCATE {name}"))
            };
        }
        let column = ordered[rng.random_range(0..ordered.len())];
        let class = column.class(rng);
        let (column, first) = (&column.name, &table.columns[0].name);
        // One that an earlier statement may have made.
        let earlier = rng.random_range(number.saturating_sub(9)..=number);
        let extra = format!("{name}_extra_{number}");
        let text = match rng.random_range(0..37) {
            22 => format!("CREATE INDEX {extra} ON {name} ((coalesce({column})){class}, {column})"),
            23 => format!(
                "CREATE INDEX {extra} ON {name} ({column}{class}) WHERE {column} IS NOT NULL"
            ),
            24 => format!("CREATE UNIQUE INDEX {extra} ON {name} ((coalesce({column})){class})"),
            25 => format!("CREATE INDEX {extra} ON {name} (({column} IS NULL)) INCLUDE ({column})"),
            26 => format!("ALTER TABLE {name} ADD CONSTRAINT {extra} UNIQUE ({column}) DEFERRABLE"),
            27 => format!("ALTER TABLE {name} SET UNLOGGED"),
            28 => format!("ALTER TABLE {name} SET LOGGED"),
            29 => format!("REINDEX TABLE {name}"),
            30 => format!("CLUSTER {name} USING {name}_key"),
            31 => format!(
                "CREATE INDEX {extra} ON {name} ({column}{class} DESC, ({column} IS NULL)) WHERE {column} IS NULL"
            ),
            32 => format!(
                "CREATE INDEX {extra} ON {name} ({first} DESC, {column}{class} NULLS FIRST)"
            ),
            33 => format!(
                "CREATE UNIQUE INDEX {extra} ON {name} ({column}{class} DESC) INCLUDE ({first}) WHERE {column} \
                 IS NOT NULL"
            ),
            34 => format!("CREATE UNIQUE INDEX {extra} ON {name} ({column}{class} DESC, {first})"),
            // Its file is new, and its turn among the others the same.
            35..=36 => format!("REINDEX INDEX {name}_key"),
            0..=1 => format!("TRUNCATE {name}"),
            2..=3 => format!("CREATE INDEX {extra} ON {name} ({column}{class})"),
            4 => format!("CREATE UNIQUE INDEX {extra} ON {name} ({column}{class})"),
            5..=6 => format!("ALTER TABLE {name} ADD CONSTRAINT {extra} UNIQUE ({column})"),
            7 => format!("ALTER TABLE {name} ADD COLUMN extra_{number} int"),
            8 => format!("ALTER TABLE {name} ADD COLUMN extra_{number} text DEFAULT 'new'"),
            9 => format!("ALTER TABLE {name} DROP COLUMN IF EXISTS extra_{earlier}"),
            10 => format!("ALTER TABLE {name} ADD CONSTRAINT {extra} CHECK ({column} IS NOT NULL)"),
            11 => format!("DROP INDEX IF EXISTS {name}_extra_{earlier}"),
            12 => format!("ALTER TABLE {name} DISABLE TRIGGER USER"),
            13 => format!("ALTER TABLE {name} ENABLE TRIGGER USER"),
            16..=17 => format!(
                "ALTER TABLE {name} ADD CONSTRAINT {extra} CHECK ({column} IS NULL) NOT VALID"
            ),
            18 => format!("ALTER TABLE {name} VALIDATE CONSTRAINT {name}_extra_{earlier}"),
            // Another access method on both sides, and back: the rows are written anew.
            20 => format!("ALTER TABLE {name} SET ACCESS METHOD heap_two"),
            21 => format!("ALTER TABLE {name} SET ACCESS METHOD @"),
            19 => format!("ALTER TABLE {name} ADD PRIMARY KEY ({column})"),
            _ => format!("ALTER TABLE {name} DROP CONSTRAINT IF EXISTS {name}_extra_{earlier}"),
        };
        Statement {
            defines: true,
            ..Statement::plain(text)
        }
    }
}
