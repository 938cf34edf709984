#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""info, verify and cut against what SQL counts on the same tape.

usage: test_verbs.py SLABTAPE EXTENSION SOURCE_DIR
"""
import csv
import io
import json
import os
import shutil
import sqlite3
import sys
import tempfile

import hosts


class Tapes:
    def __init__(self, slabtape, work):
        self.slabtape, self.work, self.nr = slabtape, work, 0

    def run(self, *args):
        return hosts.run(self.slabtape, *args, cwd=self.work)

    def sql(self, tape, query):
        """The rows of a query."""
        return hosts.ask_ours(self.slabtape, tape, query, cwd=self.work)[0]

    def one(self, tape, query):
        return self.sql(tape, query)[0][0]

    def cut(self, *args):
        self.nr += 1
        name = f'cut{self.nr}.tape'
        done = self.run('cut', 'whole.tape', '-o', name, *args)
        hosts.check(done.returncode == 0, f'cut {args}: {done.stderr}')
        done = self.run('verify', name)
        hosts.check(done.returncode == 0, f'a cut verifies: {done.stderr}')
        return name


def info(t):
    report = json.loads(t.run('info', 'whole.tape', '--json').stdout)
    hosts.check(report['complete'] is True and report['tape'] == 'whole.tape', 'complete')
    hosts.check(report['events'] == t.one('whole.tape', 'SELECT count(*) FROM event'), 'events')
    hosts.check(report['objects'] == t.one('whole.tape', 'SELECT count(*) FROM object'), 'objects')
    ops = {op: n for op, n in t.sql('whole.tape', 'SELECT op, count(*) FROM event GROUP BY op')}
    hosts.check(report['ops'] == ops, f'ops: {report["ops"]} {ops}')
    times = t.sql('whole.tape', 'SELECT min(ts), max(ts) FROM event')[0]
    hosts.check([report['ts_min'], report['ts_max']] == times, 'time range')
    inferred = t.sql('whole.tape', "SELECT sum(op = 'alloc'), sum(op = 'free') FROM event"
                     " WHERE flags & 1")[0]
    hosts.check([report['inferred_allocs'], report['inferred_frees']] == inferred, 'inferred')
    orphans = t.one('whole.tape', 'SELECT count(*) FROM event WHERE flags & 2')
    hosts.check(report['orphan_frees'] == orphans, 'orphans')
    live = t.one('whole.tape', 'SELECT max(slot) + 1 FROM event')
    hosts.check(report['peak_live'] == live, f'peak_live {report["peak_live"]} {live}')
    caches = t.sql('whole.tape', "SELECT cache, sum(op = 'alloc'), sum(op = 'free'), sum(size) FROM event"
                   " WHERE cache IS NOT NULL GROUP BY cache")
    found = sorted([c['cache'], c['allocs'], c['frees'], c['bytes']] for c in report['caches']
                   if c['allocs'] + c['frees'])
    hosts.check(found == sorted(caches), 'caches')
    hosts.check([m['name'] for m in report['markers']] ==
                ['slabtape:BEGIN netperf0', 'slabtape:END netperf0'], 'markers')
    hosts.check(len(report['cpus']) == 4 and sum(c['events'] for c in report['cpus']) == report['events'],
                'cpus')
    rows = list(csv.DictReader(io.StringIO(t.run('info', 'whole.tape', '--csv').stdout)))
    hosts.check({'section': 'tape', 'name': 'events', 'value': str(report['events'])} in rows, 'csv')
    text = t.run('info', 'whole.tape').stdout
    hosts.check(f'events     {report["events"]} in' in text and 'skbuff_fclone_cache' in text, 'text')


def cut(t):
    begin, end = (r[0] for r in t.sql('whole.tape', 'SELECT seq FROM marker ORDER BY seq'))
    window = t.cut('--from', 'slabtape:BEGIN', '--to', 'slabtape:END')
    hosts.check(t.one(window, 'SELECT count(*) FROM event') == end - begin, 'events of a window')
    same = ('SELECT sum(ts), sum(cpu), sum(size), total(address), sum(site) FROM event'
            ' WHERE seq >= {} AND seq < {}')
    hosts.check(t.sql('whole.tape', same.format(begin, end)) == t.sql(window, same.format(0, end)),
                'the same events')
    lost_allocs = t.one('whole.tape', f'SELECT count(*) FROM object WHERE (alloc_seq < {begin} OR alloc_seq'
                        f' IS NULL) AND free_seq >= {begin} AND free_seq < {end}')
    hosts.check(t.one(window, 'SELECT count(*) FROM event WHERE flags & 2') == lost_allocs, 'orphans')
    slice_ = t.cut('--from', '20s', '--to', '21500ms', '--cpu', '2')
    expected = t.one('whole.tape', 'SELECT count(*) FROM event WHERE ts >= 20000000000'
                     ' AND ts < 21500000000 AND cpu = 2')
    hosts.check(expected > 0 and t.one(slice_, 'SELECT count(*) FROM event') == expected,
                f'a time slice of a CPU: {expected}')
    cache = t.cut('--cache', 'filp')
    expected = t.one('whole.tape', "SELECT count(*) FROM event WHERE cache IS NULL OR cache ="
                     " (SELECT cache FROM cache WHERE name = 'filp')")
    got = t.one(cache, "SELECT count(*) FROM event WHERE cache IS NULL OR cache ="
                " (SELECT cache FROM cache WHERE name = 'filp')")
    hosts.check(got == t.one(cache, 'SELECT count(*) FROM event') and got <= expected and got > 10000,
                f'a cache: {got} {expected}')
    for args, word in ((['--from', 'nowhere'], 'nowhere'), (['--cache', 'nothing'], 'nothing'),
                       (['--from', '5s', '--to', '4s'], 'not after')):
        done = t.run('cut', 'whole.tape', '-o', 'never.tape', *args)
        hosts.check(done.returncode == 2 and word in done.stderr, f'{args}: {done.stderr}')
    hosts.check(not os.path.exists(os.path.join(t.work, 'never.tape')), 'no tape after an error')
    hosts.check(t.run('cut', 'whole.tape').returncode == 2, '--output is needed')


def verify(t):
    whole = os.path.join(t.work, 'whole.tape')
    report = json.loads(t.run('verify', 'whole.tape', '--json').stdout)
    hosts.check(report['ok'] is True and report['error'] is None, 'sound')
    for name, change in (
            ('stat', 'UPDATE chunk_stat SET events = events + 1 WHERE id = 0'),
            ('column', "UPDATE chunk_column SET data = x'00' WHERE id = 64"),
            ('gap', 'DELETE FROM chunk WHERE id = 1'),
            ('count', "UPDATE meta SET value = value + 1 WHERE key = 'events'")):
        path = os.path.join(t.work, f'{name}.tape')
        shutil.copyfile(whole, path)
        db = sqlite3.connect(path)
        db.execute(change)
        db.commit()
        db.close()
        done = t.run('verify', path)
        hosts.check(done.returncode == 3 and done.stderr.startswith('slabtape: verify: '),
                    f'{name} is found: {done.returncode} {done.stderr}')
    part = os.path.join(t.work, 'part.tape')
    with open(whole, 'rb') as f:
        head = f.read(os.path.getsize(whole) // 2)
    with open(part, 'wb') as f:
        f.write(head)
    hosts.check(t.run('verify', part).returncode == 3, 'a truncated file')
    hosts.check(t.run('info', part).returncode == 3, 'info of a truncated file')


def main():
    slabtape, _, source = (os.path.abspath(p) for p in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as work:
        t = Tapes(slabtape, work)
        done = t.run('import', '-q', '-o', 'whole.tape',
                     os.path.join(source, 'traces/samples/src/6.1-netperf0-4c2n'))
        if done.returncode:
            sys.exit(done.stderr)
        info(t)
        cut(t)
        verify(t)
    hosts.finish()


main()
