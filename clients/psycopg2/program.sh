# psycopg 2's own test suite, from its source distribution.
least_full=745
version=2.9.13

setup() {
  venv
  sdist psycopg2 "$version"
}

run() {
  new_database psycopg2
  psql -q -d psycopg2 -c 'CREATE EXTENSION hstore'
  work_on_copy "$CACHE/psycopg2-$version"
  PSYCOPG2_TESTDB=psycopg2 "$CACHE/venv/bin/pytest" -q -p no:cacheprovider --junitxml="$OUT/cases.xml" tests
}
