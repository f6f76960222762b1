# Drizzle: drizzle-kit's push twice, its introspection and migrations, and queries.
least_full=9

setup() { node_program; }

run() { run_node drizzle; }
