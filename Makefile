# Two commands do everything on a bare Debian 12: `make demo` and `make test`.
.PHONY: demo test rto soak setup install

QUICK ?=

demo: setup
	.ci/install release
	.ci/demo $(if $(QUICK),--quick)

test: setup
	.ci/test

rto: setup
	.ci/install release
	.ci/rto $(if $(QUICK),--quick)

MINUTES ?= 30

soak: setup
	.ci/soak $(MINUTES)

setup:
	.ci/setup

install: setup
	.ci/install release
