#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports, read back by other programs (Python's csv and json, babeltrace2) and compared with the tape.

usage: test_exports.py SLABTAPE SOURCE_DIR
"""
import collections
import csv
import json
import os
import re
import shutil
import sys
import tempfile

import tapes

SLABTAPE, SOURCE = (os.path.abspath(p) for p in sys.argv[1:3])
NUMBERS = ('seq', 'ts', 'cpu', 'object', 'size', 'node_req', 'mem_node', 'tid', 'flags', 'address')


def export(path, fmt, out, *args):
    tapes.must(SLABTAPE, 'export', path, '--to', fmt, '-o', out, '-q', *args)
    return out


class Tape:
    def __init__(self, path):
        self.path = path
        self.events = tapes.events(SLABTAPE, path)
        self.objects = tapes.objects(self.events)
        db = tapes.plain(path)
        self.cache = dict(db.execute('SELECT cache, name FROM cache'))
        self.site = {s: (f'{symbol}+0x{offset:x}' if symbol else f'{module}+0x{offset:x}' if module else
                         f'0x{address & (1 << 64) - 1:x}', module, symbol)
                     for s, symbol, offset, module, address in
                     db.execute('SELECT site, symbol, offset, module, address FROM site')}

    def some(self, begin=0, end=1 << 62, cache=None):
        return [e for e in self.events if begin <= e['ts'] < end and (cache is None or self.cache.get(e['cache']) == cache)]

    def names(self, event):
        return self.cache.get(event['cache']) or '', self.site.get(event['site'], ('',))[0]


def rows_equal(what, t, rows, events):
    tapes.same(f'{what}: rows', len(rows), len(events))
    for r, e in zip(rows, events):
        for key in NUMBERS:
            got = None if r[key] in (None, '') else int(r[key])
            if got != e[key]:
                tapes.check(False, f'{what}: seq {e["seq"]} {key}: {got}, expected {e[key]}')
                return
        if (r['op'], r['cache'] or '', r['site'] or '') != (e['op'], *t.names(e)):
            tapes.check(False, f'{what}: seq {e["seq"]}: {r}')
            return


def lines(t, work):
    out = export(t.path, 'csv', os.path.join(work, 'a.csv'))
    with open(out, encoding='utf-8', newline='') as f:
        rows_equal('csv', t, list(csv.DictReader(f)), t.events)
    out = export(t.path, 'json', os.path.join(work, 'a.jsonl'), '--cache', 'kmalloc-512')
    with open(out, encoding='utf-8') as f:
        rows_equal('json of a cache', t, [json.loads(line) for line in f], t.some(cache='kmalloc-512'))
    text = tapes.must(SLABTAPE, 'export', t.path, '--to', 'json', '--time', '16s-16.2s')
    rows_equal('json of a time, stdout', t, [json.loads(line) for line in text.splitlines()],
               t.some(16 * 10**9, 16200 * 10**6))


def frames(t, alloc):
    _, module, symbol = t.site.get(alloc['site'], ('', None, None))
    return ';'.join(filter(None, (t.cache.get(alloc['cache']) or 'pages', module, symbol or 'unknown')))


def stacks(t, work):
    want = {k: collections.Counter() for k in ('hit', 'bytes', 'live_bytes')}
    for o in t.objects.values():
        if 'alloc' in o:
            at, size = frames(t, o['alloc']), o['alloc']['size']
            want['hit'][at] += 1
            want['bytes'][at] += size
            want['live_bytes'][at] += 0 if 'free' in o else size
    for weight, expected in want.items():
        with open(export(t.path, 'folded', os.path.join(work, 'f'), '--weight', weight), encoding='utf-8') as f:
            got = {stack: int(n) for stack, n in (line.rsplit(' ', 1) for line in f)}
        tapes.same(f'folded {weight}', got, {k: v for k, v in expected.items() if v})
    with open(export(t.path, 'speedscope', os.path.join(work, 's.json')), encoding='utf-8') as f:
        s = json.load(f)
    tapes.same('speedscope schema', s['$schema'], 'https://www.speedscope.app/file-format-schema.json')
    names = [f['name'] for f in s['shared']['frames']]
    tapes.same('speedscope frames are unique', len(set(names)), len(names))
    for profile, expected in zip(s['profiles'], want.values()):
        got = {';'.join(names[i] for i in stack): w for stack, w in zip(profile['samples'], profile['weights'])}
        tapes.same(f'speedscope {profile["name"]}', got, {k: v for k, v in expected.items() if v})
        tapes.same('speedscope end', (profile['type'], profile['endValue']), ('sampled', sum(profile['weights'])))


def schema(trace):
    """Chrome's trace event format, as far as we use it."""
    tapes.same('perfetto keys', sorted(trace), ['displayTimeUnit', 'otherData', 'traceEvents'])
    open_slices = {}
    for e in trace['traceEvents']:
        ok = isinstance(e['name'], str) and isinstance(e['pid'], int) and isinstance(e['tid'], int) \
            and isinstance(e['ts'], (int, float)) and e['ts'] >= 0
        if e['ph'] == 'M':
            ok = ok and e['name'] in ('process_name', 'thread_name') and isinstance(e['args']['name'], str)
        elif e['ph'] == 'i':
            ok = ok and e['s'] == 't'
        elif e['ph'] == 'X':
            ok = ok and e['dur'] >= 0
        elif e['ph'] == 'C':
            ok = ok and e['args'] and all(isinstance(v, (int, float)) for v in e['args'].values())
        elif e['ph'] == 'b':
            ok = ok and e['id'] not in open_slices
            open_slices[e['id']] = e
        elif e['ph'] == 'e':
            ok = ok and open_slices[e['id']]['ts'] <= e['ts'] and open_slices[e['id']]['name'] == e['name']
        else:
            ok = False
        if not ok:
            tapes.check(False, f'perfetto: {e}')
            return


