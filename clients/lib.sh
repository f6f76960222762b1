# Functions of the programs' scripts; read by step.sh after .ci/lib.sh. A script has `setup`, which
# fetches what is needed into $CACHE, and `run`, which leaves cases of the side $SIDE in $OUT.
# PGHOST, PGPORT and PGUSER name the server.

# An empty database of this side. A dump that has the extension goes into one of template0.
new_database() { # NAME [TEMPLATE]
  psql -XqAt -v ON_ERROR_STOP=1 -d postgres <<SQL
SET client_min_messages = warning;
DROP DATABASE IF EXISTS "$1" WITH (FORCE);
CREATE DATABASE "$1" TEMPLATE ${2:-template1};
ALTER DATABASE "$1" SET default_table_access_method = $SIDE;
SQL
}

# What a bare Debian lacks; root installs it, as .ci/setup does.
need() { # COMMAND PACKAGE...
  local command=$1
  shift
  if command -v "$command" >/dev/null; then return; fi
  if [ "$(id -u)" != 0 ]; then echo "$program needs $command, and only root can install Debian's: $*" >&2; return 1; fi
  timeout 600 apt-get update -qq
  DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y -qq --no-install-recommends "$@" </dev/null
}

# Does a part of the set-up once for each content of the files that it depends on.
once() { # MARK FILES... -- COMMAND...
  local mark=$CACHE/$1.mark files=() sum
  shift
  while [ "$1" != -- ]; do files+=("$1"); shift; done
  shift
  sum=$(cat "${files[@]}" | cksum)
  if [ "$(cat "$mark" 2>/dev/null)" = "$sum" ]; then return; fi
  rm -f "$mark"
  "$@" </dev/null || { echo "failed: $*" >&2; return 1; }
  echo "$sum" >"$mark"
}

# A virtual environment $CACHE/venv with the packages of requirements.txt, all of them pinned.
venv() {
  need python3 python3
  python3 -c 'import ensurepip' 2>/dev/null || need ensurepip python3-venv
  once venv "$home/requirements.txt" -- make_venv
}
make_venv() {
  rm -rf "$CACHE/venv"
  python3 -m venv "$CACHE/venv"
  timeout 600 "$CACHE/venv/bin/pip" install -q --disable-pip-version-check --prefer-binary -r "$home/requirements.txt"
}

# The source distribution of a package, unpacked into $CACHE/NAME-VERSION.
sdist() { # NAME VERSION
  [ ! -d "$CACHE/$1-$2" ] || return 0
  rm -rf "$CACHE/sdist"
  timeout 600 "$CACHE/venv/bin/pip" -q --disable-pip-version-check download --no-deps --no-binary "$1" -d "$CACHE/sdist" "$1==$2"
  tar -xzf "$CACHE"/sdist/*.tar.gz -C "$CACHE"
}

# Goes to a copy of this side's own: test suites write beside their files.
work_on_copy() { # DIRECTORY
  rm -rf "$OUT/work"
  cp -r "$1" "$OUT/work"
  cd "$OUT/work"
}

# The libraries of pom.xml, with the program's classes.
java_program() {
  need javac default-jdk-headless
  need mvn maven
  once libraries "$home/pom.xml" -- timeout 900 mvn -q -B -f "$home/pom.xml" -Dmaven.repo.local="$CACHE_ROOT/maven" \
    dependency:copy-dependencies -DoutputDirectory="$CACHE/libraries"
  once classes "$top"/clients/java/*.java "$home"/*.java "$home/pom.xml" -- \
    javac -nowarn -d "$CACHE/classes" -cp "$CACHE/libraries/*" "$top"/clients/java/*.java "$home"/*.java
}

# Its Main, with a server reached as Java does.
run_java() { # DATABASE
  export JDBC_URL="jdbc:postgresql://127.0.0.1:$PGPORT/$1" PROGRAM_HOME=$home
  timeout 600 java -XX:+UseSerialGC -Xmx512m -cp "$CACHE/classes:$CACHE/libraries/*:$home" Main
}

# The packages of package.json, as they were on a day, so that what they depend on stays the same.
node_program() {
  need node nodejs
  need npm npm
  once packages "$home/package.json" -- node_packages
}
node_packages() {
  rm -rf "$CACHE/node_modules"
  cp "$home/package.json" "$CACHE/"
  (cd "$CACHE" && timeout 600 npm install --before=2026-11-28 --no-package-lock --no-audit --no-fund --loglevel=error --cache "$CACHE_ROOT/npm")
}

run_node() { # DATABASE
  new_database "$1"
  rm -rf "$OUT/work"
  mkdir -p "$OUT/work"
  find "$home" -maxdepth 1 -type f ! -name package.json -exec cp {} "$OUT/work/" \;
  cp "$top/clients/node/cases.js" "$OUT/work/"
  ln -sfn "$CACHE/node_modules" "$OUT/work/node_modules"
  (cd "$OUT/work" && PGDATABASE=$1 timeout 900 node main.js)
}

# Runs a command or a function of the program as one case.
a_case() { # NAME COMMAND...
  local name=$1
  shift
  export -f "$1" 2>/dev/null || true
  python3 "$top/clients/case.py" "$name" bash -c 'set -euo pipefail; "$@"' _ "$@"
}

sql() { psql -XqAt -v ON_ERROR_STOP=1 "$@"; }
export -f sql

# Rows of each table of `public`, counted and digested; columns whose name matches stay out.
contents() { # DATABASE [COLUMNS]
  sql -d "$1" -v left_out="${2:-^$}" <<'SQL'
SELECT format('SELECT %L, count(*), md5(string_agg(t::text, E''\n'' ORDER BY t::text COLLATE "C")) FROM (SELECT %s FROM %s) t',
    c.relname, string_agg(quote_ident(attname), ', ' ORDER BY attnum), c.oid::regclass)
FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attname !~ :'left_out'
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') GROUP BY c.oid, c.relname ORDER BY c.relname COLLATE "C"
\gexec
SQL
}
export -f contents

# Columns, constraints and indexes of `public`, without the access method's name.
definitions() { # DATABASE
  sql -d "$1" <<'SQL'
SELECT attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') AND attnum > 0 AND NOT attisdropped ORDER BY attrelid::regclass::text COLLATE "C", attnum;
SELECT conrelid::regclass, conname, convalidated, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace ORDER BY conrelid::regclass::text COLLATE "C", conname;
SELECT indexname, replace(indexdef, 'USING mot_index', 'USING btree') FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname COLLATE "C";
SQL
}
export -f definitions

# Every table of the side's access method, and on memory-optimized ones rows and indexes that agree.
sound() { # DATABASE
  [ "$SIDE" = mot ] || return 0
  sql -d "$1" <<'SQL' >&2
SELECT relname, rows FROM pg_class c JOIN pg_am am ON am.oid = relam AND amname = 'mot', LATERAL mot.check(c.oid::regclass)
WHERE relkind IN ('r', 'm') AND relpersistence <> 't' ORDER BY 1;
DO $$ BEGIN
  IF EXISTS (SELECT FROM pg_class JOIN pg_am am ON am.oid = relam WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND amname <> 'mot') THEN
    RAISE 'a table is not memory-optimized';
  END IF;
END $$;
SQL
}
export -f sound

# A program in Go, or the tests of a module, in a copy of its directory; modules and builds are
# cached.
go_in() { # DIRECTORY COMMAND...
  local directory=$1
  shift
  (cd "$directory" && GOPATH=$CACHE_ROOT/go GOCACHE=$CACHE_ROOT/go-build GOFLAGS=-modcacherw timeout 900 go "$@" </dev/null)
}
