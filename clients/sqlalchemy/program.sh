# SQLAlchemy's own tests that need a database, from its source distribution, with psycopg 3.
least_full=14250
least_short=730
version=2.0.58

setup() {
  venv
  sdist sqlalchemy "$version"
}

run() {
  # What needs a database: the suite of dialects, PostgreSQL's dialect, reflection, and of SQL and
  # the ORM what runs on each backend.
  local tests=(test/dialect/test_suite.py test/dialect/postgresql test/engine test/sql test/orm)
  if [ "$FORM" = short ]; then tests=(test/dialect/test_suite.py -k 'Reflection or HasTable or HasIndex or Introspection'); fi
  new_database sqlalchemy
  psql -q -d sqlalchemy -c 'CREATE SCHEMA test_schema' -c 'CREATE SCHEMA test_schema_2' -c 'CREATE EXTENSION hstore' -c 'CREATE EXTENSION citext'
  work_on_copy "$CACHE/sqlalchemy-$version"
  "$CACHE/venv/bin/pytest" -q -p no:logging -p no:cacheprovider --maxfail=100000 --backend-only --junitxml="$OUT/cases.xml" \
    --dburi="postgresql+psycopg://$PGUSER@/sqlalchemy?host=$PGHOST&port=$PGPORT" "${tests[@]}"
}
