#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""slabtape stat against loops over all events and the counter table.

usage: test_stat.py SLABTAPE SOURCE_DIR
"""
import collections
import json
import math
import os
import sys
import tempfile

import tapes

SLABTAPE, SOURCE = (os.path.abspath(p) for p in sys.argv[1:3])


def stat(path, *args):
    return json.loads(tapes.must(SLABTAPE, 'stat', path, '--json', *args))


def close(a, b):
    return a is b is None or (a is not None and b is not None and math.isclose(a, b, abs_tol=1e-4))


class Counted:
    """What stat should say, by plain loops."""

    def __init__(self, path):
        self.events = tapes.events(SLABTAPE, path)
        self.objects = tapes.objects(self.events)
        self.begin, self.end = 0, 1 << 62
        db = tapes.plain(path)
        self.name = dict(db.execute('SELECT cache, name FROM cache'))
        slot = {c: (size + 7) // 8 * 8 for c, size in db.execute('SELECT cache, object_size FROM cache')}
        slot.update(db.execute("SELECT cache, CAST(value AS INTEGER) FROM cache_knob WHERE knob = 'slab_size'"))
        self.slot = slot
        self.node = dict(db.execute('SELECT cpu, node FROM cpu'))

    def inside(self, event):
        return self.begin <= event['ts'] < self.end

    def home(self, alloc, free):
        """Node of the memory; of the allocating CPU where nothing says it; None: nobody knows."""
        for e in (free, alloc):
            if e and e['mem_node'] not in (None, -1):
                return e['mem_node']
        return self.node[alloc['cpu']] if alloc else None

    def rows(self, alloc_key, free_key, live_key):
        n = collections.defaultdict(collections.Counter)
        for e in filter(self.inside, self.events):
            if e['op'] in tapes.ALLOCS and not e['flags'] & 16:
                row = n[alloc_key(e)]
                row['hit'] += 1
                row['bytes'] += e['size']
                if not e['flags'] & 65 and self.slot.get(e['cache']):
                    row['room'] += self.slot[e['cache']]
                    row['asked'] += e['size']
        for o in self.objects.values():
            a, f = o.get('alloc'), o.get('free')
            if f and self.inside(f):
                row = n[free_key(a, f)]
                row['free'] += 1
                if self.home(a, f) is not None:
                    row['placed'] += 1
                    row['cross'] += self.home(a, f) != self.node[f['cpu']]
                if a:
                    row['known'] += 1
                    row['remote'] += a['cpu'] != f['cpu']
                    row['life'] += f['ts'] - a['ts']
            if a and a['ts'] < self.end and not (f and f['ts'] < self.end):
                n[live_key(a)]['live'] += 1
                n[live_key(a)]['live_bytes'] += a['size']
        return {k: v for k, v in n.items() if v['hit'] or v['free']}


def compare(what, got, expected):
    tapes.same(f'{what}: names', sorted(map(str, (r['name'] for r in got))), sorted(map(str, expected)))
    for r in got:
        e = expected.get(r['name'], collections.Counter())
        for key in ('hit', 'free', 'bytes', 'live', 'live_bytes'):
            tapes.same(f'{what} {r["name"]} {key}', r[key], e[key])
        tapes.same(f'{what} {r["name"]} pingpong', r['pingpong'], e['remote'])
        shares = {'frag': 1 - e['asked'] / e['room'] if e['room'] else None,
                  'remote': e['remote'] / e['known'] if e['known'] else None,
                  'cross_node': e['cross'] / e['placed'] if e['placed'] else None}
        for key, share in shares.items():
            tapes.check(close(r[key], share), f'{what} {r["name"]} {key}: {r[key]}, expected {share}')
        if e['known']:
            tapes.check(abs(r['life_ns'] - e['life'] / e['known']) <= 1, f'{what} {r["name"]} life')


def by_cache_cpu_node(path, args, c, begin=0, end=1 << 62):
    c.begin, c.end = begin, end
    compare('cache', stat(path, '--limit', '0', *args)['rows'],
            c.rows(lambda a: c.name.get(a['cache']), lambda a, f: c.name.get(f['cache']), lambda a: c.name.get(a['cache'])))
    compare('cpu', stat(path, '--by', 'cpu', '--limit', '0', *args)['rows'],
            c.rows(lambda a: a['cpu'], lambda a, f: f['cpu'], lambda a: a['cpu']))
    compare('node', stat(path, '--by', 'node', '--limit', '0', *args)['rows'],
            c.rows(lambda a: a['node'], lambda a, f: f['node'], lambda a: a['node']))
    return c


def by_site(path, c):
    """Sites are named in SQL; only the numbers are compared, busiest first."""
    expected = c.rows(lambda a: a['site'], lambda a, f: a['site'] if a else None, lambda a: a['site'])
    want = sorted((v['hit'], v['bytes'], v['remote'], v['live']) for v in expected.values() if v['hit'])
    rows = [r for r in stat(path, '--by', 'site', '--limit', '0')['rows'] if r['hit']]
    tapes.same('site', sorted((r['hit'], r['bytes'], r['pingpong'], r['live']) for r in rows), want)
    tapes.same('site order', [r['hit'] for r in rows], sorted((r['hit'] for r in rows), reverse=True))


def by_time(path, c, parts=7):
    rows = stat(path, '--by', 'time', '--limit', str(parts))['rows']
    width = (c.events[-1]['ts'] - c.events[0]['ts'] + 1) // parts + 1
    level = level_bytes = 0
    expected = [collections.Counter() for _ in range(parts)]
    at = 0
    for e in c.events:
        part = (e['ts'] - c.events[0]['ts']) // width
        while at < part:
            at += 1
            expected[at].update(peak=level, peak_bytes=level_bytes, live=level, live_bytes=level_bytes)
        x = expected[part]
        if e['op'] in tapes.ALLOCS and not e['flags'] & 16:
            level += 1
            level_bytes += e['size']
            x.update(hit=1, bytes=e['size'])
        elif e['op'] in tapes.FREES and 'alloc' in c.objects[e['object']]:
            level -= 1
            level_bytes -= c.objects[e['object']]['alloc']['size']
            x.update(free=1)
        x['peak'], x['peak_bytes'] = max(x['peak'], level), max(x['peak_bytes'], level_bytes)
        x['live'], x['live_bytes'] = level, level_bytes
    for i, (r, x) in enumerate(zip(rows, expected)):
        for key in ('hit', 'free', 'bytes', 'live', 'live_bytes', 'peak', 'peak_bytes'):
            tapes.same(f'part {i} {key}', r[key], x[key])
    tapes.same('parts', len(rows), parts)


def summary(path, c):
    s = stat(path)['summary']
    tapes.same('summary events', s['events'], len(c.events))
    tapes.same('summary hit', s['hit'], sum(e['op'] in tapes.ALLOCS and not e['flags'] & 16 for e in c.events))
    tapes.same('summary lost', s['lost'], 0)
    known = [(o['alloc'], o['free']) for o in c.objects.values() if 'alloc' in o and 'free' in o]
    share = sum(a['cpu'] != f['cpu'] for a, f in known) / len(known)
    tapes.check(close(s['remote'], share), f'summary remote {s["remote"]} {share}')


def filters(path, c):
    rows = stat(path, '--cache', 'kmalloc-512')['rows']
    tapes.same('--cache', [r['name'] for r in rows], ['kmalloc-512'])
    rows = stat(path, '--cpu', '2', '--limit', '0')['rows']
    tapes.same('--cpu', sum(r['hit'] for r in rows),
               sum(e['cpu'] == 2 and e['op'] in tapes.ALLOCS and not e['flags'] & 16 for e in c.events))
    for key in ('bytes', 'frag', 'pingpong', 'remote', 'cross_node', 'live', 'live_bytes'):
        values = [r[key] for r in stat(path, '--sort', key, '--limit', '12')['rows']]
        tapes.same(f'--sort {key}', values, sorted(values, key=lambda v: -1 if v is None else v, reverse=True))
    tapes.same('--limit', len(stat(path, '--limit', '3')['rows']), 3)
    head = tapes.must(SLABTAPE, 'stat', path, '--csv', '--limit', '1').split('\n')[0]
    tapes.check(head.startswith('name,hit,hit_per_s,free,bytes'), f'--csv: {head}')
    text = tapes.must(SLABTAPE, 'stat', path, '--limit', '1')
    for heading in ('Hit', 'Ping-pong', 'Frag', 'Total_req', 'Total_alloc'):
        tapes.check(heading in text, f'heading {heading}')


def usage(path):
    for args, text in ((['--by', 'moon'], 'moon'), (['--sort', 'moon'], 'moon'), (['--cache', 'moon'], 'moon'),
                       (['--time', 'moon'], 'moon'), (['--time', '2s-1s'], 'not after'), (['-L'], '--run'),
                       (['--run', '99'], '99'), (['--run', '1', '--by', 'cpu'], '--by')):
        done = tapes.run(SLABTAPE, 'stat', path, *args)
        tapes.check(done.returncode == 2 and text in done.stderr and not done.stdout,
                    f'{args}: exit {done.returncode}: {done.stderr}')


def counters_of(path, run):
    n = collections.defaultdict(dict)
    for name, counter, cpu, value in tapes.plain(path).execute(
            'SELECT c.name, n.name, cpu, value FROM counter n JOIN cache c USING(cache) WHERE run = ?', (run,)):
        n[name][counter, cpu] = value
    return n


def one_run(path, run):
    n = counters_of(path, run)
    for r in stat(path, '--run', str(run), '--limit', '0')['rows']:
        v = collections.Counter({k: x for (k, cpu), x in n[r['name']].items() if cpu is None})
        allocs, frees = v['alloc_fastpath'] + v['alloc_slowpath'], v['free_fastpath'] + v['free_slowpath']
        tapes.same(f'activity {r["name"]}', (r['alloc'], r['free']), (allocs, frees))
        tapes.same(f'fast {r["name"]}', r['fast_alloc'],
                   round(100 * v['alloc_fastpath'] / allocs, 1) if allocs else None)
    losses = stat(path, '--run', str(run), '-L', '--limit', '0')['rows']
    tapes.check(len(losses) > 5, f'-L of run {run}: {len(losses)} rows')
    for r in losses:
        v = collections.Counter({k: x for (k, cpu), x in n[r['name']].items() if cpu is None})
        tapes.same(f'loss {r["name"]}', r['loss_bytes'],
                   v['slabs'] * (4096 << v['order']) - v['objects'] * v['object_size'])
    report = {(r['name'], r['counter']): r['value'] for r in stat(path, '--run', str(run), '-r')['rows']}
    tapes.same('-r', report, {(c, k): x for c, v in n.items() for (k, cpu), x in v.items() if cpu is None and x})
    lines = tapes.must(SLABTAPE, 'stat', path, '--run', str(run), '--counters').split('\n')
    name = 'skbuff_fclone_cache'
    v = n[name]
    parts = ''.join(f' C{cpu}={v["alloc_fastpath", cpu]}' for cpu in range(4) if v.get(('alloc_fastpath', cpu)))
    tapes.check(f'{name}/alloc_fastpath:{v["alloc_fastpath", None]}{parts}' in lines, 'line of sysfs')


def main():
    with tempfile.TemporaryDirectory() as work:
        whole = tapes.sample(SLABTAPE, SOURCE, os.path.join(work, 'netperf0.tape'))
        tapes.must(SLABTAPE, 'replay', whole, '--variant', 'slub-6.1')
        one_run(whole, 3)
        one_run(whole, 4)
        usage(whole)
        # A part is enough to loop over: half a second before the workload and its first seconds.
        path = os.path.join(work, 'part.tape')
        tapes.must(SLABTAPE, 'cut', whole, '--from', '15s', '--to', '21s', '-o', path)
        c = by_cache_cpu_node(path, [], Counted(path))
        by_site(path, c)
        by_time(path, c)
        summary(path, c)
        filters(path, c)
        (begin,), = tapes.plain(path).execute('SELECT ts FROM marker')
        by_cache_cpu_node(path, ['--time', 'slabtape:BEGIN-19s'], c, begin, 19 * 10**9)
        by_cache_cpu_node(path, ['--time', f'{begin}ns,{begin + 10**9}ns'], c, begin, begin + 10**9)
    tapes.finish()


main()
