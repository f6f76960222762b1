//! The fixed queries, by the form of plan that they ask for.
use super::Query;

/// A form, and its queries. `{m}` is the middle of the numbers of rows, `{n}` the number of rows.
/// With LIMIT the order leaves nothing open, or only rows that look the same.
const FORMS: [(&str, &[&str]); 26] = [
    (
        "key",
        &[
            "SELECT * FROM items WHERE id = {m}",
            "SELECT id, s FROM items WHERE a = 7 AND b = 8",
            "SELECT count(*), sum(c) FROM items WHERE a = 7",
            "SELECT id, c FROM items WHERE id BETWEEN {m} AND {m} + 100",
            "SELECT sum(c) FROM items WHERE id BETWEEN {m} AND {m} + 20000",
            "SELECT sum(c) FROM items WHERE c < 20000",
        ],
    ),
    (
        "range to an outer value",
        &[
            "SELECT x, (SELECT count(*) FROM items WHERE id < x) FROM generate_series(1, 50) x",
            "SELECT * FROM small x, LATERAL (SELECT sum(c) FROM items WHERE id > {n} - x.id) l WHERE x.id < 50",
            "SELECT sum((SELECT count(*) FROM items WHERE id < x * {n} / 10)) FROM generate_series(1, 10) x",
            "SELECT sum((SELECT sum(c) FROM items WHERE id > x)) FROM generate_series({m}, {m} + 5) x",
        ],
    ),
    (
        "OR of several indexes",
        &[
            "SELECT id, a, b FROM items WHERE a = 7 OR c = 99",
            "SELECT id, s FROM items WHERE id = 5 OR c = 77",
            "SELECT count(*) FROM items WHERE c BETWEEN 10 AND 15 OR c BETWEEN 1000 AND 1005",
            "SELECT count(*) FROM items WHERE a = 7 OR b = 7 OR c = 7",
            "SELECT id FROM items WHERE id = 5 OR id = 7",
            "SELECT count(*), max(s) FROM items WHERE (a = 7 AND b < 100) OR (c < 50 AND flag)",
            "SELECT id, u FROM items WHERE u = 'key-00017' OR t = 'word17' ORDER BY id",
            "SELECT count(*) FROM items WHERE a < 100 OR b < 100",
            "SELECT id FROM items WHERE a = 7 OR c = 99 ORDER BY id LIMIT 10",
        ],
    ),
    (
        "AND of several indexes",
        &[
            "SELECT id, s FROM items WHERE b = 7 AND c < 2000",
            "SELECT count(*) FROM items WHERE b < 50 AND c < 5000",
            "SELECT count(*), max(s) FROM items WHERE flag AND c BETWEEN 100 AND 900",
            "SELECT id FROM items WHERE b BETWEEN 3 AND 9 AND u BETWEEN 'key-00100' AND 'key-00600'",
            "SELECT id FROM items WHERE n = 7 AND b < 200",
            "SELECT id, t FROM items WHERE b = 7 AND d < timestamp '2024-01-01' + {m} * interval '1 minute'",
        ],
    ),
    (
        "row comparison",
        &[
            "SELECT id, a, b FROM items WHERE (a, b) > (500, 500) ORDER BY a, b, id LIMIT 20",
            "SELECT a, b FROM items WHERE (a, b) > (500, 500) ORDER BY a, b LIMIT 20",
            "SELECT kind, id FROM items WHERE (kind, id) > (3, {m}) ORDER BY kind, id LIMIT 20",
            "SELECT kind, id, s FROM items WHERE (kind, id) < (3, {m}) ORDER BY kind DESC, id DESC LIMIT 20",
            "SELECT state, id FROM orders WHERE (state, id) >= ('done', {n} / 6) ORDER BY state, id LIMIT 10",
            "SELECT count(*) FROM items WHERE (a, b) >= (7, 100) AND (a, b) < (7, 900)",
            "SELECT count(*) FROM items WHERE (a, b) > (995, 0)",
            "SELECT id, g, c FROM items WHERE (g, c, id) > ({m} / 100, 50000, 0) ORDER BY g, c, id LIMIT 10",
            "SELECT count(*) FROM small x JOIN items y ON (y.a, y.b) > (x.id, 990) AND y.a <= x.id WHERE x.id < 100",
            "SELECT id FROM items WHERE (id, a) > ({m}, 7) ORDER BY id LIMIT 10",
            "SELECT region, id FROM parts WHERE (region, id) > (25, {n} / 8) ORDER BY region, id LIMIT 10",
        ],
    ),
    (
        "prefix LIKE and regex",
        &[
            "SELECT id, t FROM items WHERE t LIKE 'word1234%'",
            "SELECT id, u FROM items WHERE u LIKE 'key-0001%'",
            "SELECT id, u FROM items WHERE u ~ '^key-0001'",
            "SELECT id, t FROM items WHERE t ~ '^word1234[0-9]$'",
            "SELECT count(*) FROM items WHERE t LIKE 'word12%7'",
            "SELECT id, t FROM items WHERE flag AND lower(t) LIKE 'word77%'",
            "SELECT u FROM items WHERE u LIKE 'key-0%' ORDER BY u LIMIT 20",
            "SELECT count(*) FROM items WHERE u ^@ 'key-01'",
            "SELECT count(*) FROM items WHERE t LIKE 'word1%'",
        ],
    ),
    (
        "IN with ORDER BY",
        &[
            "SELECT a, b FROM items WHERE a = 7 AND b IN (5, 100, 300, 900) ORDER BY b LIMIT 5",
            "SELECT a, b FROM items WHERE a IN (3, 9, 700) ORDER BY a, b LIMIT 10",
            "SELECT a, b FROM items WHERE a IN (3, 9, 700) ORDER BY a DESC, b DESC LIMIT 10",
            "SELECT kind, id FROM items WHERE kind IN (1, 3, 5) ORDER BY kind, id LIMIT 10",
            "SELECT id FROM items WHERE kind IN (1, 3, 5) ORDER BY id LIMIT 10",
            "SELECT id, s FROM items WHERE id IN (5, 900, 17, 22000, 3) ORDER BY id",
            "SELECT id FROM items WHERE a IN (3, 9, 700) AND b IN (5, 6, 7) ORDER BY a, b, id",
            "SELECT state, id FROM orders WHERE state IN ('late', 'open') ORDER BY state, id LIMIT 10",
            "SELECT g, c FROM items WHERE g = 50 AND c = ANY (ARRAY[1,2,3,4000,50000,60000,70000]) ORDER BY c",
            "SELECT kind, id FROM items WHERE kind = 3 AND id IN (SELECT i * 37 FROM generate_series(1, 1000) \
             i) ORDER BY id LIMIT 5",
            "SELECT day, amount FROM orders WHERE day = '2024-05-05' AND amount = ANY \
             ('{5,500,5000,9999,17,18,19,20}') ORDER BY amount DESC LIMIT 3",
            "SELECT kind, id FROM items WHERE kind IN (2, 4) AND id IN (1, 50, 500, 5000, 10000, 19999) ORDER \
             BY kind, id LIMIT 4",
        ],
    ),
    (
        "DISTINCT by index",
        &[
            "SELECT DISTINCT kind FROM items ORDER BY kind",
            "SELECT DISTINCT a FROM items",
            "SELECT DISTINCT ON (kind) kind, id FROM items ORDER BY kind, id",
            "SELECT DISTINCT a, b FROM items WHERE a < 5",
            "SELECT kind, min(id) FROM items GROUP BY kind ORDER BY kind",
            "SELECT DISTINCT day FROM orders ORDER BY day LIMIT 5",
            "SELECT count(DISTINCT state) FROM orders",
        ],
    ),
    (
        "min and max",
        &[
            "SELECT min(id), max(id) FROM items",
            "SELECT max(c) FROM items",
            "SELECT max(c) FROM items WHERE a = 7",
            "SELECT min(b) FROM items WHERE a = 7",
            "SELECT max(id) FROM items WHERE kind = 3",
            "SELECT min(n), max(n) FROM items",
            "SELECT min(id) FROM items WHERE kind = 3 AND id > {m}",
            "SELECT max(amount) FROM orders WHERE day = '2024-02-03'",
            "SELECT x.id, (SELECT max(y.b) FROM items y WHERE y.a = x.id) FROM small x WHERE x.id < 50 ORDER BY x.id",
            "SELECT max(id) FROM parts",
        ],
    ),
    (
        "incremental sort",
        &[
            "SELECT a, c, id FROM items ORDER BY a, c, id LIMIT 20",
            "SELECT g, t, id FROM items ORDER BY g, t, id LIMIT 20",
            "SELECT g, t FROM items WHERE g BETWEEN 10 AND 60 ORDER BY g, t",
            "SELECT kind, d, s FROM items WHERE kind = 3 ORDER BY kind, d LIMIT 10",
            "SELECT day, amount, id FROM orders ORDER BY day, amount, id LIMIT 30",
            "SELECT a, sum(c) FROM items WHERE a < 20 GROUP BY a ORDER BY a",
        ],
    ),
    (
        "order, both ways",
        &[
            "SELECT id, c FROM items ORDER BY c, id LIMIT 10",
            "SELECT c FROM items ORDER BY c LIMIT 10",
            "SELECT c FROM items ORDER BY c DESC LIMIT 10",
            "SELECT id, s FROM items ORDER BY id DESC LIMIT 10",
            "SELECT day, amount FROM orders ORDER BY day DESC, amount LIMIT 10",
            "SELECT d FROM items WHERE d < timestamp '2024-01-20' ORDER BY d DESC LIMIT 10",
            "SELECT id FROM items WHERE flag ORDER BY id DESC LIMIT 10",
            "SELECT id, c FROM items ORDER BY id OFFSET 5000 LIMIT 10",
            "SELECT n FROM items ORDER BY n NULLS FIRST LIMIT 5",
            "SELECT n FROM items ORDER BY n DESC NULLS LAST LIMIT 5",
            "SELECT n FROM items ORDER BY n LIMIT 5",
            "SELECT id, s FROM items ORDER BY id",
            "SELECT id, c FROM items WHERE b = 7 ORDER BY c, id LIMIT 3",
        ],
    ),
    (
        "IS [NOT] NULL",
        &[
            "SELECT count(*) FROM items WHERE n IS NOT NULL",
            "SELECT count(*) FROM items WHERE n IS NULL",
            "SELECT id FROM items WHERE n IS NOT NULL AND a = 7 ORDER BY id",
            "SELECT n, count(*) FROM items WHERE n IS NOT NULL GROUP BY n ORDER BY n LIMIT 5",
            "SELECT id FROM items WHERE n IS NULL ORDER BY id LIMIT 5",
        ],
    ),
    (
        "boolean columns",
        &[
            "SELECT count(*) FROM items WHERE flag",
            "SELECT count(*) FROM items WHERE NOT flag",
            "SELECT count(*), max(s) FROM items WHERE flag IS TRUE",
            "SELECT count(*) FROM items WHERE flag AND c < 50000",
            "SELECT id FROM items WHERE flag = true AND a < 50 ORDER BY id",
        ],
    ),
    (
        "index in the inner loop",
        &[
            "SELECT count(*), sum(i.c) FROM small x JOIN items i ON i.id = x.k",
            "SELECT x.id, i.s FROM small x JOIN items i ON i.id = x.k WHERE x.id < 20",
            "SELECT count(*) FROM small x JOIN items i ON i.a = x.id WHERE x.label = 'label7'",
            "SELECT o.id, i.t FROM orders o JOIN items i ON i.id = o.item WHERE o.state = 'open' AND o.day = \
             '2024-03-03' ORDER BY o.id",
            "SELECT sum(o.amount) FROM items i JOIN orders o ON o.item = i.id WHERE i.a = 7",
            "SELECT sum(o.amount) FROM items i JOIN orders o ON o.item = i.id WHERE i.a < 100",
            "SELECT count(*) FROM small x LEFT JOIN items i ON i.a = x.id AND i.b = 7",
            "SELECT x.id, l.id FROM small x CROSS JOIN LATERAL (SELECT i.id FROM items i WHERE i.a = x.id \
             ORDER BY i.b, i.id LIMIT 1) l WHERE x.id < 100",
            "SELECT count(*) FROM small x WHERE EXISTS (SELECT FROM items i WHERE i.c = x.id AND i.flag)",
            "SELECT count(*) FROM small x WHERE NOT EXISTS (SELECT FROM orders o WHERE o.item = x.k)",
            "SELECT count(*) FROM items i WHERE i.id IN (SELECT k FROM small)",
            "SELECT count(*) FROM small x JOIN items i ON i.id BETWEEN x.k AND x.k + 5",
            "SELECT count(*) FROM small x JOIN items i ON i.a = x.id OR i.c = x.k WHERE x.id < 100",
            "SELECT count(*) FROM small x JOIN parts p ON p.id = x.k",
            "SELECT count(*) FROM small x JOIN orders o ON o.item = x.k JOIN items i ON i.id = o.item",
        ],
    ),
    (
        "Memoize",
        &[
            "SELECT count(i.s) FROM orders o JOIN items i ON i.id = o.amount WHERE o.day < '2024-02-01'",
            "SELECT count(x.label) FROM orders o JOIN small x ON x.id = o.amount % 1000 WHERE o.day < '2024-02-01'",
            "SELECT count(*) FROM items i JOIN small x ON x.id = i.kind WHERE i.a < 50",
            "SELECT sum(l.c) FROM orders o CROSS JOIN LATERAL (SELECT max(c) AS c FROM items i WHERE i.a = \
             o.amount % 100) l WHERE o.day = '2024-02-01'",
        ],
    ),
    (
        "joins of whole tables",
        &[
            "SELECT count(*) FROM orders o JOIN items i ON i.id = o.item",
            "SELECT i.kind, sum(o.amount) FROM orders o JOIN items i ON i.id = o.item GROUP BY i.kind ORDER BY 1",
            "SELECT o.state, count(DISTINCT i.a) FROM orders o JOIN items i ON i.id = o.item GROUP BY o.state \
             ORDER BY 1",
            "SELECT count(*) FROM items x JOIN items y ON x.id = y.id",
            "SELECT count(*) FROM orders o LEFT JOIN small s ON s.id = o.amount % 1000",
            "SELECT i.id, o.id FROM items i JOIN orders o ON o.item = i.id ORDER BY i.id, o.id LIMIT 20",
            "SELECT count(*) FROM orders o WHERE o.item NOT IN (SELECT k FROM small)",
        ],
    ),
    (
        "whole tables",
        &[
            "SELECT count(*) FROM items",
            "SELECT sum(a), avg(b) FROM items WHERE s LIKE '%x%'",
            "SELECT kind, count(*), sum(c) FROM items GROUP BY kind ORDER BY kind",
            "SELECT a, count(*) FROM items GROUP BY a ORDER BY 2 DESC, 1 LIMIT 10",
            "SELECT count(*) FROM items WHERE c % 10 = 3",
            "SELECT count(DISTINCT a) FROM items",
            "SELECT id, row_number() OVER (PARTITION BY kind ORDER BY id) FROM items WHERE a = 7 ORDER BY id",
            "SELECT kind, id, lag(id) OVER (PARTITION BY kind ORDER BY id) FROM items ORDER BY kind, id LIMIT 10",
            "SELECT count(s), max(t) FROM items WHERE b < 500",
            "SELECT u, count(*) FROM items GROUP BY u ORDER BY u LIMIT 10",
        ],
    ),
    (
        "large parts by index",
        &[
            "SELECT count(s) FROM items WHERE c < 2000",
            "SELECT count(s) FROM items WHERE c < 20000",
            "SELECT count(s) FROM items WHERE c < 60000",
            "SELECT count(s), sum(length(s)) FROM items WHERE g < 500",
            "SELECT sum(length(s)) FROM items WHERE id > {m}",
            "SELECT count(s) FROM items WHERE a < 100",
            "SELECT max(s) FROM items WHERE u < 'key-10000'",
        ],
    ),
    (
        "filter beside the index",
        &[
            "SELECT id FROM items WHERE a = 7 AND s LIKE 's%' ORDER BY id",
            "SELECT count(*) FROM items WHERE a < 100 AND t LIKE '%9'",
            "SELECT id FROM items WHERE b = 7 AND a % 2 = 0 ORDER BY id LIMIT 5",
            "SELECT id FROM items WHERE t LIKE '%99' ORDER BY id LIMIT 5",
        ],
    ),
    (
        "partitions",
        &[
            "SELECT count(*) FROM parts WHERE id = {n} / 10",
            "SELECT region, id FROM parts ORDER BY region, id LIMIT 10",
            "SELECT id, v FROM parts ORDER BY id LIMIT 10",
            "SELECT id, v FROM parts ORDER BY id DESC LIMIT 10",
            "SELECT region, sum(v) FROM parts GROUP BY region ORDER BY region",
            "SELECT count(*) FROM parts WHERE region = 7 AND id > {n} / 8",
        ],
    ),
    (
        "row locks",
        &[
            "SELECT id FROM items WHERE a = 7 OR c = 99 ORDER BY id FOR UPDATE",
            "SELECT kind, id FROM items WHERE (kind, id) > (3, {m}) ORDER BY kind, id LIMIT 5 FOR SHARE",
        ],
    ),
    (
        "upper nodes",
        &[
            "SELECT a FROM items WHERE a < 3 UNION SELECT b FROM items WHERE b < 3",
            "SELECT id FROM items WHERE a = 7 EXCEPT SELECT id FROM items WHERE b < 500",
            "SELECT * FROM (SELECT id, a FROM items WHERE kind = 3) q WHERE a = 7 ORDER BY id",
            "WITH q AS MATERIALIZED (SELECT a, count(*) AS n FROM items GROUP BY a) SELECT * FROM q WHERE n > \
             100 ORDER BY a",
            "SELECT (SELECT count(*) FROM items WHERE a = 7), (SELECT count(*) FROM items WHERE b = 7)",
        ],
    ),
    (
        "estimates that go wrong",
        &[
            "SELECT id, s FROM items WHERE a = 7 ORDER BY id LIMIT 1",
            "SELECT id FROM items WHERE a = 7 AND b = 7 ORDER BY id LIMIT 1",
            "SELECT id FROM items WHERE g = 100 AND c < 1000 ORDER BY id LIMIT 1",
            "SELECT o.id FROM orders o JOIN items i ON i.id = o.item WHERE i.a = 7 AND i.kind = 3 ORDER BY \
             o.id LIMIT 5",
            "SELECT id FROM items WHERE u = 'key-00017' ORDER BY d LIMIT 1",
        ],
    ),
    (
        "parameters known late",
        &[
            "SELECT count(*) FROM items WHERE id < (SELECT max(id) / 100 FROM small)",
            "SELECT count(*) FROM items WHERE a = (SELECT min(id) FROM small)",
            "SELECT count(*) FROM items WHERE d < now() AND a = 7",
            "SELECT id FROM items WHERE c = ANY (ARRAY(SELECT id FROM small WHERE id < 50)) ORDER BY id",
        ],
    ),
    (
        "all of a table in order",
        &[
            "SELECT count(*) FROM (SELECT a, b FROM items ORDER BY a, b OFFSET 0) q",
            "SELECT count(*) FROM (SELECT c FROM items ORDER BY c OFFSET 0) q",
            "SELECT count(*) FROM (SELECT id, t FROM items ORDER BY t, id OFFSET 0) q",
            "SELECT a, b, count(*) FROM items GROUP BY a, b ORDER BY a, b LIMIT 10",
            "SELECT count(*) FROM (SELECT a, max(c) FROM items GROUP BY a) q",
        ],
    ),
    (
        "written out keyset",
        &[
            "SELECT kind, id FROM items WHERE kind > 3 OR (kind = 3 AND id > {m}) ORDER BY kind, id LIMIT 20",
            "SELECT a, b FROM items WHERE a >= 500 AND (a > 500 OR b > 500) ORDER BY a, b LIMIT 20",
        ],
    ),
];

/// The queries over tables of so many rows, those of forms in whose names this is.
pub fn queries(rows: u64, only: &str) -> Vec<Query> {
    let of_form = |(form, texts): &(&str, &[&str])| {
        let form = (*form).to_owned();
        let written = |text: &&str| Query {
            form: form.clone(),
            text: text
                .replace("{m}", &(rows / 2).to_string())
                .replace("{n}", &rows.to_string()),
            is_ordered: text.contains("ORDER BY") && !text.contains("OVER"),
            may_fail: false,
        };
        texts.iter().map(written).collect::<Vec<_>>()
    };
    let mut all: Vec<Query> = FORMS.iter().flat_map(of_form).collect();
    all.retain(|query| query.form.contains(only));
    all
}
