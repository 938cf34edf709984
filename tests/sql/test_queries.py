#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each canned query against a second way: plain loops over all events of a tape.

usage: test_queries.py SLABTAPE EXTENSION SOURCE_DIR
"""
import collections
import csv
import io
import math
import os
import sqlite3
import sys
import tempfile

import hosts

ALLOCS = ('alloc', 'alloc_bulk', 'sheaf_alloc')
FREES = ('free', 'free_rcu', 'free_bulk')


class Tape:
    """Every event in memory, objects put together by a dictionary."""

    def __init__(self, slabtape, path):
        self.slabtape, self.path = slabtape, path
        text = hosts.run(slabtape, 'sql', path, '--csv', 'SELECT seq, ts, cpu, node, op, cache, object,'
                         ' size, site, flags FROM event').stdout
        self.events = []
        for row in csv.DictReader(io.StringIO(text)):
            self.events.append({k: v if k == 'op' else int(v) if v else None for k, v in row.items()})
        db = sqlite3.connect(f'file:{path}?mode=ro', uri=True)
        self.cache = collections.defaultdict(lambda: None, db.execute('SELECT cache, name FROM cache'))
        self.counters = db.execute('SELECT run, cache, name, value FROM counter WHERE cpu IS NULL').fetchall()
        self.classes = db.execute('SELECT run, cache, class, count FROM free_class').fetchall()
        self.span = db.execute('SELECT min(ts_min), max(ts_max) FROM chunk').fetchone()
        db.close()
        self.objects = {}
        for e in self.events:
            if e['op'] in ALLOCS:
                self.objects.setdefault(e['object'], {})['alloc'] = e
            elif e['op'] in FREES:
                self.objects.setdefault(e['object'], {})['free'] = e

    def query(self, name, *params):
        args = [x for p in params for x in ('--param', p)]
        done = hosts.run(self.slabtape, 'query', self.path, name, '--json', *args)
        if done.returncode:
            hosts.check(False, f'query {name}: {done.stderr}')
            return []
        return hosts.json_results(done.stdout)[0]

    def pairs(self):
        return [(o['alloc'], o['free']) for o in self.objects.values() if 'alloc' in o and 'free' in o]


def same(name, got, expected, places=3):
    """Equal rows; reals to within rounding."""
    def close(a, b):
        if isinstance(a, float) or isinstance(b, float):
            return a is not None and b is not None and math.isclose(a, b, abs_tol=10 ** -places, rel_tol=1e-6)
        return a == b
    ok = len(got) == len(expected) and len(got) > 0 and all(
        len(g) == len(e) and all(close(a, b) for a, b in zip(g, e)) for g, e in zip(got, expected))
    first = next(((g, e) for g, e in zip(got, expected) if list(g) != list(e)), None)
    hosts.check(ok, f'{name}: {len(got)} rows, expected {len(expected)}; first difference {first}')


def remote_free(t, name, side):
    n, size = collections.Counter(), collections.Counter()
    for a, f in t.pairs():
        n[a[side], f[side]] += 1
        size[a[side], f[side]] += a['size']
    whole = sum(n.values())
    same(name, t.query(name), [[*k, n[k], size[k], n[k] / whole] for k in sorted(n)])


def remote_free_of_a_cache(t):
    n = collections.Counter((a['cpu'], f['cpu']) for a, f in t.pairs()
                            if t.cache.get(a['cache']) == 'skbuff_fclone_cache')
    got = t.query('remote-free', 'cache=skbuff_fclone_cache')
    same('remote-free of a cache', [r[:3] for r in got], [[*k, n[k]] for k in sorted(n)])


def callers(t):
    n, size, freed, life = (collections.Counter() for _ in range(4))
    for o in t.objects.values():
        if 'alloc' not in o:
            continue
        key = o['alloc']['site'], o['alloc']['cache']
        n[key] += 1
        size[key] += o['alloc']['size']
        if 'free' in o:
            freed[key] += 1
            life[key] += o['free']['ts'] - o['alloc']['ts']
    order = sorted(n, key=lambda k: (-n[k], k[0], t.cache[k[1]] or ''))[:15]
    rows = [[k[0], t.cache[k[1]], n[k], size[k], freed[k], life[k] / 1e3 / freed[k] if freed[k] else None]
            for k in order]
    got = [[r[0]] + r[2:] for r in t.query('callers', 'limit=15')]
    same('callers', got, rows, places=1)


def lifetimes(t):
    n = collections.Counter()
    for o in t.objects.values():
        if 'alloc' not in o or t.cache[o['alloc']['cache']] != 'filp':
            continue
        ns = o['free']['ts'] - o['alloc']['ts'] if 'free' in o else None
        n[None if ns is None else max(ns, 1).bit_length() - 1] += 1
    whole = sum(n.values())
    keys = sorted(n, key=lambda k: (k is None, k))
    rows = [['filp', None if k is None else (1 << k if k else 0), None if k is None else 2 << k, n[k],
             n[k] / whole] for k in keys]
    same('lifetimes', t.query('lifetimes', 'cache=filp'), rows)


def slope(values):
    xs = range(len(values))
    mx, my = sum(xs) / len(xs), sum(values) / len(values)
    return sum((x - mx) * (y - my) for x, y in zip(xs, values)) / sum((x - mx) ** 2 for x in xs)


def leaks(t):
    parts = 8
    width = (t.span[1] - t.span[0]) // parts + 1
    count, size = collections.defaultdict(lambda: [0] * parts), collections.defaultdict(lambda: [0] * parts)
    for o in t.objects.values():
        if 'alloc' in o and 'free' not in o:
            a = o['alloc']
            count[a['site'], a['cache']][a['ts'] // width] += 1
            size[a['site'], a['cache']][a['ts'] // width] += a['size']
    rows = {}
    for key, new in size.items():
        level = [sum(new[:i + 1]) for i in range(parts)]
        rows[key] = [sum(count[key]), sum(new), sum(c > 0 for c in count[key]), slope(level) / width * 1e9]
    got = t.query('leaks', f'parts={parts}', 'limit=100000')
    found = {(r[0], r[2]): r[3:] for r in got}
    expected = {(k[0], t.cache[k[1]]): v for k, v in rows.items()}
    keys = sorted(expected, key=str)
    same('leaks', [found.get(k, []) for k in keys], [expected[k] for k in keys], places=1)
    hosts.check(len(found) == len(expected) and [r[6] for r in got] == sorted((r[6] for r in got), reverse=True),
                'leaks: every caller once, steepest first')


def ratchet(t):
    parts, least = 50, 100
    width = (t.span[1] - t.span[0]) // parts + 1
    change = collections.defaultdict(collections.Counter)
    for e in t.events:
        if e['op'] in ALLOCS and not e['flags'] & 16:
            change[e['cache']][e['ts'] // width] += 1
        elif e['op'] in FREES and not e['flags'] & 16:
            change[e['cache']][e['ts'] // width] -= 0 if e['flags'] & 2 else 1
    rows = []
    for cache, by_part in change.items():
        level, levels = 0, []
        for p in sorted(by_part):
            level += by_part[p]
            levels.append((p, level))
        peak = max(v for _, v in levels)
        at = next(i for i, (_, v) in enumerate(levels) if v == peak)
        after = min(v for _, v in levels[at:])
        if peak >= least:
            rows.append([t.cache[cache], peak, (levels[at][0] + 1) * width / 1e9, after, levels[-1][1],
                         after / peak])
    rows.sort(key=lambda r: (-round(r[5], 3), -r[1], r[0] or ''))
    same('ratchet', t.query('ratchet', f'parts={parts}'), rows)


def node_imbalance(t):
    n = collections.defaultdict(lambda: [0, 0])
    for e in t.events:
        if e['op'] in ALLOCS or e['op'] in FREES:
            n[e['cache'], e['node']][e['op'] in FREES] += 1
    whole = collections.Counter()
    for (cache, _), (a, _) in n.items():
        whole[cache] += a
    keys = [k for k in n if whole[k[0]] >= 100]
    keys.sort(key=lambda k: (-whole[k[0]], t.cache[k[0]] or '', k[1]))
    same('node-imbalance', t.query('node-imbalance'),
         [[t.cache[k[0]], k[1], *n[k], n[k][0] - n[k][1], n[k][0] / whole[k[0]]] for k in keys])


def thrash(t, run):
    value = collections.defaultdict(dict)
    for r, cache, name, v in t.counters:
        if r == run:
            value[cache][name] = v
    rows = {}
    for cache, v in value.items():
        if 'alloc_slowpath' not in v:
            continue
        allocs = v['alloc_fastpath'] + v['alloc_slowpath']
        frees = v['free_fastpath'] + v['free_slowpath']
        partial = sum(v.get(k, 0) for k in ('alloc_from_partial', 'alloc_refill', 'cpu_partial_alloc'))
        if allocs + frees < 1000:
            continue
        slow, slow_frees = v['alloc_slowpath'], v['free_slowpath']
        rows[t.cache[cache]] = [allocs, frees, slow / allocs if allocs else None,
                                slow_frees / frees if frees else None,
                                min(partial / slow, 1.0) if slow else None,
                                allocs / slow if slow else None,
                                v.get('free_add_partial', 0) / slow_frees if slow_frees else None]
    got = {r[2]: r[3:] for r in t.query('thrash', f'run={run}')}
    keys = sorted(rows)
    same('thrash', [got.get(k, []) for k in keys], [rows[k] for k in keys], places=1)
    hosts.check(sorted(got) == keys, 'thrash: the same caches')


def free_class(t, run):
    classes = ('partial->partial', 'full->partial', 'partial->empty', 'full->empty')
    n = collections.defaultdict(dict)
    for r, cache, name, count in t.classes:
        if r == run:
            n[t.cache[cache]][name] = count
    got = {r[2]: r[3:] for r in t.query('free-class', f'run={run}')}
    rows = {k: [v.get(c) for c in classes] + [sum(v.values())] for k, v in n.items()}
    keys = sorted(rows)
    same('free-class', [got.get(k, []) for k in keys], [rows[k] for k in keys])


def refused_under_loss(t):
    """Lost events make survivors meaningless."""
    done = hosts.run(t.slabtape, 'sql', t.path, '--write', "INSERT INTO loss VALUES(0, 1, 2, 7, 'a test')")
    hosts.check(done.returncode == 0, f'loss row: {done.stderr}')
    done = hosts.run(t.slabtape, 'query', t.path, 'leaks')
    hosts.check(done.returncode == 3 and '7 lost events' in done.stderr and not done.stdout,
                f'leaks is refused under loss: {done.returncode} {done.stderr}')


def run_rows(extension, path):
    """Queries about recorded rows of a real replay, from the rows themselves."""
    db = hosts.connect(extension, path)
    run = db.execute('SELECT max(run) FROM transition').fetchone()[0]
    rows = db.execute('SELECT cache, slab, ts, to_state, from_state FROM transition WHERE run = ?', (run,)).fetchall()
    db.close()
    return run, rows


def partial_residency(t, extension):
    run, rows = run_rows(extension, t.path)
    last, stays, still = {}, collections.defaultdict(list), collections.Counter()
    for cache, slab, ts, to_state, _ in rows:
        if slab in last and last[slab][1] in ('partial', 'cpu_partial'):
            stays[cache, last[slab][1]].append(ts - last[slab][0])
        last[slab] = (ts, to_state, cache)
    for _, state, cache in last.values():
        still[cache, state] += 1
    got = {(r[2], r[3]): r[4:7] + r[8:] for r in t.query('partial-residency', f'run={run}')}
    keys = sorted(k for k in set(stays) | set(still) if k[1] in ('partial', 'cpu_partial'))
    expected = [[len(stays[k]), sum(stays[k]) / len(stays[k]) / 1e3 if stays[k] else None,
                 max(stays[k]) / 1e3 if stays[k] else None, still[k]] for k in keys]
    same('partial-residency', [got.get((t.cache[k[0]], k[1]), []) for k in keys], expected, places=1)


def attached(slabtape, extension, path, work):
    """Rows of runs in two tapes, joined; the aggregate functions name the other tape."""
    other = os.path.join(work, 'results.tape')
    done = hosts.run(slabtape, 'replay', path, '--variant', 'slub-7.2', '--results', other)
    hosts.check(done.returncode == 0, f'results in a tape of their own: {done.stderr}')
    db = hosts.connect(extension, path)
    db.execute('ATTACH ? AS b', (other,))
    run = db.execute('SELECT max(run) FROM transition').fetchone()[0]
    here = collections.Counter(r[0] for r in db.execute('SELECT seq FROM transition WHERE run = ?', (run,)))
    there = collections.Counter(r[0] for r in db.execute('SELECT seq FROM b.transition'))
    joined = db.execute('SELECT count(*) FROM transition x JOIN b.transition y USING(seq) WHERE x.run = ?',
                        (run,)).fetchone()[0]
    hosts.check(joined == sum(n * there[s] for s, n in here.items()) and joined > 0, 'a join across two tapes')
    counted = db.execute("SELECT sum(transitions) FROM transition_agg(NULL, 'b')").fetchone()[0]
    hosts.check(counted == sum(there.values()), f'transition_agg of the attached tape: {counted}')
    hosts.check(db.execute("SELECT sum(refills) FROM refill_agg(NULL, 'b')").fetchone()[0] ==
                db.execute('SELECT count(*) FROM b.refill').fetchone()[0], 'refill_agg of the attached tape')
    hosts.check(db.execute('SELECT count(*) FROM b.slab').fetchone()[0] ==
                db.execute("SELECT count(*) FROM b.transition WHERE from_state = 'none'").fetchone()[0],
                'slab of the attached tape')
    db.close()


def all_are_tested(source):
    """Every query is named in a test that works its answer out again."""
    text = ''
    for name in ('sql/test_queries.py', 'unit/test_analyze_queries.c', 'unit/test_analyze_runs.c'):
        with open(os.path.join(source, 'tests', name), encoding='utf-8') as f:
            text += f.read()
    for name in os.listdir(os.path.join(source, 'analyze/queries')):
        quoted = name[:-4]
        hosts.check(f"'{quoted}'" in text or f'"{quoted}"' in text, f'{quoted} has a test')


def all_are_documented(slabtape, source):
    names = sorted(f[:-4] for f in os.listdir(os.path.join(source, 'analyze/queries')))
    listed = [line for line in hosts.run(slabtape, 'query', '--list').stdout.split('\n')
              if line and line[0] != ' ']
    hosts.check(sorted(listed) == names, f'--list shows every query: {listed}')
    for name in names:
        text = hosts.run(slabtape, 'query', name, '--sql').stdout
        for key in ('question', 'columns', 'example'):
            hosts.check(f'-- {key}: ' in text, f'{name} has a line {key}')


def main():
    slabtape, extension, source = (os.path.abspath(p) for p in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, 'netperf0.tape')
        done = hosts.run(slabtape, 'import', '-q', '-o', path,
                         os.path.join(source, 'traces/samples/src/6.1-netperf0-4c2n'))
        if done.returncode:
            sys.exit(done.stderr)
        done = hosts.run(slabtape, 'replay', path, '--variant', 'slub-6.1')
        if done.returncode:
            sys.exit(done.stderr)
        t = Tape(slabtape, path)
        run = max(r for r, *_ in t.counters)
        remote_free(t, 'remote-free', 'cpu')
        remote_free(t, 'remote-free-node', 'node')
        remote_free_of_a_cache(t)
        callers(t)
        lifetimes(t)
        leaks(t)
        ratchet(t)
        node_imbalance(t)
        thrash(t, run)
        free_class(t, run)
        partial_residency(t, extension)
        attached(slabtape, extension, path, work)
        refused_under_loss(t)
    all_are_documented(slabtape, source)
    all_are_tested(source)
    hosts.finish()


main()
