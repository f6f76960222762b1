//! Random tables, indexes and changes.
use super::types::{Class, TYPES, Type, one};
use rand::Rng;
use rand::rngs::SmallRng;
use tpcc::engine::Engine;

/// A column, besides `id`.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Type,
    /// Older rows have its default from the catalog alone.
    has_missing: bool,
}

/// A table: `id` is its key.
#[derive(Clone, Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: Vec<Column>,
    /// Columns of each index of the MOT table, by number.
    pub indexes: Vec<Vec<usize>>,
    /// Partitions: the first has the rows up to `id` 40.
    pub is_partitioned: bool,
    /// Neither key nor indexes: both sides read all rows, in one order.
    pub is_bare: bool,
    next: u32,
    added: u32,
}

impl Table {
    pub fn draw(rng: &mut SmallRng, name: &'static str, is_bare: bool) -> Table {
        // Few types, or those of one class, meet more often.
        let class = one(
            rng,
            &[
                Some(Class::Number),
                Some(Class::Text),
                Some(Class::Day),
                None,
                None,
            ],
        );
        let of_class: Vec<Type> = TYPES
            .into_iter()
            .filter(|kind| class.is_none_or(|class| kind.class() == class))
            .collect();
        let palette: Vec<Type> = (0..rng.random_range(2..6))
            .map(|_| one(rng, &of_class))
            .collect();
        let is_mixed: bool = rng.random();
        let mut columns = vec![];
        let count = rng.random_range(4..13);
        for at in 0..count {
            let kind = match at {
                0 => Type::Int4,
                1 => one(rng, &[Type::Int2, Type::Int4, Type::Int8]),
                _ if is_mixed => one(rng, &TYPES),
                _ => one(rng, &palette),
            };
            columns.push(Column {
                name: format!("c{at}"),
                kind,
                has_missing: false,
            });
        }
        Table {
            name,
            columns,
            indexes: vec![],
            is_partitioned: !is_bare && rng.random_ratio(1, 6),
            is_bare,
            next: 1,
            added: 0,
        }
    }

