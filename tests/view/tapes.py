# SPDX-License-Identifier: MIT
"""Tapes for the tests of this folder, and every event of one in memory."""
import collections
import csv
import io
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from checks import check, finish, run  # noqa: E402

ALLOCS = ('alloc', 'alloc_bulk', 'sheaf_alloc')
FREES = ('free', 'free_rcu', 'free_bulk')
SAMPLE = 'traces/samples/src/6.1-netperf0-4c2n'


def same(what, got, expected):
    check(got == expected, f'{what}: {got!r}, expected {expected!r}')


def must(*command, **kwargs):
    """Run; the test ends when it fails."""
    done = run(*command, **kwargs)
    if done.returncode:
        sys.exit(f'{" ".join(command)}: exit {done.returncode}: {done.stderr}')
    return done.stdout


def ask(slabtape, path, sql):
    """Rows of one query as dictionaries."""
    return json.loads(must(slabtape, 'sql', path, '--format', 'json', sql) or '[]')


def plain(path):
    """The tape in Python's own SQLite: ordinary tables only."""
    return sqlite3.connect(f'file:{path}?mode=ro', uri=True)


def sample(slabtape, source, path):
    must(slabtape, 'import', '-q', '-o', path, os.path.join(source, SAMPLE))
    return path


def gen(slabtape, path, pattern, *args):
    must(slabtape, 'gen', pattern, '-q', '-o', path, *args)
    return path


def events(slabtape, path):
    """Every event as a dictionary."""
    text = must(slabtape, 'sql', path, '--csv', 'SELECT seq, ts, cpu, node, op, cache, object, size, site, flags,'
                ' mem_node, tid, address, node_req FROM event')
    return [{k: v if k == 'op' else int(v) if v else None for k, v in row.items()}
            for row in csv.DictReader(io.StringIO(text))]


def objects(all_events):
    """object id -> {'alloc': event, 'free': event}."""
    out = collections.defaultdict(dict)
    for e in all_events:
        if e['op'] in ALLOCS:
            out[e['object']]['alloc'] = e
        elif e['op'] in FREES:
            out[e['object']]['free'] = e
    return out


def ftrace(path, rows):
    """Write ftrace text: rows of (seconds, cpu, 'alloc'|'free', cache, pointer, bytes)."""
    with open(path, 'w', encoding='utf-8') as f:
        f.write('# tracer: nop\n#\n')
        for seconds, cpu, op, cache, pointer, size in rows:
            head = f'  task-1     [{cpu:03d}] .....  {seconds:.6f}: '
            if op == 'alloc':
                f.write(f'{head}kmem_cache_alloc: call_site=fn+0x1/0x10 ptr={pointer:016x} name={cache}'
                        f' bytes_req={size} bytes_alloc={size} gfp_flags=GFP_KERNEL node=-1 accounted=false\n')
            else:
                f.write(f'{head}kmem_cache_free: call_site=fn+0x2/0x10 ptr={pointer:016x} name={cache}\n')
    return path
