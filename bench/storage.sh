#!/usr/bin/env bash
# storage.sh [ROWS]: what a table's storage costs, MOT beside heap in turns, medians of three
# rounds: UNLOGGED tables (UPDATE, INSERT, COPY), TEMP tables (1,000 times create, ten rows, join,
# drop), COPY into a new table and SET ACCESS METHOD of ROWS rows, with what that takes of the
# session's own memory. Needs a running server (PGHOST, PGPORT) with a release build and nothing
# else to do, in a database that it may fill: it makes one.
set -euo pipefail
export LC_ALL=C.UTF-8
rows=${1:-1000000}
rounds=3
database=mot_storage
psql=(psql -X -q -At -v ON_ERROR_STOP=1 -d "$database")
work=$(mktemp -d)
trap 'rm -rf "$work"; psql -X -q -d postgres -c "DROP DATABASE IF EXISTS $database" || true' EXIT
psql -X -q -d postgres -c "DROP DATABASE IF EXISTS $database" -c "CREATE DATABASE $database"
"${psql[@]}" -c "CREATE EXTENSION mot; CREATE EXTENSION IF NOT EXISTS plpgsql"
chmod 755 "$work"
"${psql[@]}" -c "COPY (SELECT i, i % 1000, repeat('v', 100) || i FROM generate_series(1, $rows) i) TO STDOUT" >"$work/rows"

declare -A figures
note() { figures[$1]+="$2 "; }
median() { printf '%s\n' $1 | sort -g | awk '{a[NR]=$1} END {print a[int((NR + 1) / 2)]}'; }
seconds_of() { local begin=$EPOCHREALTIME; "$@" >/dev/null; awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN {print b - a}'; }

for method in heap mot; do
  "${psql[@]}" -c "CREATE UNLOGGED TABLE u_$method (id int PRIMARY KEY, n int, v text) USING $method" \
    -c "INSERT INTO u_$method SELECT i, 0, repeat('v', 100) FROM generate_series(1, 100000) i" \
    -c "CREATE UNLOGGED TABLE i_$method (id bigserial PRIMARY KEY, n int, v text) USING $method" -c "VACUUM ANALYZE u_$method"
  echo "\\set id random(1, 100000)
UPDATE u_$method SET n = n + 1 WHERE id = :id;" >"$work/update_$method"
  echo "INSERT INTO i_$method (n, v) VALUES (1, 'some value');" >"$work/insert_$method"
  cat >"$work/temp_$method" <<SQL
DO \$\$ BEGIN
  FOR i IN 1..1000 LOOP
    CREATE TEMP TABLE t (id int PRIMARY KEY, v text) USING $method;
    INSERT INTO t SELECT j, 'v' FROM generate_series(1, 10) j;
    PERFORM count(*) FROM t a JOIN t b USING (id);
    DROP TABLE t;
  END LOOP;
END \$\$;
SQL
done

for _ in $(seq $rounds); do
  for method in heap mot; do
    for kind in update insert; do
      per_second=$(pgbench -n -M prepared -c 8 -j 2 -T 5 -f "$work/${kind}_$method" "$database" | awk '/^tps/ {print $3}')
      note "$kind, unlogged (per second)/$method" "$per_second"
    done
    "${psql[@]}" -c "DROP TABLE IF EXISTS c" -c "CREATE UNLOGGED TABLE c (id int PRIMARY KEY, n int, v text) USING $method"
    note "COPY, unlogged (s)/$method" "$(seconds_of "${psql[@]}" -c "\\copy c FROM '$work/rows'")"
    note "1,000 temporary tables (s)/$method" "$(seconds_of "${psql[@]}" -f "$work/temp_$method")"
    "${psql[@]}" -c "DROP TABLE c"
    # What the session has of its own while it loads, before the commit.
    cat >"$work/load" <<SQL
BEGIN;
CREATE TABLE c (id int PRIMARY KEY, n int, v text) USING $method;
\\copy c FROM '$work/rows'
SELECT pg_backend_pid() AS pid \\gset
\\setenv BACKEND :pid
\\! awk '/RssAnon/ {print \$2}' /proc/\$BACKEND/status > $work/memory
COMMIT;
SQL
    note "COPY into a new table (s)/$method" "$(seconds_of "${psql[@]}" -f "$work/load")"
    note "its session's own memory (kB)/$method" "$(cat "$work/memory")"
    other=$([ "$method" = heap ] && echo mot || echo heap)
    "${psql[@]}" -c "DROP TABLE c" -c "CREATE TABLE c (id int PRIMARY KEY, n int, v text) USING $other" -c "\\copy c FROM '$work/rows'"
    note "SET ACCESS METHOD from the other (s)/$method" "$(seconds_of "${psql[@]}" -c "ALTER TABLE c SET ACCESS METHOD $method")"
    "${psql[@]}" -c "DROP TABLE c"
  done
done
printf '%-42s %12s %12s %12s\n' "median of $rounds, $rows rows" heap MOT 'MOT / heap'
for name in "update, unlogged (per second)" "insert, unlogged (per second)" "COPY, unlogged (s)" "1,000 temporary tables (s)" "COPY into a new table (s)" \
  "its session's own memory (kB)" "SET ACCESS METHOD from the other (s)"; do
  heap=$(median "${figures[$name/heap]}") mot=$(median "${figures[$name/mot]}")
  awk -v n="$name" -v h="$heap" -v m="$mot" 'BEGIN {printf "%-42s %12.2f %12.2f %12.2f\n", n, h, m, m / h}'
done
