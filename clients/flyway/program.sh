# Flyway: migrations with foreign keys, enums and all index forms, step by step, at once, cleaned,
# failing and repaired.
least_full=29
least_short=29

setup() { java_program; }

run() {
  new_database flyway
  run_java flyway
}
