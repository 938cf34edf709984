#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real programs under `slabtape record`: nothing lost unseen, nothing twice, output unchanged.

Each is run alone, then recorded in front of an independent counting library: the tape has to hold
exactly what reached the C library, without one lifetime violation, and replays.
usage: test_programs.py BUILD_DIR HELPERS_DIR native|lttng root|user CASE
"""
import os
import random
import subprocess

import recorder
from recorder import check

SQL = ("create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<60000)"
       " insert into t select x, x*7919%10007 from c; create index i on t(b);"
       " select b%7, count(*), sum(a) from t group by 1;")
PYTHON = ("import json; d=[{str(i): [i]*5} for i in range(20000)]; s=json.dumps(d);"
          "print(len(s), len(json.loads(s)))")
PERL = "my %h; $h{$_ % 5000} .= qq(x$_) for 1..100000; print scalar(keys %h), qq(\\n)"
SHELL = ("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$(echo $i | sed s/1/2/); (y=$x; echo sub $y); done;"
         " echo $x; ls /usr | sort | head -2")


def exact(place, command, needs_all=True, options=()):
    """Record @command; the tape agrees with the independent count.  Returns the summary."""
    alone = place.run(*command)
    done, summary, (allocs, frees) = place.record_counted(command, options)
    check(done.returncode == alone.returncode, f'status {done.returncode}, alone {alone.returncode}:'
          f' {done.stderr}')
    check(done.stdout == alone.stdout, 'output unchanged')
    check(allocs > 0, 'the counting library was there')
    recorded = summary['allocs'] + summary['frees']
    check(recorded + summary['lost'] == allocs + frees,
          f'recorded {summary["allocs"]} + {summary["frees"]} + lost {summary["lost"]} is not {allocs} + {frees}'
          f' ({summary})')
    check(summary['violations'] == 0, f'violations {summary["violations"]}')
    if needs_all:
        check(summary['lost'] == 0, f'lost {summary["lost"]}')
        check((summary['allocs'], summary['frees']) == (allocs, frees), 'allocs and frees')
        check(summary['inferred_allocs'] + summary['inferred_frees'] + summary['orphan_frees'] == 0,
              'nothing inferred')
    place.verify()
    rows = place.sql('SELECT count(*) AS n FROM event WHERE op IN (\'alloc\', \'free\')')
    check(rows[0]['n'] >= recorded, f'rows in the tape {rows}')
    return summary


def replays(place, *options):
    done = place.run(place.slabtape, 'replay', place.path('t.tape'), '--variant', 'slub-6.1', '--json',
                     *options)
    check(done.returncode == 0, f'replay: {done.stderr}')


def sqlite3(place):
    s = exact(place, ['sqlite3', ':memory:', SQL])
    check(s['bytes_per_event'] <= 2.5, f'bytes/event {s["bytes_per_event"]}')
    replays(place, '--strict')


def python3(place):
    s = exact(place, ['/usr/bin/python3', '-S', '-c', PYTHON])
    check(s['events'] > 50000, 'PYTHONMALLOC=malloc was passed on')


def sort(place):
    random.seed(1)
    with open(place.path('numbers'), 'w', encoding='ascii') as f:
        f.writelines(f'{random.randrange(10**9)}\n' for _ in range(200000))
    exact(place, ['sort', '--parallel=2', place.path('numbers')])


def gcc(place):
    with open(place.path('t.c'), 'w', encoding='ascii') as f:
        f.write('#include <stdio.h>\nint main(void) { printf("%d\\n", 42); return 0; }\n')
    os.chmod(place.path('t.c'), 0o644)
    s = exact(place, ['gcc', '-O2', '-o', place.path('t'), place.path('t.c')])
    check(s['execs'] >= 4, f'driver, cc1, as, ld: {s["execs"]}')


def perl(place):
    exact(place, ['perl', '-e', PERL])


def git(place):
    place.run('git', 'init', '-q', 'r')
    for i in range(20):
        place.run('sh', '-c', f'cd r && echo {i} > f && git add f && git -c user.name=a -c user.email=a@b '
                  f'commit -q -m {i} --date=2000-01-01')
    exact(place, ['git', '-C', 'r', '--no-pager', 'log', '--stat'])


def threads(place):
    s = exact(place, [place.path('exchange'), '4', '40000'], options=['--lossless'])
    check(s['events'] > 300000, f'events {s["events"]}')
    check(place.sql('SELECT count(DISTINCT tid) AS n FROM event')[0]['n'] >= 4, 'threads')
    replays(place, '--strict')


def generations(place):
    exact(place, [place.path('exchange'), '6', '400', '60'], options=['--lossless'])


def forks(place):
    s = exact(place, ['sh', '-c', SHELL])
    check(s['forks'] >= 20 and s['execs'] >= 14, f'{s["forks"]} forks, {s["execs"]} programs')
    rows = place.sql('SELECT op, count(*) AS n FROM event GROUP BY op')
    ops = {r['op']: r['n'] for r in rows}
    check(ops.get('fork') == s['forks'] and ops.get('exec') == s['execs'], f'rows {ops}')
    replays(place)


def redis(place):
    """redis-server (jemalloc linked in as a library) under its own benchmark."""
    port = 20000 + os.getpid() % 20000
    # The server is the same program as redis-check-rdb of redis-tools, told apart by its name;
    # the redis-server package would start a service of its own on the machine.
    os.symlink('/usr/bin/redis-check-rdb', place.path('redis-server'))
    server = place.start(*place.record_args(), place.path('redis-server'), '--port', str(port), '--save', '',
                         '--dir', place.dir)
    try:
        for _ in range(100):
            if place.run('redis-cli', '-p', str(port), 'ping').stdout == 'PONG\n':
                break
            subprocess.run(['sleep', '0.1'], check=True)
        bench = place.run('redis-benchmark', '-p', str(port), '-q', '-n', '20000', '-t', 'set,lpush,hset')
        check(bench.returncode == 0, bench.stderr)
        place.run('redis-cli', '-p', str(port), 'bgsave')
        place.run('redis-cli', '-p', str(port), 'shutdown', 'nosave')
        _, err = server.communicate(timeout=60)
    finally:
        if server.poll() is None:
            server.terminate()
    check(server.returncode == 0, f'status {server.returncode}: {err}')
    place.verify()
    check('outside loss 0' in err and 'lost 0' in err, err)


recorder.main({f.__name__: f for f in (sqlite3, python3, sort, gcc, perl, git, threads, generations, forks,
                                       redis)})
