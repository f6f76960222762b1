# pgbench: each way to make its tables, twice, and each protocol, with the rows that one client
# leaves.
least_full=60

setup() { :; }

initialize() { # OPTIONS...
  pgbench -i -s 1 -q "$@" pgbench
  definitions pgbench
  contents pgbench
  sound pgbench
}

# One client with one seed leaves the same rows.
transactions() { # OPTIONS...
  pgbench -n -c 1 -t 150 --random-seed=7 "$@" pgbench >/dev/null
  contents pgbench '^mtime$'
  sound pgbench
}

# Several leave the same sums.
clients() { # OPTIONS...
  pgbench -n -c 8 -j 2 -t 100 "$@" pgbench | grep -E 'actually processed|failed'
  sql -d pgbench -c 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history),
    (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(bbalance) FROM pgbench_branches), (SELECT count(*) FROM pgbench_history)'
  sound pgbench
}

run() {
  local options mode
  new_database pgbench
  export -f definitions contents sound
  while read -r options; do
    a_case "initialize: $options" initialize $options
    a_case "again: $options" initialize $options
    for mode in simple extended prepared; do a_case "$mode: $options" transactions -M $mode; done
    a_case "clients: $options" clients -M prepared
  done <<'OPTIONS'
-I dtgvp
-I dtGvpf
-I dtpfgv
--foreign-keys
--partitions=3 --foreign-keys
--partitions=2 --partition-method=hash
--fillfactor=50 --no-vacuum
--unlogged-tables
--tablespace=pg_default --index-tablespace=pg_default
OPTIONS
  a_case "initialize for scripts" initialize -I dtgvpf
  a_case "simple-update" transactions -b simple-update -M prepared
  a_case "select-only" transactions -b select-only -M prepared
  a_case "mixed" transactions -b tpcb-like@2 -b simple-update@3 -b select-only@5
  a_case "serializable clients" env PGOPTIONS='-c default_transaction_isolation=serializable' bash -c 'clients --max-tries=1000 -M prepared'
  a_case "drop" pgbench -i -I d pgbench
}
