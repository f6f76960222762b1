# Two commands do everything on a bare Debian 12: `make demo` and `make test`.
.PHONY: demo test setup install

QUICK ?=

demo: setup
	.ci/install release
	.ci/demo $(if $(QUICK),--quick)

test: setup
	.ci/test

setup:
	.ci/setup

install: setup
	.ci/install release
