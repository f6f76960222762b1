//! What a transaction does to a pair of tables, drawn.

use tpcc::random::TpccRng;

/// A statement, and whose tables it is about.
pub enum Work {
    /// The same on both sides.
    OnBoth(String),
    /// On the memory-optimized side alone, where it changes nothing that is compared.
    OnMot(String),
}

/// Highest id of a row.
const IDS: i32 = 400;

/// What indexes are made of.
const INDEXES: [&str; 14] = [
    "(n)",
    "(n DESC NULLS LAST, id)",
    "(lower(x))",
    "(x)",
    "(x text_pattern_ops)",
    "(feeling)",
    "(list)",
    "(span)",
    "(data)",
    "(n) WHERE n % 2 = 0",
    "(n) INCLUDE (x)",
    "((n % 10), feeling)",
    "(pair)",
    "(upper(span), x)",
];

/// Draws one.
pub fn draw(rng: &mut TpccRng, table: &str, method: &str) -> Work {
    let low = rng.uniform(1, IDS);
    let high = (low + rng.uniform(0, 80)).min(IDS);
    let statement = match rng.uniform(1, 100) {
        1..=14 => create(rng, table),
        15..=35 => insert(table, low, high),
        36..=38 => lock(rng, table, low, high),
        39..=50 => format!(
            "UPDATE {table} SET n = n + 1, x = right(x || '.{low}', 30) WHERE id BETWEEN {low} AND {high}"
        ),
        51..=55 => format!(
            "UPDATE {table} SET feeling = 'high', list = list || {low}, span = int4range({low}, NULL), \
             data = data || '{{\"low\": {low}}}', pair = ROW({low}, 'y') WHERE id % 17 = {low} % 17"
        ),
        56..=58 => format!("UPDATE {table} SET id = id + 1 WHERE id BETWEEN {low} AND {high}"),
        59..=66 => format!("DELETE FROM {table} WHERE id BETWEEN {low} AND {high}"),
        67..=68 => format!("TRUNCATE {table}"),
        69..=75 => {
            let at = rng.uniform(0, INDEXES.len() as i32 - 1) as usize;
            let form = INDEXES[at];
            format!("CREATE INDEX IF NOT EXISTS {table}_{at} ON {table} {form}")
        }
        76..=78 => {
            let at = rng.uniform(0, INDEXES.len() as i32 - 1);
            format!("DROP INDEX IF EXISTS {table}_{at}")
        }
        79..=80 => format!("REINDEX TABLE {table}"),
        81..=82 => format!("CLUSTER {table} USING {table}_pkey"),
        83..=84 => format!("ALTER TABLE {table} SET LOGGED"),
        85..=86 => format!("ALTER TABLE {table} SET UNLOGGED"),
        87 => format!("ALTER TABLE {table} ALTER n TYPE bigint"),
        88 => format!("ALTER TABLE {table} ALTER n TYPE int"),
        89 => format!("ALTER TABLE {table} ADD COLUMN IF NOT EXISTS more int DEFAULT {low}"),
        90 => format!("ALTER TABLE {table} DROP COLUMN IF EXISTS more"),
        91..=92 => format!("DROP TABLE {table}"),
        93..=94 => format!(
            "DROP TABLE IF EXISTS {table}_copy; CREATE TABLE {table}_copy AS SELECT * FROM {table}"
        ),
        95..=96 => format!(
            "CREATE TEMP TABLE passing (id int PRIMARY KEY, x text) ON COMMIT DROP; \
             INSERT INTO passing SELECT id, x FROM {table}; \
             DELETE FROM {table} WHERE id IN (SELECT id FROM passing WHERE id % 50 = 0); \
             DROP TABLE passing"
        ),
        97 => {
            return Work::OnMot(format!("ALTER TABLE {table} SET ACCESS METHOD heap"));
        }
        _ => return Work::OnMot(format!("ALTER TABLE {table} SET ACCESS METHOD {method}")),
    };
    Work::OnBoth(statement)
}

fn create(rng: &mut TpccRng, table: &str) -> String {
    let unlogged = if rng.percent(35) { "UNLOGGED" } else { "" };
    let deferrable = if rng.percent(20) { "DEFERRABLE" } else { "" };
    format!(
        "CREATE {unlogged} TABLE IF NOT EXISTS {table} (id int PRIMARY KEY {deferrable}, n int, x text, \
         feeling pairs.mood, list int[], span int4range, data jsonb, pair pairs.named)"
    )
}

/// Rows that the transaction locks and perhaps does not change.
fn lock(rng: &mut TpccRng, table: &str, low: i32, high: i32) -> String {
    let strengths = ["KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"];
    let strength = strengths[rng.uniform(0, 3) as usize];
    format!("SELECT FROM {table} WHERE id BETWEEN {low} AND {high} FOR {strength}")
}

fn insert(table: &str, low: i32, high: i32) -> String {
    // A deferrable key is no arbiter of ON CONFLICT.
    format!(
        "INSERT INTO {table} (id, n, x, feeling, list, span, data, pair) \
         SELECT g, g % 40, 'X' || g % 13, ('{{low,fair,high}}'::pairs.mood[])[1 + g % 3], ARRAY[g % 5, g], \
           int4range(g % 50, g), jsonb_build_object('k', g % 4), ROW(g % 7, 'p')::pairs.named \
         FROM generate_series({low}, {high}) g WHERE NOT EXISTS (SELECT FROM {table} WHERE id = g)"
    )
}
