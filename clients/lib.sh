# Functions of the programs' scripts; read by .ci/clients after .ci/lib.sh. A script has `setup`, which fetches what is needed into
# $CACHE, and `run`, which leaves cases of the side $SIDE in $OUT; PGHOST, PGPORT and PGUSER name the server.

# An empty database of this side.
new_database() { # NAME
  psql -XqAt -v ON_ERROR_STOP=1 -d postgres <<SQL
SET client_min_messages = warning;
DROP DATABASE IF EXISTS "$1" WITH (FORCE);
CREATE DATABASE "$1";
ALTER DATABASE "$1" SET default_table_access_method = $SIDE;
SQL
}

need() { # COMMAND PACKAGE...: what a bare Debian lacks
  local command=$1
  shift
  command -v "$command" >/dev/null || { echo "$program needs $command: on Debian, apt-get install $*" >&2; return 1; }
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
  need python3 python3 python3-venv
  once venv "$home/requirements.txt" -- make_venv
}
make_venv() {
  rm -rf "$CACHE/venv"
  python3 -m venv "$CACHE/venv"
  "$CACHE/venv/bin/pip" install -q --disable-pip-version-check --prefer-binary -r "$home/requirements.txt"
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
