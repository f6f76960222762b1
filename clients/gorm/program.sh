# GORM: its migrator, again and to a later model, what it reads back, associations, hooks, upserts,
# locks and nested transactions.
least_full=13

setup() {
  need go golang-go
  once built "$home"/main.go "$home"/go.mod -- build
}

build() {
  rm -rf "$CACHE/source"
  mkdir -p "$CACHE/source"
  cp "$home"/main.go "$home"/go.mod "$CACHE/source/"
  go_in "$CACHE/source" mod tidy
  go_in "$CACHE/source" build -o "$CACHE/program" .
}

run() {
  new_database gorm
  PGDATABASE=gorm timeout 600 "$CACHE/program"
}
