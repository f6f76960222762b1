# Liquibase: a changelog with foreign keys, enums and all index forms; updates, rollbacks,
# differences, and all of it twice.
least_full=24

setup() { java_program; }

run() {
  new_database liquibase
  new_database liquibase_other
  export OTHER_URL="jdbc:postgresql://127.0.0.1:$PGPORT/liquibase_other"
  run_java liquibase
}