def perfetto_events(t, work):
    with open(export(t.path, 'perfetto', os.path.join(work, 'p.json')), encoding='utf-8') as f:
        trace = json.load(f)
    schema(trace)
    got = [e for e in trace['traceEvents'] if e['ph'] == 'i']
    tapes.same('perfetto events', len(got), len(t.events))
    for g, e in zip(got, t.events):
        name = f'{e["op"]} {t.names(e)[0]}'.strip()
        if (g['args']['seq'], g['tid'], round(g['ts'] * 1000), g['name'], g['args'].get('object')) != \
                (e['seq'], e['cpu'], e['ts'], name, e['object']):
            tapes.check(False, f'perfetto: {g}, expected {e}')
            break
    live = [e for e in trace['traceEvents'] if e['ph'] == 'C' and e['name'] == 'live bytes']
    level = peak = 0
    for e in t.events:
        if e['op'] in tapes.ALLOCS and not e['flags'] & 16:
            level += e['size']
        elif e['op'] in tapes.FREES and 'alloc' in t.objects[e['object']]:
            level -= t.objects[e['object']]['alloc']['size']
        peak = max(peak, level)
    tapes.same('perfetto live: peak, end', (max(e['args']['peak'] for e in live), live[-1]['args']['at the end']),
               (peak, level))