    /// Its definition on a side.
    pub fn create(&self, engine: Engine) -> Vec<String> {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| format!("{} {}", column.name, column.kind.definition()))
            .collect();
        let columns = columns.join(", ");
        let name = self.name;
        let key = match self.is_bare {
            true => "",
            false => " PRIMARY KEY",
        };
        if !self.is_partitioned {
            return vec![engine.create(&format!("{name} (id int{key}, {columns})"))];
        }
        let mut all = vec![format!(
            "CREATE TABLE {name} (id int NOT NULL, {columns}) PARTITION BY RANGE (id)"
        )];
        for (part, range) in self
            .parts()
            .iter()
            .zip(["MINVALUE) TO (40", "40) TO (MAXVALUE"])
        {
            all.push(engine.create(&format!(
                "{part} PARTITION OF {name} FOR VALUES FROM ({range})"
            )));
        }
        all
    }

    /// What has rows: itself, or its partitions.
    pub fn parts(&self) -> Vec<String> {
        match self.is_partitioned {
            true => vec![format!("{}_1", self.name), format!("{}_2", self.name)],
            false => vec![self.name.to_owned()],
        }
    }

    pub fn any(&self, rng: &mut SmallRng) -> &Column {
        &self.columns[rng.random_range(0..self.columns.len())]
    }

    /// One that fits, if there is one.
    pub fn any_that(&self, rng: &mut SmallRng, fits: impl Fn(&Column) -> bool) -> Option<&Column> {
        let found: Vec<&Column> = self.columns.iter().filter(|column| fits(column)).collect();
        (!found.is_empty()).then(|| found[rng.random_range(0..found.len())])
    }

    /// Columns that an index may have, in a random order.
    fn key(&self, rng: &mut SmallRng) -> Vec<usize> {
        let mut found: Vec<usize> = vec![];
        let count = rng.random_range(1..5);
        for _ in 0..count {
            // The plain ones meet more often.
            let at = match rng.random_ratio(1, 2) {
                true => rng.random_range(0..self.columns.len().min(5)),
                false => rng.random_range(0..self.columns.len()),
            };
            // An index on a column that older rows lack is refused so far.
            let column = &self.columns[at];
            if !found.contains(&at) && column.kind.can_be_key() && !column.has_missing {
                found.push(at);
            }
        }
        found
    }

    /// A new index of the MOT table.
    pub fn add_index(&mut self, rng: &mut SmallRng) -> Option<Vec<String>> {
        let key = self.key(rng);
        if key.is_empty() {
            return None;
        }
        let is_one_way = rng.random();
        let way = one(rng, &["", " DESC"]);
        let columns: Vec<String> = key
            .iter()
            .map(|at| {
                let way = match is_one_way {
                    true => way,
                    false => one(rng, &["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]),
                };
                let column = &self.columns[*at];
                let name = &column.name;
                let class = match column.kind.other_class() {
                    Some((class, _)) if rng.random_ratio(1, 3) => format!(" {class}"),
                    _ => String::new(),
                };
                match rng.random_ratio(1, 8) {
                    true => format!("(coalesce({name})){class}{way}"),
                    false => format!("{name}{class}{way}"),
                }
            })
            .collect();
        let mut key = key;
        let rest = match rng.random_ratio(1, 6) {
            true => {
                // The index goes with this column, too.
                let at = rng.random_range(0..self.columns.len());
                key.push(at);
                format!(" WHERE {} IS NOT NULL", self.columns[at].name)
            }
            false => String::new(),
        };
        self.indexes.push(key);
        let number = self.indexes.len();
        let columns = columns.join(", ");
        let create =
            |part| format!("CREATE INDEX {part}_index{number} ON {part} ({columns}){rest}");
        Some(self.parts().iter().map(create).collect())
    }

    /// Drops the index that was made last.
    pub fn drop_index(&mut self) -> Vec<String> {
        let number = self.indexes.len();
        if self.indexes.pop().is_none() {
            return vec![];
        }
        let drop = |part| format!("DROP INDEX {part}_index{number}");
        self.parts().iter().map(drop).collect()
    }

    /// New rows.
    pub fn insert(&mut self, rng: &mut SmallRng, count: u32) -> String {
        let nulls = one(rng, &[0, 0, 10, 30]);
        let rows: Vec<String> = (0..count)
            .map(|_| {
                let mut row = self.next.to_string();
                self.next += 1;
                for column in &self.columns {
                    row += ", ";
                    row += &match rng.random_range(0..100) < nulls {
                        true => "NULL".to_owned(),
                        false => column.kind.bare(rng),
                    };
                }
                format!("({row})")
            })
            .collect();
        let names: Vec<&str> = self
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        format!(
            "INSERT INTO {} (id, {}) VALUES {}",
            self.name,
            names.join(", "),
            rows.join(", ")
        )
    }

    /// An UPDATE or DELETE of some rows by their keys.
    pub fn change(&mut self, rng: &mut SmallRng) -> String {
        let (modulus, name) = (rng.random_range(2..9), self.name);
        let rest = rng.random_range(0..modulus);
        let filter = match rng.random() {
            true => format!("id % {modulus} = {rest}"),
            false => {
                let low = rng.random_range(0..=self.next);
                format!("id BETWEEN {low} AND {}", low + 20)
            }
        };
        match rng.random_range(0..10) {
            0..=3 => {
                let count = rng.random_range(1..9);
                self.insert(rng, count)
            }
            4..=7 => {
                let sets: Vec<String> = (0..rng.random_range(1..3))
                    .map(|_| self.any(rng))
                    .collect::<Vec<_>>()
                    .iter()
                    .scan(vec![], |seen: &mut Vec<&str>, column| {
                        let is_new = !seen.contains(&column.name.as_str());
                        seen.push(&column.name);
                        Some(is_new.then(|| match rng.random_ratio(1, 6) {
                            true => format!("{} = NULL", column.name),
                            false => format!("{} = {}", column.name, column.kind.bare(rng)),
                        }))
                    })
                    .flatten()
                    .collect();
                format!("UPDATE {name} SET {} WHERE {filter}", sets.join(", "))
            }
            _ => format!("DELETE FROM {name} WHERE {filter} AND id % 3 = 0"),
        }
    }

    /// A new column, with a default or without, or one less.
    pub fn redefine(&mut self, rng: &mut SmallRng) -> String {
        let droppable = self.columns.len().saturating_sub(1);
        let is_indexed = |at: usize| self.indexes.iter().any(|key| key.contains(&at));
        if rng.random_ratio(1, 3) && droppable > 4 && !is_indexed(droppable) {
            let column = self.columns.remove(droppable);
            return format!("ALTER TABLE {} DROP COLUMN {}", self.name, column.name);
        }
        let kind = one(rng, &TYPES);
        let name = format!("d{}", self.added);
        self.added += 1;
        let default = match rng.random() {
            true => format!(" DEFAULT {}", kind.literal(rng)),
            false => String::new(),
        };
        let definition = kind.definition();
        self.columns.push(Column {
            name: name.clone(),
            kind,
            has_missing: !default.is_empty(),
        });
        format!(
            "ALTER TABLE {} ADD COLUMN {name} {definition}{default}",
            self.name
        )
    }
}
