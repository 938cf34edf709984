#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""slabtape diff: two tapes, two runs, their first parting, the spread over seeds; exit codes.

usage: test_diff.py SLABTAPE SOURCE_DIR
"""
import json
import math
import os
import sys
import tempfile

import tapes

SLABTAPE = os.path.abspath(sys.argv[1])


def diff(code, *args):
    done = tapes.run(SLABTAPE, 'diff', *args, '--limit', '0', '--json')
    tapes.same(f'diff {args}: exit', (done.returncode, done.stderr), (code, ''))
    return json.loads(done.stdout)


def counters(path, run):
    return {(cache, name): value for cache, name, value in tapes.plain(path).execute(
        'SELECT c.name, n.name, value FROM counter n JOIN cache c USING(cache) WHERE run = ? AND cpu IS NULL', (run,))}


def two_runs(path):
    """Every counter that differs is a row, and no other; distinct and telling ones first."""
    a, b = counters(path, 1), counters(path, 2)
    got = diff(1, path, '--runs', '1,2')
    rows = {(r['cache'], r['counter']): (r['a'], r['b'], r['delta']) for r in got['rows']}
    want = {k: (a.get(k, 0), b.get(k, 0), b.get(k, 0) - a.get(k, 0)) for k in a | b if a.get(k, 0) != b.get(k, 0)}
    tapes.same('two runs', rows, want)
    tapes.same('their number', got['differences'], len(want))
    score = [abs(r['delta']) / math.sqrt(abs(r['a']) + abs(r['b'])) for r in got['rows']]
    tapes.same('rank', score, sorted(score, reverse=True))
    for r in got['rows']:
        tapes.same('change', r['change'], round(r['delta'] / r['a'], 4) if r['a'] else None)


def seeds(path):
    """Runs that differ in the seed alone are repeats: their spread is an interval, not a difference."""
    for seed in ('2', '3'):
        tapes.must(SLABTAPE, 'replay', path, '--variant', 'slub-2.6.30', '--seed', seed)
    runs = [r for r, in tapes.plain(path).execute("SELECT run FROM run WHERE variant = 'slub-2.6.30' ORDER BY run")]
    tapes.same('runs', len(runs), 3)
    of_run = [counters(path, r) for r in runs]
    got = diff(1, path, '--runs', f'{runs[0]},2')
    wide = 0
    for r in got['rows']:
        values = [c.get((r['cache'], r['counter']), 0) for c in of_run]
        if (r['cache'], r['counter']) in of_run[0]:
            tapes.same(f'interval of {r["counter"]}', (r['a_lo'], r['a_hi']), (min(values), max(values)))
            wide += min(values) < max(values)
        tapes.same('distinct', r['distinct'], r['a_hi'] < r['b_lo'] or r['b_hi'] < r['a_lo'])
    tapes.check(wide > 0, 'seeds change something')
    got = diff(0, path, '--runs', f'{runs[0]},{runs[1]}')
    tapes.check(got['differences'] > 0 and not got['differ'], 'two seeds are not distinguishable')
    tapes.check('not distinguishable' in tapes.must(SLABTAPE, 'diff', path, '--runs', f'{runs[0]},{runs[1]}'), 'said so')


def first(path):
    a, b = ([tuple(r.values()) for r in tapes.ask(SLABTAPE, path, 'SELECT seq, cpu, cache, slab, from_state, to_state, inuse'
                                                  f' FROM transition WHERE run = {run} LIMIT 20000')] for run in (1, 2))
    at = next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)
    rows = diff(1, path, '--runs', '1,2', '--first')['rows']
    tapes.same('first', [(r['step'], r['seq'], r['slab'], r['from_state'], r['to_state'], r['inuse']) for r in rows],
               [(at + 1, x[0], x[3], x[4], x[5], x[6]) for x in (a[at], b[at])])
    tapes.same('a run with itself', diff(0, path, '--runs', '1,1', '--first')['rows'], [])
    tapes.same('a run with itself', diff(0, path, '--runs', '1,1')['rows'], [])


def two_tapes(work, path):
    other = tapes.gen(SLABTAPE, os.path.join(work, 'b.tape'), 'hackbench', '--cpus', '4', '--nodes', '2', '--events',
                      '30000', '--seed', '2')
    got = diff(1, path, other)
    sums = []
    for p in (path, other):
        sums.append(dict(tapes.plain(p).execute(
            "SELECT c.name, sum(events) FROM chunk_stat JOIN cache c USING(cache) WHERE op = 'alloc' GROUP BY 1")))
    hits = {r['cache']: (r['a'], r['b']) for r in got['rows'] if r['counter'] == 'hit'}
    tapes.same('allocations', hits, {k: (v, sums[1][k]) for k, v in sums[0].items() if v != sums[1][k]})
    tapes.check(len(got['rows']) > 2, 'several differences')
    tapes.same('a tape with itself', diff(0, path, path)['rows'], [])
    tapes.check('no difference' in tapes.must(SLABTAPE, 'diff', path, path), 'said so')
    text = tapes.run(SLABTAPE, 'diff', path, other, '--csv').stdout
    tapes.check(text.startswith('cache,counter,a,b,delta,change,a_lo'), text[:100])


def usage(path):
    for args, text in (([], 'which'), ([path], 'two tapes'), ([path, '--runs', '1'], 'A,B'), ([path, '--runs', '1,x'], 'A,B'),
                       ([path, '--runs', '1,99'], '99'), ([path, path, '--first'], '--first'), ([path, path, path], 'left')):
        done = tapes.run(SLABTAPE, 'diff', *args)
        tapes.check(done.returncode == 2 and text in done.stderr, f'{args}: {done.returncode} {done.stderr}')
    tapes.must(SLABTAPE, 'replay', path, '--variant', 'slub-3.2', '--record', 'none')
    run = tapes.plain(path).execute('SELECT max(run) FROM run').fetchone()[0]
    done = tapes.run(SLABTAPE, 'diff', path, '--first', '--runs', f'1,{run}')
    tapes.check(done.returncode == 2 and '--record transitions' in done.stderr, done.stderr)


def main():
    with tempfile.TemporaryDirectory() as work:
        path = tapes.gen(SLABTAPE, os.path.join(work, 'a.tape'), 'hackbench', '--cpus', '4', '--nodes', '2', '--events',
                         '30000')
        for variant in ('slub-2.6.30', 'slub-6.1'):
            tapes.must(SLABTAPE, 'replay', path, '--variant', variant)
        two_runs(path)
        first(path)
        seeds(path)
        two_tapes(work, path)
        usage(path)
    tapes.finish()


main()