def perfetto_run(work):
    path = tapes.gen(SLABTAPE, os.path.join(work, 'h.tape'), 'hackbench', '--cpus', '4', '--nodes', '2', '--events', '40000')
    tapes.must(SLABTAPE, 'replay', path, '--variant', 'slub-6.1')
    tapes.must(SLABTAPE, 'replay', path, '--variant', 'slub-7.2', '--mode', 'simulated')
    for run, time in ((1, 'ts'), (2, 'vts')):
        with open(export(path, 'perfetto', os.path.join(work, 'r.json'), '--run', str(run)), encoding='utf-8') as f:
            trace = json.load(f)
        schema(trace)
        kinds = collections.defaultdict(list)
        for e in trace['traceEvents']:
            kinds[e['ph'], e['cat']].append(e)
        refills = tapes.ask(SLABTAPE, path, f'SELECT seq, {time} AS at, cpu, source, objects FROM refill WHERE run = {run}')
        tapes.same(f'run {run} refills', [(e['args']['seq'], round(e['ts'] * 1000), e['tid'], e['args']['source'],
                                           e['args']['objects']) for e in kinds['X', 'refill']],
                   [tuple(r.values()) for r in refills])
        drained = tapes.ask(SLABTAPE, path, f"SELECT count(*) AS n FROM transition WHERE run = {run} AND from_state ="
                            " 'cpu_partial' AND to_state IN ('partial', 'empty', 'none')")[0]['n']
        tapes.same(f'run {run} drains', sum(e['args']['slabs'] for e in kinds['X', 'drain']), drained)
        slabs = tapes.ask(SLABTAPE, path, f'SELECT slab, born_ts, died_ts FROM slab WHERE run = {run}')
        tapes.same(f'run {run} slabs', sorted((e['id'], round(e['ts'] * 1000)) for e in kinds['b', 'slab']),
                   sorted((s['slab'], s['born_ts']) for s in slabs))
        tapes.same(f'run {run} slab ends', sorted((e['id'], round(e['ts'] * 1000)) for e in kinds['e', 'slab']),
                   sorted((s['slab'], s['died_ts']) for s in slabs if s['died_ts'] is not None))
        samples = tapes.plain(path).execute(f'SELECT {time}, partial FROM sample WHERE run = {run}').fetchall()
        tapes.same(f'run {run} samples', sorted((round(e['ts'] * 1000), e['args']['partial']) for e in kinds['C', 'slabs']),
                   sorted(samples))
        locks = tapes.plain(path).execute(f'SELECT sum(acquisitions) FROM lock WHERE run = {run}').fetchone()[0]
        tapes.same(f'run {run} locks', sum(x['acquisitions'] for x in trace['otherData']['locks']), locks)
    rows = list(csv.DictReader(tapes.must(SLABTAPE, 'export', path, '--to', 'csv', '--run', '1').splitlines()))
    want = tapes.ask(SLABTAPE, path, 'SELECT seq, slab, from_state, to_state FROM transition WHERE run = 1')
    tapes.same('csv of a run', [(int(r['seq']), int(r['slab']), r['from_state'], r['to_state']) for r in rows],
               [tuple(w.values()) for w in want])
    tapes.check(len(rows) > 1000, f'csv of a run: only {len(rows)} rows')
    for args, code, text in ((['perfetto', '--run', '9'], 2, '--run 9'), (['folded', '--run', '1'], 2, '--run'),
                             (['ctf'], 2, '-o DIR'), (['ops', '--time', '1s-2s'], 2, '--time'), (['x'], 2, 'no such format'),
                             (['csv', '--weight', 'hit'], 2, '--weight'), (['folded', '--weight', 'x'], 2, '--weight')):
        done = tapes.run(SLABTAPE, 'export', path, '--to', *args)
        tapes.check(done.returncode == code and text in done.stderr, f'{args}: {done.returncode} {done.stderr}')


# One event as babeltrace2's text shows it, its time in ns.
EVENT = re.compile(r'\[(\d+)\] (?:\(.*?\) )?slabtape:(\w+): \{ cpu_id = (\d+) \}, \{ (.*) \}$')
FIELD = re.compile(r'(\w+) = ("(?:[^"\\]|\\.)*"|-?\d+)')


