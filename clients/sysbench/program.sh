# sysbench: each of its scripts, with select_random_ranges and random points.
least_full=10

setup() { need sysbench sysbench; }

# Rows depend on time and threads; that all statements succeed, and what tables there are, does not.
sysbench_script() { # SCRIPT
  local tables=2 options
  if [[ $1 == select_random_* ]]; then tables=1; fi
  options=(--db-driver=pgsql --pgsql-host="$PGHOST" --pgsql-port="$PGPORT" --pgsql-user="$PGUSER" --pgsql-db=sysbench --pgsql-password= --tables=$tables --table-size=2000 --threads=4)
  sysbench "$1" "${options[@]}" prepare >&2
  definitions sysbench
  sound sysbench
  sysbench "$1" "${options[@]}" --events=400 --time=30 --report-interval=0 run | tee /dev/stderr | grep -oE 'ignored errors: +[0-9]+|total number of events: +[0-9]+' | sed '/total number/s/40[0-3]$/400/; /ignored/d'
  sound sysbench
  sysbench "$1" "${options[@]}" cleanup >&2
  definitions sysbench
}

run() {
  local script
  new_database sysbench
  for script in oltp_read_write oltp_read_only oltp_write_only oltp_point_select oltp_insert oltp_delete oltp_update_index oltp_update_non_index select_random_points select_random_ranges; do
    a_case "$script" sysbench_script "$script"
  done
}
