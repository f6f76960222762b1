# Two commands do everything on a bare Debian 12: `make demo` and `make test`.
.PHONY: demo test rto setup install

QUICK ?=

demo: setup
	.ci/install release
	.ci/demo $(if $(QUICK),--quick)

test: setup
	.ci/test

rto: setup
	.ci/install release
	.ci/rto $(if $(QUICK),--quick)

setup:
	.ci/setup

install: setup
	.ci/install release
