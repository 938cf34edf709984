#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Instructions of a remote free, counted by callgrind: a variant against mimalloc.  The loop and the
# indirect call around each free are counted too, for both.  Needs valgrind and libmimalloc2.0.
#
# usage: bench/remote_free.sh [VARIANT [BUILD_DIRECTORY]]      (slub-6.1, build/release)
set -eu
cd "$(dirname "$0")/.."
variant=${1:-slub-6.1}
program=${2:-build/release}/bench/bench_remote
batch=1000 rounds=50
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Libraries loaded late need room for their thread-local data.
export GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384

count() { # CONTENDER SIZE -> instructions per free
	valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='remote_frees_*' \
		"$program" "$1" "$2" $batch $rounds >/dev/null 2>"$log" || { cat "$log" >&2; exit 1; }
	awk -v frees=$((batch * rounds)) '/Collected :/ { printf "%.1f\n", $4 / frees }' "$log"
}

printf '%-6s %14s %14s %8s\n' size "$variant" mimalloc ratio
for size in 64 256 2048; do
	ours=$(count "$variant" $size)
	theirs=$(count mimalloc $size)
	printf '%-6s %14s %14s %8.2f\n' "$size" "$ours" "$theirs" \
		"$(awk -v a="$ours" -v b="$theirs" 'BEGIN { print a / b }')"
done
