# Drizzle: drizzle-kit's push twice, its introspection and migrations, and queries.

setup() { node_program; }

run() { run_node drizzle; }