def ctf(t, work):
    out = export(t.path, 'ctf', os.path.join(work, 'c'))
    got = []
    for line in tapes.must('babeltrace2', '--clock-cycles', out).splitlines():
        m = EVENT.match(line)
        if not m:
            tapes.check(False, f'ctf: {line}')
            return
        fields = {k: v.strip('"') for k, v in FIELD.findall(m.group(4))}
        got.append({'ts': m.group(1), 'op': m.group(2), 'cpu': m.group(3), **fields})
    got.sort(key=lambda e: int(e['seq']))  # readers merge equal times of two CPUs as they like
    tapes.same('ctf events', len(got), len(t.events))
    whole = (1 << 64) - 1
    for g, e in zip(got, t.events):
        want = {k: e[k] for k in NUMBERS}
        want['object'] = whole if e['object'] is None else e['object']
        want['address'] = e['address'] & whole
        names = (g['op'], *(g[k] if g[k] != '-' else '' for k in ('cache', 'site')))
        if {k: int(g[k]) for k in NUMBERS} != want or names != (e['op'], *t.names(e)):
            diff = {k: (g[k], want[k]) for k in NUMBERS if int(g[k]) != want[k]}
            tapes.check(False, f'ctf: seq {e["seq"]}: {diff}, {names}, expected {(e["op"], *t.names(e))}')
            break
    done = tapes.run(SLABTAPE, 'export', t.path, '--to', 'ctf', '-o', out)
    tapes.check(done.returncode == 7 and 'exists already' in done.stderr, f'ctf over a directory: {done.stderr}')


def ctf_loss(t, work):
    path = os.path.join(work, 'lossy.tape')
    shutil.copy(t.path, path)
    tapes.must(SLABTAPE, 'sql', path, '--write', "INSERT INTO loss VALUES(1, 16000000000, 16000000001, 77, 'a test'),"
               "(3, 16000000000, 16000000001, 5, 'a test')")
    done = tapes.run('babeltrace2', export(path, 'ctf', os.path.join(work, 'lossy')))
    n = sum(int(x) for x in re.findall(r'iscarded (\d+) event', done.stderr + done.stdout))
    tapes.same('events that babeltrace2 says were lost', n, 82)


def damage(t, work):
    """A full disk: exit 7, nothing left, what was there stays."""
    done = tapes.run(SLABTAPE, 'export', t.path, '--to', 'csv', '-o', '/dev/full')
    tapes.check(done.returncode == 7 and 'No space' in done.stderr, f'/dev/full: {done.returncode} {done.stderr}')
    kept = os.path.join(work, 'kept.csv')
    with open(kept, 'w', encoding='utf-8') as f:
        f.write('old')
    # A limit on file sizes does what a full disk does: the write fails in the middle.
    for fmt, out in (('csv', kept), ('perfetto', kept), ('ctf', os.path.join(work, 'none'))):
        done = tapes.run('sh', '-c', 'trap "" XFSZ; ulimit -f 40; exec "$@"', 'sh', SLABTAPE, 'export', t.path, '--to', fmt,
                         '-o', out)
        tapes.check(done.returncode == 7 and out in done.stderr and 'File too large' in done.stderr, f'{fmt}: exit {done.returncode}: {done.stderr}')
    with open(kept, encoding='utf-8') as f:
        tapes.same('the old file stays', f.read(), 'old')
    left = [n for n in os.listdir(work) if n.endswith('.part') or n == 'none']
    tapes.same('left over', left, [])
    done = tapes.run(SLABTAPE, 'export', t.path, '--to', 'csv', '-o', kept)
    tapes.check(f'{len(t.events)} records, events {len(t.events)}; read back' in done.stderr, done.stderr)


def main():
    with tempfile.TemporaryDirectory() as work:
        whole = tapes.sample(SLABTAPE, SOURCE, os.path.join(work, 'whole.tape'))
        path = os.path.join(work, 'part.tape')
        tapes.must(SLABTAPE, 'cut', whole, '--from', '15.5s', '--to', '18.6s', '-o', path)
        t = Tape(path)
        tapes.check(len(t.events) > 4000, f'only {len(t.events)} events')
        lines(t, work)
        stacks(t, work)
        perfetto_events(t, work)
        perfetto_run(work)
        ctf(t, work)
        ctf_loss(t, work)
        damage(t, work)
    tapes.finish()


main()
