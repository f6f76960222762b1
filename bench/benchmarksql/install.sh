#!/bin/sh
# Puts this kit's scripts into a built BenchmarkSQL: install.sh RUN_DIR {5|6} {scripts|unchanged}
#
# "scripts": tables by CREATE FOREIGN TABLE. "unchanged": BenchmarkSQL's own scripts, for a database
# with default_table_access_method = mot. Either way foreign keys are left out. Files go to RUN_DIR/sql.postgres,
# where BenchmarkSQL looks before sql.common.
set -eu
[ $# -eq 3 ] || { sed -n 2p "$0" >&2; exit 2; }
kit=$(cd "$(dirname "$0")" && pwd)
run=$1 version=$2 way=$3
[ -d "$run/sql.postgres" ] || { echo "$run: not BenchmarkSQL's run directory" >&2; exit 1; }
cp "$kit/foreignKeys.sql" "$run/sql.postgres/"
cp "$kit/mot$version.properties" "$run/"
case $way in
scripts) cp "$kit/sql.$version"/*.sql "$run/sql.postgres/" ;;
unchanged) ;;
*) echo "$way: scripts or unchanged" >&2; exit 2 ;;
esac
