#!/bin/sh
# SPDX-License-Identifier: MIT
# replay --mode simulated: equal bytes, windows, laps, spread, curves over CPU counts, nonsense.
. "${0%/*}/lib.sh"

# sim VARIANT OPTION...: a simulated replay of t.tape whose run is stored elsewhere.
sim()
{
	variant=$1
	shift
	rm -f runs.tape
	"$slabtape" replay t.tape --variant "$variant" --mode simulated --results runs.tape "$@"
}

"$slabtape" gen tcp-rr --cpus 16 --nodes 2 --events 20000 -q -o t.tape || fail gen

# The same bytes with other addresses: randomised, and from an allocator set up differently.
for variant in slub-2.6.30 slub-6.1 slub-7.2-parking slab-6.1 slqb-2.6.31; do
	sim $variant --pace asap --json --no-timing >one || fail "$variant"
	GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.mmap_threshold=4096 \
		"$slabtape" replay ./t.tape --variant $variant --mode simulated --pace asap --json \
		--no-timing --results runs2.tape >two || fail "$variant again"
	cmp -s one two || fail "$variant: other bytes at other addresses"
	rm -f runs2.tape
done

# With --state every CPU stops where others could look; without it a CPU runs ahead with its own
# objects.  Nothing may be different.
for variant in slub-6.1 slub-6.1-remotequeue slub-7.2; do
	for format in "" --state; do
		# shellcheck disable=SC2086
		sim $variant --pace asap --json --no-timing $format | sed -n '/"counters"/,/}/p' >"c$format"
	done
	[ -s c ] || fail "$variant: no counters"
	cmp -s c c--state || fail "$variant: running ahead changes counters"
done

# A window in serial pace counts what the ordered engine counts in it.
for variant in slub-6.1 slub-7.2 slab-6.1; do
	window="--count-from 40000ns --count-to 120000ns --csv"
	# shellcheck disable=SC2086
	"$slabtape" replay t.tape --variant $variant $window --results ordered.tape | sort >one
	# shellcheck disable=SC2086
	sim $variant --pace serial $window | sort >two
	cmp -s one two || fail "$variant: window differs from ordered: $(diff one two | head -4)"
	[ "$(grep -vc ',0$' one)" -gt 3 ] || fail "$variant: nothing in the window"
	rm -f ordered.tape
done
# A window's time and locks are its own.
sim slub-2.6.30 --json --no-timing >all
sim slub-2.6.30 --count-from 40000ns --count-to 120000ns --json --no-timing >part
python3 - <<'END' || fail "window's time or locks"
import json
all, part = json.load(open('all')), json.load(open('part'))
taken = [sum(l['acquisitions'] for l in r['locks']) for r in (all, part)]
assert 80000 <= part['virtual_ns'] < all['virtual_ns'], (part['virtual_ns'], all['virtual_ns'])
assert 0 < taken[1] < taken[0], taken
END

# Laps go on on the same allocator; counters of each.
sim slub-6.1 --laps 3 --json --no-timing >laps
python3 - <<'END' || fail "laps"
import json
cache = json.load(open('laps'))['caches'][0]
new = [lap['alloc_slab'] for lap in cache['laps']]
assert len(new) == 3 and new[0] > 0 and new[2] < new[0], new
END

# Jitter makes repeats differ, the seed makes them again.
sim slub-6.1 --jitter 50 --repeat 3 --json --no-timing >one
sim slub-6.1 --jitter 50 --repeat 3 --json --no-timing >two
cmp -s one two || fail "repeats with the same seed differ"
python3 - <<'END' || fail "spread"
import json
spread = json.load(open('one'))['repeat']['simulated']['ops_per_s']
assert spread['min'] < spread['mean'] < spread['max'], spread
END
want 0 ops_per_s sim slub-6.1 --repeat 2

# A curve: table, CSV, JSON; copies of a recording without shared objects scale.
want 0 'costs: op_fast_ns=' sim slub-6.1 --cpus 16,48,192 --nodes 3
sim slub-6.1 --cpus 16,48,192 --csv >out
[ "$(wc -l <out)" = 4 ] || fail "CSV curve: $(cat out)"
sim slub-6.1 --cpus 16,48,192 --repeat 2 --jitter 10 --json >curve
python3 - <<'END' || fail "JSON curve"
import json
j = json.load(open('curve'))
rows = j['curve']
assert [r['cpus'] for r in rows] == [16, 48, 192] and [r['scale'] for r in rows] == [1, 3, 12], rows
assert all(r['repeats'] == 2 and r['ops_per_s_min'] <= r['ops_per_s'] for r in rows), rows
assert 6 < rows[2]['speedup'] <= 12.5 and j['costs']['page_batch'] == 63, j
END
want 0 '192 CPUs on 4 nodes' sim slub-7.2 --scale 12 --nodes 4

# Nonsense is refused with a reason.
want 2 'want 1..4096' sim slub-6.1 --cpus 0
want 2 'want 1..4096' sim slub-6.1 --cpus 16,,32
want 2 'want 1..4096' sim slub-6.1 --cpus 16,5000
want 2 'multiples of 16' sim slub-6.1 --cpus 16,24
want 2 'scales by itself' sim slub-6.1 --cpus 16,32 --scale 2
want 2 'no node without a CPU' sim slub-6.1 --nodes 17
want 2 'at most 4096' sim slub-6.1 --scale 257
want 2 'want 1..4096' sim slub-6.1 --scale 0
want 2 'not a curve' sim slub-6.1 --cpus 16,32 --json --state
want 2 'belongs to --mode ordered' sim slub-6.1 --follow
want 2 'a curve is made by' "$slabtape" compare t.tape --variants slub-6.1,null --cpus 16,32
want 3 'Is a directory' "$slabtape" replay "$tests/golden/cases/r11-bulk.ops" --variant slub-6.1 --mode simulated --costs /
want 3 'no cost in it' "$slabtape" replay "$tests/golden/cases/r11-bulk.ops" --variant slub-6.1 --mode simulated --costs /dev/null
exit $failed
