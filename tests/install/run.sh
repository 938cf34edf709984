#!/bin/sh
# SPDX-License-Identifier: MIT
# Install into a scratch prefix; build and run the example against it with pkg-config, shared and
# static; every installed header compiles alone.  Usage: run.sh BUILD_DIR SOURCE_DIR
set -eu
build=$1 source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/usr" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
pc=$(find "$scratch/usr" -name slab.pc)
# The .pc file names the configured prefix; move it to where this copy was put.
sed -i "s|^prefix=.*|prefix=$scratch/usr|" "$pc"
export PKG_CONFIG_PATH="${pc%/*}"
flags=$(pkg-config --cflags --libs slab)
static=$(find "$scratch/usr" -name libslab.a)

# shellcheck disable=SC2086
cc -Wall -Werror "$source/docs/examples/slab_pingpong.c" $flags -o "$scratch/shared"
# shellcheck disable=SC2046
cc -Wall -Werror "$source/docs/examples/slab_pingpong.c" $(pkg-config --cflags slab) "$static" \
	-lpthread -o "$scratch/static"
LD_LIBRARY_PATH=$(dirname "$static") "$scratch/shared" null >"$scratch/a"
"$scratch/static" null >"$scratch/b"
cmp "$scratch/a" "$scratch/b"
grep -q '^cpu0 alloc_fastpath 10000$' "$scratch/a"
grep -q '^pages left 0$' "$scratch/a"
for header in slab.h allocator/variant.h allocator/hooks.h allocator/counters.h; do
	echo "#include <slabtape/$header>" >"$scratch/alone.c"
	# shellcheck disable=SC2046
	cc -fsyntax-only -Wall -Wextra -Werror $(pkg-config --cflags slab) "$scratch/alone.c"
done
"$scratch/usr/bin/slabtape" --version
