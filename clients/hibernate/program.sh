# Hibernate: its schema tool makes, updates and validates the tables of a model, which is then used.

setup() { java_program; }

run() {
  new_database hibernate
  run_java hibernate
}
