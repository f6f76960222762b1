# asyncpg's own test suite, from its source distribution.
least_full=305
version=0.32.0

setup() {
  venv
  sdist asyncpg "$version"
}

run() {
  new_database asyncpg
  work_on_copy "$CACHE/asyncpg-$version"
  # The tests are to find the installed library, not its sources.
  rm -r asyncpg
  PGDATABASE=asyncpg "$CACHE/venv/bin/pytest" -q -p no:cacheprovider --junitxml="$OUT/cases.xml" tests \
    --deselect tests/test__sourcecode.py
}
