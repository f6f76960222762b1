#!/usr/bin/env bash
# A work queue under FOR UPDATE SKIP LOCKED, on a heap table and on a memory-optimized one: tasks
# done a second, producers and consumers at work together. Consumers take the oldest task, work on
# nothing, and delete it; a producer puts as many in as are taken. CONSUMERS (32), SECONDS_EACH
# (20), ROUNDS (3; the kinds alternate). The server is the caller's: PGHOST, PGPORT, PGUSER.
set -euo pipefail
: "${PGHOST:?set PGHOST and PGPORT to a running server}" "${PGPORT:?}"
export PGUSER=${PGUSER:-postgres} PGDATABASE=mot_queue_bench
CONSUMERS=${CONSUMERS:-32} SECONDS_EACH=${SECONDS_EACH:-20} ROUNDS=${ROUNDS:-3}
psql=(psql -XqAt -v ON_ERROR_STOP=1)
scripts=$(mktemp -d)
trap 'rm -rf "$scripts"' EXIT

"${psql[@]}" -d postgres -c 'SET client_min_messages = warning' -c "DROP DATABASE IF EXISTS $PGDATABASE" \
  -c "CREATE DATABASE $PGDATABASE TEMPLATE template0"
"${psql[@]}" <<SQL
CREATE EXTENSION mot;
CREATE SEQUENCE ids CACHE 100;
CREATE TABLE tasks_heap (id bigint PRIMARY KEY, payload text);
CREATE FOREIGN TABLE tasks_mot (id bigint PRIMARY KEY, payload text) SERVER mot;
SQL

for kind in heap mot; do
  # The task done is replaced by a new one, in the same transaction: the queue keeps its length.
  cat >"$scripts/$kind.sql" <<SQL
WITH task AS (DELETE FROM tasks_$kind WHERE id = (SELECT id FROM tasks_$kind ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING payload)
INSERT INTO tasks_$kind SELECT nextval('ids'), payload FROM task;
SQL
done

for round in $(seq "$ROUNDS"); do
  for kind in heap mot; do
    "${psql[@]}" -c "TRUNCATE tasks_$kind" -c "INSERT INTO tasks_$kind SELECT nextval('ids'), repeat('x', 100) FROM generate_series(1, 10000)"
    rate=$(pgbench -n -M prepared -c "$CONSUMERS" -j 2 -T "$SECONDS_EACH" -f "$scripts/$kind.sql" | sed -n 's/^tps = \([0-9.]*\).*/\1/p')
    left=$("${psql[@]}" -c "SELECT count(*) FROM tasks_$kind")
    echo "$kind round $round: $rate tasks/s, $left tasks in the queue at the end"
  done
done
