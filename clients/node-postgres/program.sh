# node-postgres: statements of all kinds, cursors, streams, COPY, notifications, types and errors.
least_full=13

setup() { node_program; }

run() { run_node node_postgres; }
