# PostgreSQL's own tools on the tables of Flyway's migrations: dumps in all formats, restored,
# vacuumdb, reindexdb, clusterdb, pg_amcheck.
least_full=21

setup() { :; }

fill() {
  local file
  for file in "$top"/clients/flyway/migrations/V*.sql; do sql -d tools -f "$file" >/dev/null; done
  sql -d tools -c 'CREATE MATERIALIZED VIEW states AS SELECT state, count(*) FROM account GROUP BY state' -c 'CREATE UNIQUE INDEX ON states (state)'
  definitions tools
  contents tools
}

# The copy's definitions and rows are the original's; a dump of it is the same text, apart from a
# random word.
same_copy() {
  diff <(definitions tools) <(definitions tools_copy)
  diff <(contents tools) <(contents tools_copy)
  diff <(pg_dump tools | grep -v '^\\\(un\)\?restrict') <(pg_dump tools_copy | grep -v '^\\\(un\)\?restrict')
  sound tools_copy
}

copy_by() { # FORMAT JOBS
  local file=$OUT/dump.$1
  rm -rf "$file"
  new_database tools_copy template0
  pg_dump -F "$1" -j "$2" -f "$file" tools
  if [ "$1" = p ]; then sql -d tools_copy -f "$file" >/dev/null; else pg_restore -j "$3" -e -d tools_copy "$file"; fi
  same_copy
}

parts() {
  local section file=$OUT/dump.parts
  new_database tools_copy template0
  pg_dump -F c -f "$file" tools
  for section in pre-data data post-data; do pg_restore -e --section=$section -d tools_copy "$file"; done
  same_copy
  new_database tools_copy template0
  pg_dump --inserts --rows-per-insert=20 --quote-all-identifiers -f "$file" tools
  sql -d tools_copy -f "$file" >/dev/null
  same_copy
  pg_dump -F c -f "$file" -t account -t 'event*' tools
  pg_restore --list "$file" | grep -vc '^;'
  new_database tools_copy template0
  pg_dump --clean --if-exists --create tools | sed 's/\<tools\>/tools_copy/g' | psql -XqAt -d postgres >/dev/null
  diff <(contents tools) <(contents tools_copy)
}

all_databases() {
  pg_dumpall --globals-only | grep -c 'CREATE ROLE'
  pg_dumpall --schema-only | grep -c "^ALTER DATABASE tools SET default_table_access_method TO '$SIDE'"
}

# A tool's run leaves tables that are sound and hold the same rows.
tool() { # COMMAND...
  "$@" >&2
  contents tools
  sound tools
}

cluster_it() {
  sql -d tools -c 'CLUSTER account USING account_pkey' -c 'CLUSTER line USING line_pkey'
  clusterdb tools >&2
  clusterdb -t account tools >&2
  contents tools
  sound tools
}

run() {
  export home top
  export -f new_database same_copy
  new_database tools
  a_case "tables" fill
  a_case "pg_dump plain" copy_by p 1 1
  a_case "pg_dump custom, pg_restore" copy_by c 1 1
  a_case "pg_dump custom, pg_restore -j" copy_by c 1 3
  a_case "pg_dump tar" copy_by t 1 1
  a_case "pg_dump directory -j, pg_restore -j" copy_by d 3 3
  a_case "pg_dump in parts, by INSERT, by name, with --create" parts
  a_case "pg_dumpall" all_databases
  a_case "vacuumdb" tool vacuumdb tools
  a_case "vacuumdb --full --analyze" tool vacuumdb --full --analyze tools
  a_case "vacuumdb --freeze -j" tool vacuumdb --freeze -j 3 tools
  a_case "vacuumdb --analyze-in-stages" tool vacuumdb --analyze-in-stages tools
  a_case "vacuumdb -t with columns" tool vacuumdb --analyze -t 'account(email)' tools
  a_case "reindexdb" tool reindexdb tools
  a_case "reindexdb --concurrently" tool reindexdb --concurrently tools
  a_case "reindexdb --concurrently -t" tool reindexdb --concurrently -t line tools
  a_case "reindexdb -i" tool reindexdb -i account_email tools
  a_case "reindexdb --concurrently -j" tool reindexdb --concurrently -j 2 -S public tools
  a_case "reindexdb --system" tool reindexdb --system tools
  a_case "clusterdb" cluster_it
  a_case "pg_amcheck" tool pg_amcheck --install-missing tools
}
