# Shared by the scripts of this directory: where things are, and who runs the servers. The scratch
# directory must be reachable by a non-root user (a clone under /root is not), and is kept between
# runs so that the second one is quick.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
PG=${PG:-15}
MOT_SCRATCH=${MOT_SCRATCH:-/var/tmp/mot-$(printf %s "$top" | cksum | cut -d' ' -f1)}
# With CASSERT=1 that PostgreSQL as its developers test it, with its own assertions, beside the
# other.
PG_NAME=$PG${CASSERT:+-cassert}
PG_PREFIX=$MOT_SCRATCH/pg$PG_NAME
PG_BIN=$PG_PREFIX/usr/lib/postgresql/$PG/bin
PGXS_TEST=$PG_PREFIX/usr/lib/postgresql/$PG/lib/pgxs/src/test
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$top/target}
# The bindings follow the server's headers: in one directory each build would undo the other.
if [ -n "${CASSERT:-}" ] && [ "${CARGO_TARGET_DIR##*/}" != cassert ]; then CARGO_TARGET_DIR+=/cassert; fi
export PATH=$HOME/.cargo/bin:$PATH
export LC_ALL=C.UTF-8
# What cargo-pgrx knows of a PostgreSQL that only these scripts know stays with it, and its own psql
# speaks with it: the installed one is an older version's.
if [ "$PG_NAME" != 15 ]; then
  export PGRX_HOME=$MOT_SCRATCH/pgrx$PG_NAME
  PATH=$PG_BIN:$PATH
fi
# A server that inherits it puts Rust backtraces into the details of errors, and the expected output
# differs.
unset RUST_BACKTRACE

# With the seconds since the script began, so that a log shows where the time goes.
say() { printf '\n== %s (at %s s)\n' "$*" "$SECONDS"; }

# PostgreSQL refuses to run as root: everything of a server runs as this user.
if [ "$(id -u)" = 0 ]; then
  server_user=postgres
  as_server() { (cd / && runuser -u "$server_user" -- "$@"); }
else
  server_user=$(id -un)
  as_server() { "$@"; }
fi

free_port() {
  local port
  for port in $(shuf -i 20000-29999 -n 50); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
  echo "no free port found" >&2
  return 1
}
