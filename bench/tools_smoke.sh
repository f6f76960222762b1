#!/usr/bin/env bash
# Tools that know nothing of memory-optimized tables, run unchanged where these are the default:
# pgbench and sysbench prepare, run and clean up; then mot.check on every table. The server is the
# caller's: PGHOST (a socket directory), PGPORT, PGUSER.
set -euo pipefail
: "${PGHOST:?set PGHOST and PGPORT to a running server}" "${PGPORT:?}"
export PGUSER=${PGUSER:-postgres}
database=mot_tools
psql=(psql -XqAt -v ON_ERROR_STOP=1)
SECONDS_EACH=${SECONDS_EACH:-2}

"${psql[@]}" -d postgres <<SQL
SET client_min_messages = warning;
DROP DATABASE IF EXISTS $database;
CREATE DATABASE $database TEMPLATE template0;
\c $database
CREATE EXTENSION mot;
ALTER DATABASE $database SET default_table_access_method = mot;
SQL
export PGDATABASE=$database

check() { # every table is memory-optimized, and sound
  "${psql[@]}" <<SQL
DO \$\$
DECLARE each record;
BEGIN
  FOR each IN SELECT oid::regclass AS name, relam = (SELECT oid FROM pg_am WHERE amname = 'mot') AS is_ours FROM pg_class
               WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' LOOP
    IF NOT each.is_ours THEN RAISE EXCEPTION 'table % is not memory-optimized', each.name; END IF;
    PERFORM mot.check(each.name);
  END LOOP;
  IF NOT FOUND THEN RAISE EXCEPTION 'no tables'; END IF;
END \$\$;
SQL
}

echo "-- pgbench -i, with each kind of run"
pgbench -i -s 1 -q 2>&1 | tail -1
check
[ "$("${psql[@]}" -c 'SELECT count(*) FROM pgbench_accounts')" = 100000 ]
for mode in simple extended prepared; do
  pgbench -n -M $mode -c 2 -j 1 -T "$SECONDS_EACH" 2>&1 | grep -E 'number of (transactions|failed)|tps'
done
[ "$("${psql[@]}" -c 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)
                        AND (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(bbalance) FROM pgbench_branches)')" = t ]
check
pgbench -i -I dtGvp -s 1 -q 2>&1 | tail -1
check
pgbench -i -I d 2>&1 | tail -1
echo "-- pgbench -i with foreign keys, partitions of both kinds"
for options in --foreign-keys '--partitions=3 --foreign-keys' '--partitions=2 --partition-method=hash -F 50' '-I dtGvpf' '-I dtpfgv'; do
  pgbench -i -s 1 -q $options 2>&1 | tail -1
  check
  pgbench -n -M prepared -c 2 -j 1 -t 200 2>&1 | grep -E 'number of (transactions|failed)'
  [ "$("${psql[@]}" -c 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)')" = t ]
  check
done
pgbench -i -I d 2>&1 | tail -1
[ "$("${psql[@]}" -c "SELECT count(*) FROM pg_class WHERE relname LIKE 'pgbench%'")" = 0 ]

if ! command -v sysbench >/dev/null; then
  echo "sysbench is not installed" >&2
  exit 1
fi
options=(--db-driver=pgsql --pgsql-host="$PGHOST" --pgsql-port="$PGPORT" --pgsql-user="$PGUSER" --pgsql-db="$database"
         --pgsql-password= --tables=2 --table-size=1000 --threads=2 --time="$SECONDS_EACH" --report-interval=0)
for test in oltp_read_write oltp_point_select oltp_write_only; do
  echo "-- sysbench $test"
  sysbench "$test" "${options[@]}" prepare | tail -1
  check
  sysbench "$test" "${options[@]}" run | grep -E 'transactions:|ignored errors:'
  check
  sysbench "$test" "${options[@]}" cleanup | tail -1
done
[ "$("${psql[@]}" -c "SELECT count(*) FROM pg_class WHERE relname LIKE 'sbtest%'")" = 0 ]

echo "-- what BenchmarkSQL's scripts do"
"${psql[@]}" <<'SQL'
create table bmsql_warehouse (w_id integer not null, w_ytd decimal(12,2), w_name varchar(10));
create sequence bmsql_hist_id_seq;
create table bmsql_history (hist_id integer, h_data varchar(24));
insert into bmsql_warehouse select i, 0, 'w' || i from generate_series(1, 10) i;
insert into bmsql_history select i, 'h' || i from generate_series(1, 10) i;
alter table bmsql_warehouse add constraint bmsql_warehouse_pkey primary key (w_id);
create unique index bmsql_warehouse_idx1 on bmsql_warehouse (w_name, w_id);
select setval('bmsql_hist_id_seq', (select max(hist_id) from bmsql_history), true);
alter table bmsql_history alter column hist_id set default nextval('bmsql_hist_id_seq');
alter table bmsql_history add primary key (hist_id);
insert into bmsql_history (h_data) values ('next');
vacuum analyze;
SQL
check
"${psql[@]}" -c 'drop table bmsql_warehouse; drop table bmsql_history; drop sequence bmsql_hist_id_seq;'
echo "-- pg_dump and restore, definitions and rows"
"${psql[@]}" <<'SQL'
create table dumped (a int primary key, b text collate "C" unique, c serial, d numeric(8,2) default 1.5, check (a > 0));
create index on dumped (c desc, b nulls first);
create unique index dumped_nulls on dumped (d, c) nulls not distinct;
comment on table dumped is 'kept';
insert into dumped (a, b) select i, 'b' || i from generate_series(1, 1000) i;
SQL
dump() { pg_dump --include-foreign-data=mot "$1" | grep -vE '^(\\(un)?restrict |--|SET |SELECT pg_catalog.set_config|$)'; }
"${psql[@]}" -d postgres -c "DROP DATABASE IF EXISTS ${database}_restored" -c "CREATE DATABASE ${database}_restored TEMPLATE template0" 2>/dev/null
pg_dump --include-foreign-data=mot "$database" | "${psql[@]}" -d "${database}_restored" >/dev/null
diff <(dump "$database") <(dump "${database}_restored")
[ "$("${psql[@]}" -d "${database}_restored" -c "SELECT rows FROM mot.check('dumped')")" = 1000 ]
"${psql[@]}" -d postgres -c "DROP DATABASE ${database}_restored"
echo "tools: all good"
