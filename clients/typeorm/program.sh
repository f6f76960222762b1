# TypeORM: entities synchronized twice, migrations, and the repository's use.

setup() { node_program; }

run() { run_node typeorm; }
