# BenchmarkSQL: the schema that its build makes, with all foreign keys, and transactions of the same
# tables. The program itself is in no registry; bench/benchmarksql tells how it runs.
least_full=14
least_short=14

setup() { :; }

build() {
  sql -d benchmarksql -f "$home/build.sql"
  sql -d benchmarksql -c 'VACUUM ANALYZE'
  definitions benchmarksql
  contents benchmarksql
  sound benchmarksql
}

transactions() {
  pgbench -n -M "$1" -c 1 -t 100 --random-seed=3 -f "$home/transactions.pgbench" benchmarksql >/dev/null
  contents benchmarksql '_(entry|delivery)_d$|^h_date$'
  sound benchmarksql
}

clients() {
  pgbench -n -M prepared -c 6 -j 2 -t 50 --max-tries=100 -f "$home/transactions.pgbench" benchmarksql | grep -E 'actually processed'
  sql -d benchmarksql -c 'SELECT count(*) FROM bmsql_oorder' -c 'SELECT sum(w_ytd) = (SELECT sum(d_ytd) FROM bmsql_district) FROM bmsql_warehouse'
  sound benchmarksql
}

# What a foreign key refuses.
refused() {
  local statement
  while read -r statement; do sql -d benchmarksql -c "$statement" 2>&1 || true; done <<'SQL'
DELETE FROM bmsql_warehouse WHERE w_id = 1
UPDATE bmsql_customer SET c_id = 1000 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1
INSERT INTO bmsql_stock (s_w_id, s_i_id) VALUES (3, 1)
INSERT INTO bmsql_new_order VALUES (1, 1, 100000)
TRUNCATE bmsql_item
DROP TABLE bmsql_item
ALTER TABLE bmsql_item DROP CONSTRAINT bmsql_item_pkey
SQL
}

destroy() {
  sql -d benchmarksql -c 'DROP TABLE bmsql_config, bmsql_new_order, bmsql_order_line, bmsql_oorder, bmsql_history, bmsql_customer, bmsql_stock, bmsql_item, bmsql_district, bmsql_warehouse' \
    -c 'DROP SEQUENCE bmsql_hist_id_seq'
  definitions benchmarksql
}

run() {
  local time mode
  export home
  new_database benchmarksql
  for time in first second; do
    a_case "$time: build" build
    for mode in simple extended prepared; do a_case "$time: transactions, $mode" transactions $mode; done
    a_case "$time: clients" clients
    a_case "$time: refused" refused
    a_case "$time: destroy" destroy
  done
}
