#!/usr/bin/env bash
# step.sh PROGRAM VERB: one step of a program, in a process of its own, so that its first failure
# ends it. .ci/clients runs it.
source "$(dirname "$0")/../.ci/lib.sh"
program=$1 home=$top/clients/$1 CACHE=$CACHE_ROOT/$1
mkdir -p "$CACHE"
source clients/lib.sh
source "$home/program.sh"
"$2"
