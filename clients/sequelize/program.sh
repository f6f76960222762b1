# Sequelize: models made, altered twice and read back, migrations by Umzug, and their use.
least_full=13

setup() { node_program; }

run() { run_node sequelize; }
