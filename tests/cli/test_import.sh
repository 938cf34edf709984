#!/bin/sh
# SPDX-License-Identifier: MIT
# slabtape import and export: exit codes, messages, what stays on disk.
. "${0%/*}/lib.sh"

# A recording's directory; the default name; the summary.
want 0 '408271 events from trace.dat' "$slabtape" import "$sample"
[ -f 6.1-netperf0-4c2n.tape ] || fail "no default output"
want 2 'exists already; -f' "$slabtape" import "$sample"
want 0 '408271 events' "$slabtape" import --force "$sample"
want 0 '"kmem_cache_free": 59189' "$slabtape" import -q --json -f -o a.tape "$sample"
grep -q '"lost": 0' out || fail "no count of lost events"

# Losses that no later line of their CPU ends, one of an unknown number.
zstd -q -d "$tests/data/6.1-netperf0-head.report.txt.zst" -o whole.txt || fail "zstd"
head -200 whole.txt >lost.txt
printf 'CPU:1 [LOST 57 EVENTS]\nCPU:0 [LOST EVENTS]\n' >>lost.txt
want 4 'at least 58 events lost' "$slabtape" import -o lost.tape lost.txt --max-lost 57
want 0 'lost 57, and an unknown number in 1 losses' "$slabtape" import -f -o lost.tape lost.txt --max-lost 58
want 0 '57 events, and an unknown number in 1 losses' "$slabtape" info lost.tape

# JSON is UTF-8 whatever a cell holds; what cannot be written is a failure.
"$slabtape" sql lost.tape "SELECT CAST(x'ff41e282ac' AS TEXT) AS t" --json >t.json || fail "sql --json"
python3 -c 'import json; assert json.load(open("t.json")) == [{"t": "\ufffdA\u20ac"}]' || fail "$(cat t.json)"
for verb in "verify lost.tape" variants help; do
	# shellcheck disable=SC2086
	"$slabtape" $verb >/dev/full 2>err
	[ $? = 7 ] || fail "$verb on a full device"
done

# Standard input, compressed.
want 2 '-o TAPE is needed' "$slabtape" import -
zstd -q -c "$sample/trace.dat" >t.zst
"$slabtape" import -q -o b.tape - <t.zst || fail "standard input"

# Usage.
want 2 'one SRC' "$slabtape" import
want 2 'infer' "$slabtape" import --infer sometimes x
want 2 'topology' "$slabtape" import -o c.tape --topology 0-3 "$sample/trace.dat"
[ ! -e c.tape ] || fail "a tape is left after a usage error"

# Bad input: exit 3, file and offset in the message, no tape.
want 3 'no-such-file' "$slabtape" import -o c.tape no-such-file
: >empty
want 3 'empty' "$slabtape" import -o c.tape empty
head -c 100000 "$sample/trace.dat" >cut.dat
want 3 'cut.dat, offset 274636' "$slabtape" import -o c.tape cut.dat
head -c 2000000 "$sample/trace.dat" >cut2.dat
want 3 'cut2.dat, offset' "$slabtape" import -o c.tape cut2.dat
head -c 50000 t.zst >cut.zst
want 3 'cut.zst, offset' "$slabtape" import -o c.tape cut.zst
printf '\027\010\104tracing9\0' >version.dat
want 3 'version 9' "$slabtape" import -o c.tape version.dat
mkdir nothing
want 3 'holds no trace.dat' "$slabtape" import -o c.tape nothing
want 3 'a tape already' "$slabtape" import -o c.tape a.tape
[ ! -e c.tape ] || fail "a tape is left after a failure"

# Scripts go in and out.
case=$tests/golden/cases/r01-lifo.ops
want 0 'ops' "$slabtape" import -o r01.tape "$case"
"$slabtape" export r01.tape --to ops >r01.ops || fail "export of a tape"
grep -v '^#' "$case" | grep -v '^$' | cmp -s - r01.ops || fail "the script does not come back"
"$slabtape" export "$case" --to ops | cmp -s - r01.ops || fail "export of a script"
want 2 'no such format' "$slabtape" export r01.tape --to nonsense
want 3 'not imported from an .ops script' "$slabtape" export a.tape --to ops

exit $failed
