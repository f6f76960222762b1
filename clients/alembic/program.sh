# Alembic's own tests that run on PostgreSQL, from its source distribution, with psycopg 2.
least_full=645
version=1.20.1

setup() {
  venv
  sdist alembic "$version"
}

run() {
  new_database alembic
  psql -q -d alembic -c 'CREATE SCHEMA test_schema' -c 'CREATE EXTENSION hstore' -c 'CREATE EXTENSION citext'
  work_on_copy "$CACHE/alembic-$version"
  "$CACHE/venv/bin/pytest" -q -p no:logging -p no:cacheprovider --maxfail=100000 --backend-only --junitxml="$OUT/cases.xml" \
    --dburi="postgresql+psycopg2://$PGUSER@/alembic?host=$PGHOST&port=$PGPORT" tests
}
