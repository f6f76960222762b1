# CONTRIBUTING.md says what each command does. On a bare Debian 12 each but `profile` first installs
# what it needs (`.ci/setup`).
.PHONY: demo check test check-core check-clients rto soak bench profile setup

# QUICK=1, SHORT=1: less of it, and sooner.
QUICK ?=
SHORT ?=
# Parts of a whole: of the clients, as in ONLY=django,flyway; of the benchmark, as in
# ONLY=sysbench,statements/update, where the others keep what an earlier run measured.
ONLY ?=
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

# What PostgreSQL's own suites run on beside heap tables. KIND=heap runs them on heap tables twice:
# what differs then is no stable test.
KIND ?= mot

check-core: setup
	.ci/install checked
	.ci/check_core --kind $(KIND) $(if $(SHORT),--short)

check-clients: setup
	.ci/install checked
	.ci/clients $(if $(SHORT),--short) $(if $(ONLY),--only $(ONLY))

rto: setup
	.ci/install release
	.ci/rto $(if $(QUICK),--quick)

bench: setup
	.ci/install release
	.ci/bench $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

# make profile BENCH="compare mot integers get": where a bench of index or engine spends its time,
# into target/profile.
BENCH ?= transactions tpcc

profile:
	.ci/profile $(BENCH)

MINUTES ?= 30

soak: setup
	.ci/soak $(MINUTES)

setup:
	.ci/setup
