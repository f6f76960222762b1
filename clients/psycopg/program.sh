# psycopg 3: pipelines, COPY, prepared statements, binary rows, server-side cursors, pools,
# two-phase commit. Its own test suite is not in its source distribution.
least_full=17

setup() { venv; }

run() {
  new_database psycopg
  PGDATABASE=psycopg timeout 600 "$CACHE/venv/bin/python" "$home/main.py"
}
