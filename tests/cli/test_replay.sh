#!/bin/sh
# SPDX-License-Identifier: MIT
# slabtape replay, variants, compare, explain: exit codes, messages, equal bytes, stored runs.
. "${0%/*}/lib.sh"
case=$tests/golden/cases/r11-bulk.ops

"$slabtape" import -q -o t.tape "$sample" || fail "import"
"$slabtape" import -q -o ops.tape "$case" || fail "import of a script"

# Usage errors name the option.
want 2 'want one tape' "$slabtape" replay
want 2 'no-such' "$slabtape" replay "$case" --variant no-such
want 2 'no_such_knob' "$slabtape" replay "$case" --variant slub-6.1 --set no_such_knob=1
want 2 'not a number' "$slabtape" replay "$case" --variant slub-6.1 --set min_partial=x
want 2 'min_partial=-1' "$slabtape" replay "$case" --variant slub-6.1 --set min_partial=-1
want 2 'a name is empty' "$slabtape" compare t.tape --variants ,
want 2 'a name is empty' "$slabtape" compare t.tape --variants slub-6.1,
want 2 'output is the input' "$slabtape" replay t.tape --variant slub-6.1 --paths t.tape
want 2 'output is the input' "$slabtape" export ops.tape --to ops -o ./ops.tape
want 2 '--warm sideways' "$slabtape" replay "$case" --variant slub-6.1 --warm sideways
want 2 'no snapshot' "$slabtape" replay "$case" --variant slub-6.1 --warm snapshot
want 0 'warmed: ' "$slabtape" replay t.tape --variant slub-7.2 --warm snapshot --count-from slabtape:BEGIN
want 2 '--record' "$slabtape" replay "$case" --variant slub-6.1 --record nothing
want 2 '--topology' "$slabtape" replay "$case" --variant slub-6.1 --topology 0-2
want 2 'NOWHERE' "$slabtape" replay t.tape --variant slub-6.1 --count-from NOWHERE
want 2 '--json' "$slabtape" replay "$case" --variant slub-6.1 --state
want 3 'none.tape' "$slabtape" replay none.tape --variant slub-6.1 || true

# The default table; a script by way of a tape; equal runs, equal bytes.
want 0 'alloc_slowpath  *4$' "$slabtape" replay "$case" --variant slub-6.1
want 0 '"ops": 8' "$slabtape" replay ops.tape --variant slub-6.1 --json
want 0 'slub-6.1,r11-bulk,alloc_slowpath,4' "$slabtape" replay ops.tape --variant slub-6.1 --csv
"$slabtape" replay t.tape --variant slub-6.1 --json --no-timing >a || fail "replay"
"$slabtape" replay t.tape --variant slub-6.1 --json --no-timing >b || fail "replay"
cmp -s a b || fail "two equal replays differ"
grep -q '"path"\|elapsed_ns\|started' a && fail "--no-timing shows times"
"$slabtape" replay t.tape --variant slub-6.1 --json --no-timing --seed 2 >b || fail "replay"
cmp -s a b && fail "another seed changes nothing"
want 0 '"mean"' "$slabtape" replay t.tape --variant slub-6.1 --json --repeat 2
want 0 'min, mean and max' "$slabtape" replay t.tape --variant slub-6.1 --repeat 2 --jitter 2000
want 0 '"laps"' "$slabtape" replay ops.tape --variant slub-6.1 --json --laps 2
want 0 '8 CPUs on 4 nodes' "$slabtape" replay t.tape --variant slub-7.2 --cpus 8 --nodes 4
want 0 'min_partial 17' "$slabtape" replay t.tape --variant slub-6.1 --set kmalloc-512.min_partial=17

# An event that cannot be executed: three CPUs are too few.
want 5 'seq' "$slabtape" replay t.tape --variant slub-6.1 --strict --cpus 3 --nodes 1
want 0 'skipped' "$slabtape" replay t.tape --variant slub-6.1 --cpus 3 --nodes 1

# Runs are stored in the tape, or where --results says; the table is the same as the JSON.
want 0 '' "$slabtape" replay ops.tape --variant slub-7.2 --results results.tape
want 0 'slub-7.2' "$slabtape" sql results.tape "SELECT variant FROM run"
want 0 '^ *4' "$slabtape" sql ops.tape "SELECT value FROM counter WHERE name = 'alloc_slowpath' AND cpu IS NULL ORDER BY run LIMIT 1"

# compare and explain.
want 0 'delta' "$slabtape" compare "$case" --variants slub-6.1,slub-7.2
want 0 '"distinguishable"' "$slabtape" compare "$case" --variants slub-6.1,slub-7.2 --json
want 0 'cache,class,counter' "$slabtape" compare "$case" --variants slub-6.1,slub-7.2 --csv
want 2 'holds no counters' "$slabtape" compare "$case" --against recorded
want 2 '--variants' "$slabtape" compare "$case"
want 0 'class A: [0-9]* caches, [0-9]* exact, 0 outside' "$slabtape" compare t.tape --against recorded
for cache in skbuff_fclone_cache skbuff_head_cache request_sock_TCP; do
	want 0 'exact in every counter' "$slabtape" compare t.tape --against recorded --cache $cache
done
want 0 'within limits' "$slabtape" compare t.tape --against recorded --cache kmalloc-512
want 0 'indicative' "$slabtape" compare t.tape --against recorded --cache maple_node
want 0 'recorded: 768' "$slabtape" explain t.tape sock_inode_cache --variant slub-6.1
want 2 'no such cache' "$slabtape" explain t.tape nobody --variant slub-6.1

# variants
want 0 'slub-6.1-numalocal' "$slabtape" variants
want 0 '"knobs"' "$slabtape" variants --json
exit $failed
