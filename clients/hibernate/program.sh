# Hibernate: its schema tool makes, updates and validates the tables of a model, which is then used.
least_full=23

setup() { java_program; }

run() {
  new_database hibernate
  run_java hibernate
}
