//! The queries of the random query tester, over tables of more rows than it has.
use super::side::Side;
use super::{PlansOptions, Query};
use crate::failure::Result;
use crate::queries::condition::Drawing;
use crate::queries::tables::Table;
use crate::queries::types;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use tpcc::engine::Engine;

/// Rows of one INSERT.
const ROWS_TOGETHER: u32 = 500;
/// Indexes of a table.
const INDEXES: u32 = 4;

/// Makes two tables on each side, with the same indexes, and draws queries of them.
pub fn queries(
    heap: &mut Side,
    mot: &mut Side,
    seed: u64,
    options: &PlansOptions,
) -> Result<Vec<Query>> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut tables = vec![
        Table::draw(&mut rng, "t", false),
        Table::draw(&mut rng, "u", false),
    ];
    let mut statements = Vec::new();
    for table in &mut tables {
        for _ in 0..options.random_rows.div_ceil(ROWS_TOGETHER) {
            statements.push(table.insert(&mut rng, ROWS_TOGETHER));
        }
        for _ in 0..INDEXES {
            statements.extend(table.add_index(&mut rng).into_iter().flatten());
        }
    }
    for (side, engine) in [(heap, Engine::Heap), (mot, Engine::Mot)] {
        side.make_schema()?;
        for create in types::EXTENSIONS {
            side.session.must(create)?;
        }
        side.session.must(&types::definitions(side.schema))?;
        for (name, volatility) in [("stable_count", "STABLE"), ("volatile_count", "VOLATILE")] {
            side.session.must(&format!(
                "CREATE FUNCTION {name}(int8) RETURNS int8 {volatility} LANGUAGE sql AS 'SELECT $1 % 7'"
            ))?;
        }
        for statement in tables.iter().flat_map(|table| table.create(engine)) {
            side.session.must(&statement)?;
        }
        for statement in &statements {
            // An index may be refused on both sides alike: a key that is too long.
            side.session.ask(statement)?;
        }
        side.settle()?;
    }
    let mut drawn = Vec::new();
    for _ in 0..options.queries {
        let query = Drawing::new(&mut rng, false).query(&tables);
        let is_volatile = query.text.contains("volatile_count");
        drawn.push(Query {
            form: format!("random, seed {seed}"),
            text: query.text,
            is_ordered: query.is_ordered,
            may_fail: query.may_fail || is_volatile,
        });
    }
    Ok(drawn)
}
