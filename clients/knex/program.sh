# Knex: migrations up, down and again, and its query builder.
least_full=22

setup() { node_program; }

run() { run_node knex; }
