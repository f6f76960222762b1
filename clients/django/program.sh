# Django's own test suite, from its source distribution, with psycopg 3.
least_full=17300
least_short=250
version=5.2.19

setup() {
  venv
  sdist django "$version"
}

run() {
  local apps label tests=$CACHE/django-$version/tests
  if [ "$FORM" = short ]; then
    apps=(migrations.test_operations migrations.test_executor fixtures_regress)
  else
    # admin_scripts starts django-admin, on SQLite; the others have no tests, or need a library that
    # is not from a registry.
    mapfile -t apps < <(cd "$tests" && ls -d */__init__.py | cut -d/ -f1 | grep -vxE 'admin_scripts|templates|gis_tests')
  fi
  export PYTHONPATH=$home CASES=$OUT/cases.jsonl
  # A part of the apps has databases of its own: what one leaves or breaks ends there.
  while [ ${#apps[@]} -gt 0 ]; do
    new_database django_default
    new_database django_other
    new_database test_django_default
    new_database test_django_other
    (cd "$tests" && "$CACHE/venv/bin/python" runtests.py --settings=settings --keepdb --noinput --parallel=1 "${apps[@]:0:12}") || true
    apps=("${apps[@]:12}")
  done
}
