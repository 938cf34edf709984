#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What SQL refuses, and how it says so: wrong SQL, files that are no sound tapes, writing.

usage: test_refusals.py SLABTAPE EXTENSION SOURCE_DIR C_HOST
"""
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import hosts


def copy_with(work, tape, name, *changes):
    """A copy of the tape on which @changes were run with stock SQLite."""
    path = os.path.join(work, name)
    shutil.copyfile(tape, path)
    db = sqlite3.connect(path)
    for change in changes:
        db.execute(change)
    db.commit()
    db.close()
    return path


def refused(slabtape, arguments, code, *words):
    done = hosts.run(slabtape, *arguments)
    hosts.check(done.returncode == code, f'exit {code}, not {done.returncode}: {arguments}')
    for word in words + (f'slabtape: {arguments[0]}: ',):
        hosts.check(word in done.stderr, f'{word!r} in the message of {arguments}: {done.stderr!r}')
    hosts.check(not done.stdout, f'nothing on stdout: {arguments}')


def extension_says(extension, path, sql, *words):
    """The extension in a stock host gives an error with @words."""
    try:
        hosts.connect(extension, path).execute(sql).fetchall()
        hosts.check(False, f'{path}: {sql} is an error')
    except sqlite3.Error as error:
        for word in words:
            hosts.check(word in str(error), f'{word!r} in the message for {path}: {error}')


def wrong_sql(slabtape, tape):
    refused(slabtape, ['sql', tape, 'SELEC 1'], 2, 'syntax error', '^')
    refused(slabtape, ['sql', tape, 'SELECT colour FROM event'], 2, 'no such column: colour')
    refused(slabtape, ['sql', tape, 'SELECT 1 FROM nowhere'], 2, 'no such table', '.tables')
    refused(slabtape, ['sql', tape, 'DELETE FROM meta'], 2, '--write')
    refused(slabtape, ['sql', tape, 'SELECT ts FROM event_agg'], 2, 'can only be compared')
    refused(slabtape, ['sql', tape, 'SELECT 1', 'SELECT 2'], 2, 'left over')
    refused(slabtape, ['sql', tape, '--format', 'xml', 'SELECT 1'], 2, 'xml')
    refused(slabtape, ['sql', tape, '--attach', 'b', 'SELECT 1'], 2, 'NAME=TAPE')
    refused(slabtape, ['sql', tape, '-f', '/nonexistent.sql'], 2, '/nonexistent.sql')
    refused(slabtape, ['sql'], 2, 'which tape')
    refused(slabtape, ['query', tape, 'nothing'], 2, '--list')
    refused(slabtape, ['query', tape, 'callers', '--param', 'colour=red'], 2, 'colour')
    # nothing of a statement after a wrong one is run
    done = hosts.run(slabtape, 'sql', tape, "SELECT 'first'; SELECT wrong; SELECT 'third'")
    hosts.check('first' in done.stdout and 'third' not in done.stdout, 'stops at the first error')


def unsound_tapes(slabtape, extension, tape, work):
    newer = copy_with(work, tape, 'newer.tape', 'PRAGMA user_version = 99')
    refused(slabtape, ['sql', newer, 'SELECT 1'], 3, 'format 99')
    extension_says(extension, newer, 'SELECT * FROM event', 'format 99')

    extra = copy_with(work, tape, 'edited.tape', 'DROP TABLE loss',
                      'CREATE TABLE loss(cpu, ts_begin, ts_end, events, reason)')
    refused(slabtape, ['sql', extra, 'SELECT 1'], 3, "'loss'")
    extension_says(extension, extra, 'SELECT * FROM event', "'loss'")
    refused(slabtape, ['sql', tape, '--attach', f'b={extra}', 'SELECT 1'], 3, "'loss'")

    damaged = copy_with(work, tape, 'damaged.tape',
                        "UPDATE chunk_column SET data = x'00112233' WHERE id = 65")
    refused(slabtape, ['sql', damaged, 'SELECT sum(cpu) FROM event'], 3, 'chunk 1')
    extension_says(extension, damaged, 'SELECT sum(cpu) FROM event', 'chunk 1')

    plain = os.path.join(work, 'plain.db')
    sqlite3.connect(plain).execute('CREATE TABLE t(x)').connection.close()
    refused(slabtape, ['sql', plain, 'SELECT 1'], 3, 'not a tape')
    for table in ('event', 'object', 'transition', 'refill', 'slab', 'pinned', 'event_agg', 'object_agg',
                  'transition_agg', 'refill_agg'):
        extension_says(extension, plain, f'SELECT * FROM {table}', 'not a tape')


def c_host_says(host, extension, path, sql, *words):
    done = hosts.run(host, extension, path, sql)
    hosts.check(done.returncode == 1, f'an error in C: {path}: {sql}')
    for word in words:
        hosts.check(word in done.stderr, f'{word!r} in the message for {path}: {done.stderr!r}')


def in_c(host, extension, tape, work):
    c_host_says(host, extension, os.path.join(work, 'newer.tape'), 'SELECT * FROM event', 'format 99')
    c_host_says(host, extension, os.path.join(work, 'plain.db'), 'SELECT * FROM slab', 'not a tape')
    c_host_says(host, extension, os.path.join(work, 'plain.db'), 'SELECT * FROM refill_agg', 'not a tape')
    c_host_says(host, extension, tape, 'SELECT colour FROM event', 'no such column')
    c_host_says(host, os.path.join(work, 'nothing.so'), tape, 'SELECT 1', 'nothing.so')
    c_host_says(host, extension, os.path.join(work, 'nothing.tape'), 'SELECT 1', 'unable to open')
    for sql in ('SELECT * FROM event', 'SELECT * FROM event_agg', 'SELECT * FROM object'):
        c_host_says(host, extension, ':memory:', sql, 'not a tape')
    c_host_says(host, extension, tape, "SELECT * FROM event_agg(NULL, 'b')", "b")


def missing_run(slabtape, tape):
    """A run that is not there, or that recorded nothing of the kind: said, not an empty table."""
    for name in ('free-class', 'thrash', 'refill-size', 'contention', 'pinned-slabs', 'fragmentation',
                 'partial-residency'):
        refused(slabtape, ['query', tape, name, '--param', 'run=77'], 2, 'run 77')
    refused(slabtape, ['query', tape, 'first-divergence', '--param', 'a=77'], 2, 'run 77')
    done = hosts.run(slabtape, 'query', tape, 'pinned-slabs')
    hosts.check(done.returncode == 0 and '--record' in done.stderr,
                f'no run recorded it: {done.returncode} {done.stderr!r}')


def without_extension(tape):
    """Stock SQLite reads the ordinary tables."""
    db = sqlite3.connect(f'file:{tape}?mode=ro', uri=True)
    for table in ('meta', 'cache', 'chunk', 'chunk_stat', 'marker', 'run', 'counter', 'site'):
        db.execute(f'SELECT * FROM {table} LIMIT 1').fetchall()
    hosts.check(db.execute("SELECT value FROM meta WHERE key = 'complete'").fetchone()[0] == 1,
                'stock SQLite reads meta')
    try:
        db.execute('SELECT * FROM event')
        hosts.check(False, 'event needs the extension')
    except sqlite3.OperationalError as error:
        hosts.check('slabtape_event' in str(error), f'the module is named: {error}')


def front_ends(slabtape, tape, work):
    """The formats, -f, --write, a source that is no tape yet."""
    one = "SELECT 1 AS a, 'x,\"y' AS b, NULL AS c"
    hosts.check(hosts.run(slabtape, 'sql', tape, one, '--csv').stdout == 'a,b,c\n1,"x,""y",\n', 'csv')
    hosts.check(hosts.json_results(hosts.run(slabtape, 'sql', tape, one, '--json').stdout) ==
                [[[1, 'x,"y', None]]], 'json')
    hosts.check(hosts.run(slabtape, 'sql', tape, "SELECT 1 AS a, 'x|y' AS b", '--format',
                          'markdown').stdout == '|   a | b    |\n| --: | ---- |\n|   1 | x\\|y |\n', 'markdown')
    path = os.path.join(work, 'q.sql')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('-- a comment\nSELECT 1;\nSELECT 2;\n')
    hosts.check(hosts.run(slabtape, 'sql', tape, '-f', path, '--csv').stdout == '1\n1\n2\n2\n', '-f')
    typed = subprocess.run([slabtape, 'sql', tape], input='.format csv\nSELECT 1\n AS a;\n.nonsense\n'
                           'SELEC;\n.tables\nSELECT 2 AS b;\n.quit\nSELECT 3 AS c;\n', capture_output=True,
                           text=True, timeout=60, check=False)
    hosts.check(typed.stdout.startswith('a\n1\n') and typed.stdout.endswith('b\n2\n') and
                'event_agg' in typed.stdout and typed.returncode == 0, f'the shell: {typed.stdout}')
    hosts.check('.nonsense' in typed.stderr and 'syntax error' in typed.stderr, 'errors do not end it')
    writable = copy_with(work, tape, 'writable.tape')
    done = hosts.run(slabtape, 'sql', writable, '--write', "INSERT INTO meta VALUES('note', 'mine')")
    hosts.check(done.returncode == 0, f'--write: {done.stderr}')
    hosts.check('mine' in hosts.run(slabtape, 'info', writable).stdout, 'what was written is there')
    script = os.path.join(work, 'case.ops')
    with open(script, 'w', encoding='utf-8') as f:
        f.write(OPS)
    done = hosts.run(slabtape, 'sql', script, 'SELECT count(*) AS n FROM object', '--csv')
    hosts.check(done.stdout == 'n\n2\n', f'a source is imported first: {done.stdout} {done.stderr}')


OPS = '''slabops 1
case tiny
machine cpus=2 nodes=1 cpu_node=0,0
cache size=256 align=0 min_partial=- cpu_partial=- defrag=1023 hwalign=0 sheaf_capacity=- gfp=kernel
ids 2
ops
a 0 0
a 1 1
f 1 0
end
'''


def main():
    slabtape, extension, source, host = (os.path.abspath(p) for p in sys.argv[1:5])
    with tempfile.TemporaryDirectory() as work:
        tape = os.path.join(work, 'good.tape')
        recording = os.path.join(source, 'traces/samples/src/6.1-netperf0-4c2n')
        done = hosts.run(slabtape, 'import', '-q', '-o', tape, recording)
        if done.returncode:
            sys.exit(done.stderr)
        wrong_sql(slabtape, tape)
        unsound_tapes(slabtape, extension, tape, work)
        in_c(host, extension, tape, work)
        missing_run(slabtape, tape)
        without_extension(tape)
        front_ends(slabtape, tape, work)
    hosts.finish()


main()
