# Knex: migrations up, down and again, and its query builder.

setup() { node_program; }

run() { run_node knex; }
