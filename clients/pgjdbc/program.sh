# pgJDBC: metadata, prepared statements, batches, cursors, generated keys, updatable result sets,
# savepoints, COPY, two-phase commit. Its own test suite is in no registry.
least_full=66

setup() { java_program; }

run() {
  new_database pgjdbc
  run_java pgjdbc
}
