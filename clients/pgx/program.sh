# pgx's own test suite, out of its Go module.
least_full=2330
version=v5.12.0

setup() {
  need go golang-go
  [ -d "$CACHE/$version" ] && return
  local directory
  mkdir -p "$CACHE/fetch"
  printf 'module fetch\n\ngo 1.24\n' >"$CACHE/fetch/go.mod"
  directory=$(go_in "$CACHE/fetch" mod download -json "github.com/jackc/pgx/v5@$version" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
  rm -rf "$CACHE/unpacked"
  cp -r "$directory" "$CACHE/unpacked"
  chmod -R u+w "$CACHE/unpacked"
  go_in "$CACHE/unpacked" test -count=1 -run '^$' ./...
  mv "$CACHE/unpacked" "$CACHE/$version"
}

run() {
  new_database pgx
  psql -q -d pgx -f "$CACHE/$version/testsetup/postgresql_setup.sql"
  # The skipped test counts connections that the pool closes in the background: it fails now and
  # then on heap, too. The packages that speak with a server, one after another: they share the
  # database. Both sides are run at once, so each is a copy.
  work_on_copy "$CACHE/$version"
  PGX_TEST_DATABASE="host=$PGHOST port=$PGPORT user=$PGUSER dbname=pgx" \
    go_in "$OUT/work" test -json -count=1 -p 1 -timeout 600s -skip 'TestPoolAcquireChecksIdleConns$' . ./pgconn/... ./pgtype/... ./pgxpool/... ./stdlib/... ./tracelog/... >"$OUT/cases.go"
}
