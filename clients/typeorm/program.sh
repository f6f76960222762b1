# TypeORM: entities synchronized twice, migrations, and the repository's use.
least_full=17

setup() { node_program; }

run() { run_node typeorm; }
