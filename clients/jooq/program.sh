# jOOQ: its reader of the catalogs, DDL and statements by its language.
least_full=13

setup() { java_program; }

run() {
  new_database jooq
  run_java jooq
}
