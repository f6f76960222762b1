#!/usr/bin/env bash
# index_forms.sh [ROWS]: statements by indexes on expressions, partial ones, keys of enums and
# arrays, and texts in the order of ICU's and the C library's (en_US.UTF-8) collations, MOT beside
# heap in turns, medians of three rounds. Needs a running server (PGHOST, PGPORT) with a release
# build and nothing else to do; it makes a database. ONLY="icu_range libc_range": these statements.
set -euo pipefail
export LC_ALL=C.UTF-8
rows=${1:-200000}
rounds=3
database=mot_index_forms
psql=(psql -X -q -At -v ON_ERROR_STOP=1 -d "$database")
work=$(mktemp -d)
trap 'rm -rf "$work"; psql -X -q -d postgres -c "DROP DATABASE IF EXISTS $database" || true' EXIT
psql -X -q -d postgres -c "SET client_min_messages = warning" -c "DROP DATABASE IF EXISTS $database" -c "CREATE DATABASE $database"
"${psql[@]}" -c "CREATE EXTENSION mot" -c "CREATE TYPE state AS ENUM ('new', 'paid', 'sent', 'back')" \
  -c "CREATE COLLATION icu (provider = icu, locale = 'en')" -c "CREATE COLLATION libc (provider = libc, locale = 'en_US.UTF-8')"
chmod 755 "$work"

declare -A figures
note() { figures[$1]+="$2 "; }
median() { printf '%s\n' $1 | sort -g | awk '{a[NR]=$1} END {print a[int((NR + 1) / 2)]}'; }

# Each index alone on its table, beside the primary key.
for method in heap mot; do
  for kind in expression partial enum array icu libc; do
    table=${kind}_$method
    "${psql[@]}" -c "CREATE TABLE $table (id bigserial PRIMARY KEY, mail text, n int, gone bool DEFAULT false, s state DEFAULT 'new', a int[], v text DEFAULT 'some value') USING $method" \
      -c "INSERT INTO $table (mail, n, gone, s, a) SELECT 'Name' || i || '@Example.org', i, i % 2 = 0, (enum_range(NULL::state))[1 + i % 4], ARRAY[i, i % 7] FROM generate_series(1, $rows) i"
  done
  "${psql[@]}" -c "CREATE UNIQUE INDEX ON expression_$method (lower(mail))" -c "CREATE INDEX ON partial_$method (n) WHERE NOT gone" \
    -c "CREATE INDEX ON enum_$method (s, n)" -c "CREATE INDEX ON array_$method (a)"
  for collation in icu libc; do
    table=${collation}_$method
    "${psql[@]}" -c "ALTER TABLE $table ALTER mail TYPE text COLLATE $collation" -c "CREATE INDEX ON $table (mail)"
    echo "\\set i random(1, $rows)
SELECT v FROM $table WHERE mail = 'Name' || :i || '@Example.org';" >"$work/${collation}_look_up_$method"
    echo "\\set i random(1, $rows)
SELECT id FROM $table WHERE mail > 'Name' || :i ORDER BY mail LIMIT 100;" >"$work/${collation}_range_$method"
    echo "\\set i random(1, 2000000000)
INSERT INTO $table (mail, n) VALUES ('Name' || :i || '@' || :client_id, :i);" >"$work/${collation}_insert_$method"
  done
  for kind in expression partial enum array icu libc; do "${psql[@]}" -c "VACUUM ANALYZE ${kind}_$method"; done
  echo "\\set i random(1, $rows)
SELECT v FROM expression_$method WHERE lower(mail) = 'name' || :i || '@example.org';" >"$work/expression_look_up_$method"
  echo "\\set i random(1, $rows / 2) * 2 - 1
SELECT v FROM partial_$method WHERE n = :i AND NOT gone;" >"$work/partial_look_up_$method"
  echo "\\set i random(1, $rows - 200)
SELECT id FROM partial_$method WHERE n BETWEEN :i AND :i + 200 AND NOT gone;" >"$work/partial_range_$method"
  echo "\\set i random(1, $rows / 4 - 1) * 4 + 1
SELECT v FROM enum_$method WHERE s = 'paid' AND n = :i;" >"$work/enum_look_up_$method"
  echo "\\set i random(1, $rows)
SELECT v FROM array_$method WHERE a = ARRAY[:i, :i % 7];" >"$work/array_look_up_$method"
  echo "\\set i random(1, 2000000000)
INSERT INTO expression_$method (mail, n) VALUES ('Name' || :i || '@' || :client_id || :i, :i) ON CONFLICT DO NOTHING;" >"$work/expression_insert_$method"
  echo "\\set i random(1, 2000000000)
INSERT INTO partial_$method (mail, n) VALUES ('Name', :i);" >"$work/partial_insert_$method"
done

statements="expression_look_up partial_look_up partial_range enum_look_up array_look_up expression_insert partial_insert
  icu_look_up icu_range icu_insert libc_look_up libc_range libc_insert"
for _ in $(seq $rounds); do
  for statement in ${ONLY:-$statements}; do
    for method in heap mot; do
      per_second=$(PGOPTIONS='-c synchronous_commit=off' pgbench -n -M prepared -c 8 -j 2 -T 4 -f "$work/${statement}_$method" "$database" | awk '/^tps/ {print $3}')
      note "$statement/$method" "$per_second"
    done
  done
done
printf '%-22s %12s %12s %12s\n' "per second, $rounds rounds" heap MOT 'MOT / heap'
for statement in ${ONLY:-$statements}; do
  heap=$(median "${figures[$statement/heap]}") mot=$(median "${figures[$statement/mot]}")
  awk -v n="$statement" -v h="$heap" -v m="$mot" 'BEGIN {printf "%-22s %12.0f %12.0f %12.2f\n", n, h, m, m / h}'
done
