#!/bin/sh
# SPDX-License-Identifier: MIT
# slabtape calibrate: a table that --costs takes, on two CPUs and on one; what it refuses.
. "${0%/*}/lib.sh"

want 0 'written to costs.ini' "$slabtape" calibrate --rounds 3
want 2 '-f replaces it' "$slabtape" calibrate --rounds 3
"$slabtape" calibrate --rounds 3 -f -o here.ini --json >json || fail "--json"
python3 - <<'END' || fail "JSON and file"
import json
j = json.load(open('json'))
table = dict(line.split(' = ') for line in open('here.ini').read().splitlines() if '=' in line)
assert set(table) == set(j['costs']) == set(j['default']) == set(j['how']), j
for key, value in table.items():
    assert abs(float(value) - j['costs'][key]) < 1e-6, key
    assert j['how'][key].split(':')[0] in ('measured', 'derived', 'built-in'), j['how'][key]
for key in ('op_fast_ns', 'atomic_ns', 'line_local_ns', 'line_same_node_ns', 'handover_same_node_ns'):
    assert 0 < j['costs'][key] < 1e6, (key, j['costs'][key])
assert 0 < j['lock_pair_ns'] < 1e4
END
want 0 '^op_fast_ns,' "$slabtape" calibrate --rounds 1 -f --csv
# One CPU: no line moves, the built-in figures stay.
want 0 'line_same_node_ns.*built-in' taskset -c 0 "$slabtape" calibrate --rounds 1 -f

# The table is used, and printed with the result.
"$slabtape" gen thrash --cpus 2 --events 2000 -q -o t.tape || fail gen
"$slabtape" replay t.tape --variant slub-2.6.30 --mode simulated --costs here.ini --json \
	--results r.tape >run || fail "--costs"
python3 -c 'import json
assert json.load(open("run"))["costs"] == json.load(open("json"))["costs"]' || fail "costs in the result"

want 2 'want 1..1000' "$slabtape" calibrate --rounds 0
want 2 'no argument' "$slabtape" calibrate here.ini
want 7 'No such file' "$slabtape" calibrate -o no/such/dir.ini
exit $failed
