# Two commands do everything on a bare Debian 12: `make demo` and `make test`. `make check` is a test of some minutes.
.PHONY: demo check test check-core check-clients rto soak bench profile setup install

QUICK ?=
# The version of PostgreSQL: 15, 17 or 18.
PG ?= 15
export PG

demo: setup
	.ci/install release
	.ci/demo $(if $(QUICK),--quick)

check: setup
	.ci/check

test: setup
	.ci/test

# PostgreSQL's own suites: SHORT=1 the files that concern tables most.
SHORT ?=
KIND ?= mot

check-core: setup
	.ci/install checked
	.ci/check_core --kind $(KIND) $(if $(SHORT),--short)

# Programs that people use, on heap and on memory-optimized tables: ONLY=django,flyway some of them, SHORT=1 what `make test` runs.
check-clients: setup
	.ci/install checked
	.ci/clients $(if $(SHORT),--short) $(if $(ONLY),--only $(ONLY))

rto: setup
	.ci/install release
	.ci/rto $(if $(QUICK),--quick)

# Parts to measure again, as in ONLY=sysbench,statements/update; the others keep what an earlier run measured.
ONLY ?=

bench: setup
	.ci/install release
	.ci/bench $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

# make profile BENCH="compare mot integers get": where a bench of index or engine spends its time, into target/profile.
BENCH ?= transactions tpcc

profile:
	.ci/profile $(BENCH)

MINUTES ?= 30

soak: setup
	.ci/soak $(MINUTES)

setup:
	.ci/setup

install: setup
	.ci/install release
