#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`slabtape record --kernel` on this machine's own kernel: needs root and tracefs.

usage: test_kernel.py BUILD_DIR HELPERS_DIR kernel root|user CASE
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from recorder import check, main

TRACEFS = '/sys/kernel/tracing'
EVENTS = ('kmalloc', 'kmem_cache_alloc', 'kfree', 'kmem_cache_free')
WORKER = '''
import os, socket, sys
for line in sys.stdin:
    for _ in range(int(line)):
        os.close(os.open('/dev/null', os.O_RDONLY))
        a, b = socket.socketpair()
        a.close()
        b.close()
    print('done', flush=True)
'''


def instances():
    return [os.path.basename(p) for p in glob.glob(f'{TRACEFS}/instances/slabtape.*')]


def mounts():
    with open('/proc/self/mounts', encoding='ascii') as f:
        return sorted(f)


def wait_for(condition, what):
    for _ in range(400):
        if condition():
            return
        time.sleep(0.025)
    check(False, what)


class Worker:
    """A process that opens files and sockets when told to and does nothing else."""

    def __init__(self):
        self.p = subprocess.Popen([sys.executable, '-c', WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        self.work(1)

    def work(self, rounds):
        self.p.stdin.write(f'{rounds}\n')
        self.p.stdin.flush()
        check(self.p.stdout.readline() == 'done\n', 'the worker worked')
        # Until it sleeps, its way there and interrupts that hit it are events of its own.
        wait_for(self.sleeps, 'the worker waits for orders')

    def sleeps(self):
        with open(f'/proc/{self.p.pid}/stat', encoding='ascii') as f:
            return f.read().rsplit(')', 1)[1].split()[0] == 'S'

    def close(self):
        self.p.stdin.close()
        self.p.wait()
        self.p.stdout.close()


class Witness:
    """A tracefs instance of the test's own, with the same events: an independent count."""

    def __init__(self, pid, filters=None):
        self.dir = f'{TRACEFS}/instances/witness.{os.getpid()}'
        os.mkdir(self.dir)
        self.put('tracing_on', 0)
        self.put('buffer_size_kb', 196608)  # 3 M events a CPU
        self.put('set_event_pid', pid)
        for event in EVENTS:
            wanted = (filters or {}).get(event, '')
            if wanted is None:
                continue
            if wanted:
                self.put(f'events/kmem/{event}/filter', wanted)
            self.put(f'events/kmem/{event}/enable', 1)
        self.put('tracing_on', 1)

    def put(self, name, text):
        with open(f'{self.dir}/{name}', 'w', encoding='ascii') as f:
            f.write(str(text))

    def count(self):
        """Events it holds; all of them, for nothing may have been lost."""
        self.put('tracing_on', 0)
        total = 0
        for path in glob.glob(f'{self.dir}/per_cpu/cpu*/stats'):
            with open(path, encoding='ascii') as f:
                stats = dict(line.split(':', 1) for line in f)
            check(int(stats['overrun']) == 0 and int(stats['dropped events']) == 0,
                  f'the witness lost nothing: {path} {stats}')
            total += int(stats['entries'])
        return total

    def close(self):
        os.rmdir(self.dir)


def record(place, *options, command=None):
    """Run to the end; the finished process and its summary."""
    args = place.kernel_args(*options) + (['--', *command] if command else [])
    done = place.run(*args)
    return done, summary(place)


def summary(place):
    with open(place.path('summary.json'), encoding='utf-8') as f:
        return json.load(f)


def started(place, *options):
    """A recorder that is recording."""
    p = place.start(*place.kernel_args(*options))
    name = f'slabtape.{p.pid}.'

    def tracing():
        check(p.poll() is None, 'the recorder runs')
        for n in instances():
            if n.startswith(name):
                with open(f'{TRACEFS}/instances/{n}/tracing_on', encoding='ascii') as f:
                    return f.read().strip() == '1'
        return False
    wait_for(tracing, 'tracing is on')
    return p


def ended(place, p):
    _, err = p.communicate(timeout=120)
    check(p.returncode == 0, f'status {p.returncode}: {err}')
    return summary(place)


def consistent(place, s):
    """The summary, the ring buffers' own counts and the tape agree."""
    cpus = s['cpus']
    check(all(c['events'] == c['read_events'] and c['entries'] == 0 for c in cpus), f'every event was read: {cpus}')
    lost = sum(c['overrun'] + c['commit_overrun'] + c['dropped_events'] for c in cpus)
    check(s['lost'] == lost, f'lost {s["lost"]}, the ring buffers say {lost}')
    check(s['events'] == sum(s[e] for e in EVENTS) + s['other'], f'kinds add up: {s}')
    rows = place.sql("SELECT count(*) AS n, sum(flags & 1) AS inferred FROM event")[0]
    check(rows['n'] == s['tape_events'], f'rows {rows}')
    kept = s['events'] - s['null_frees'] - s['failed_allocs'] - s['other']
    check(rows['n'] - rows['inferred'] - s['markers'] == kept, f'{rows}, kept {kept}')
    told = place.sql('SELECT coalesce(sum(events), 0) AS n, coalesce(min(ts_end >= ts_begin), 1) AS ok FROM loss')[0]
    check(told == {'n': lost, 'ok': 1}, f'loss rows {told}, lost {lost}')
    names = [r['name'] for r in place.sql('SELECT name FROM marker ORDER BY seq')]
    check(names == ['slabtape:BEGIN', 'slabtape:END'], f'markers {names}')
    place.verify()


def rows_of(place, worker, where='1'):
    return place.sql(f'SELECT count(*) AS n FROM event WHERE tid={worker.p.pid} AND NOT flags & 1 AND {where}')[0]['n']


def counts(place):
    """Two seconds of everything: what the tape has of one process is what a second tracer counts."""
    worker = Worker()
    witness = Witness(worker.p.pid, {'kfree': 'ptr != 0'})
    p = started(place)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        worker.work(1000)
    p.send_signal(signal.SIGINT)
    s = ended(place, p)
    emitted = witness.count()
    witness.close()
    worker.close()
    consistent(place, s)
    check(s['lost'] == 0, f'lost {s["lost"]}')
    check(s['elapsed_ns'] >= 2e9, f'{s["elapsed_ns"]} ns')
    check(emitted > 50000 and rows_of(place, worker) == emitted, f'{rows_of(place, worker)} rows of {emitted}')
    own = place.sql(f'SELECT count(*) AS n FROM event WHERE tid={p.pid}')[0]['n']
    check(own == 0, f'{own} events of the recorder itself')
    site = place.sql("SELECT count(*) AS n FROM site WHERE symbol LIKE 'alloc_empty_file%'")[0]['n']
    check(site > 0, 'call sites have names')
    after(place)


def after(place):
    """What a tape of a kernel is for."""
    tape = place.path('t.tape')
    done = place.run(place.slabtape, 'info', tape)
    check(done.returncode == 0 and 'complete' in done.stdout, done.stderr)
    done = place.run(place.slabtape, 'replay', tape, '--variant', 'slub-6.1', '--json')
    check(done.returncode == 0, done.stderr)
    filp = [c for c in json.loads(done.stdout)['caches'] if c['name'] == 'filp']
    check(filp and filp[0]['counters']['alloc_fastpath'] > 1000, f'{filp}')
    done = place.run(place.slabtape, 'compare', tape, '--variants', 'slub-6.1,slub-7.2')
    check(done.returncode == 0 and 'filp' in done.stdout, done.stderr)
    rows = place.sql("SELECT mode, (SELECT value FROM counter k WHERE k.run=r.run AND k.name='total_objects' "
                     "AND k.cpu IS NULL AND k.cache=(SELECT cache FROM cache WHERE name='filp')) AS n "
                     "FROM run r WHERE variant LIKE 'kernel:%' ORDER BY run")
    check([r['mode'] for r in rows] == ['before', 'after'] and all(r['n'] > 0 for r in rows), f'snapshots {rows}')


def loss(place):
    """A ring buffer far too small: recorded + lost = emitted, and each loss has its time."""
    worker = Worker()
    witness = Witness(worker.p.pid)
    p = started(place, '--buffer', '128K', '--filter-pid', str(worker.p.pid))
    worker.work(15000)
    p.send_signal(signal.SIGINT)
    s = ended(place, p)
    emitted = witness.count()
    witness.close()
    worker.close()
    consistent(place, s)
    check(s['lost'] > 0, 'events were lost')
    check(s['events'] + s['lost'] == emitted, f'{s["events"]} + {s["lost"]} is not {emitted}')
    wide = place.sql('SELECT max(ts_end) AS t FROM loss')[0]['t']
    check(wide <= s['elapsed_ns'], f'loss until {wide}')
    done, s = record(place, '--duration', '0.5', '--buffer', '128K', '--max-lost', '0', '-a',
                     command=[sys.executable, '-c', 'import os\nfor _ in range(100000): os.stat("/etc")'])
    check(s['lost'] == 0 or (done.returncode == 4 and s['code'] == 4), f'--max-lost: {done.returncode}')


def filters(place):
    """One cache, one process."""
    worker = Worker()
    for cache, wanted in (('filp', {'kmalloc': None, 'kfree': None, 'kmem_cache_alloc': 'name == "filp"',
                                    'kmem_cache_free': 'name == "filp"'}),):
        witness = Witness(worker.p.pid, wanted)
        p = started(place, '--cache', cache)
        worker.work(2000)
        p.send_signal(signal.SIGINT)
        s = ended(place, p)
        emitted = witness.count()
        witness.close()
        consistent(place, s)
        check(emitted >= 6000 * 2 - 100 and rows_of(place, worker) == emitted, f'{emitted}')
        caches = place.sql('SELECT DISTINCT c.name FROM event e JOIN cache c ON c.cache=e.cache')
        check(caches == [{'name': cache}], f'{caches}')
    p = started(place, '--filter-pid', str(worker.p.pid))
    worker.work(1000)
    p.send_signal(signal.SIGINT)
    consistent(place, ended(place, p))
    tids = place.sql('SELECT DISTINCT tid FROM event WHERE op<>\'marker\' AND NOT flags & 1')
    check(tids == [{'tid': worker.p.pid}], f'{tids}')
    worker.close()
    done = place.run(*place.kernel_args('--cache', 'no-such-cache'))
    check(done.returncode == 2 and 'no-such-cache' in done.stderr, done.stderr)
    done = place.run(*place.kernel_args('--filter-pid', '4194304'))
    check(done.returncode == 2 and '4194304' in done.stderr, done.stderr)


def command(place):
    """-- COMMAND: its processes alone; -a: the others too; its status is passed on."""
    worker = Worker()
    script = f'{sys.executable} -c "import os; [os.stat(chr(47)) for _ in range(20000)]"; exit 7'
    for option in ([], ['-a']):
        args = place.kernel_args(*option) + ['--', 'sh', '-c', script]
        p = place.start(*args)
        while p.poll() is None:
            worker.work(200)
        _, err = p.communicate()
        s = summary(place)
        check(p.returncode == 7 and s['exit_status'] == 7 and s['code'] == 0, f'{p.returncode} {err}')
        check(s['stopped'] is None, 'the command ended it')
        consistent(place, s)
        check(bool(rows_of(place, worker)) == bool(option), f'{option}: {rows_of(place, worker)} of another process')
        comms = [r['comm'] for r in place.sql('SELECT DISTINCT t.comm FROM event e JOIN thread t ON t.tid=e.tid')]
        check('sh' in comms, f'{comms}')
    worker.close()
    os.unlink(place.path('t.tape'))
    for program, status in (('no-such-program', 127), (place.path('data'), 126)):
        with open(place.path('data'), 'w', encoding='ascii') as f:
            f.write('x')
        done, s = record(place, command=[program])
        check(done.returncode == status and s['exit_status'] == status and s['error'], f'{done.returncode} {s}')
        check(not os.path.exists(place.path('t.tape')), 'no tape is left')
    done, s = record(place, command=['sh', '-c', 'kill -9 $$'])
    check(done.returncode == 128 + 9, f'{done.returncode}')
    nothing_left(place)


def nothing_left(place):
    check(not instances(), f'instances {instances()}')
    check(mounts() == place.mounts, 'mounts are what they were')


def endings(place):
    """However it ends, nothing but the tape stays."""
    nothing_left(place)
    record(place, '--duration', '0.3')
    nothing_left(place)
    for number in (signal.SIGINT, signal.SIGTERM):
        p = started(place)
        time.sleep(0.3)
        p.send_signal(number)
        s = ended(place, p)
        check(s['stopped'] == 'interrupted', f'{s["stopped"]}')
        consistent(place, s)
        nothing_left(place)
    p = place.start(*place.kernel_args('-a'), '--', 'sleep', '60')
    wait_for(instances, 'it records')
    time.sleep(0.5)
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=60)
    check(p.returncode == 128 + signal.SIGTERM, f'passed on to the command: {p.returncode} {err}')
    consistent(place, summary(place))
    nothing_left(place)


def killed(place):
    """SIGKILL: a valid prefix stays and its instance, until the next run."""
    p = started(place)
    time.sleep(1.5)
    other = started(place, '-o', place.path('other.tape'))
    p.kill()
    p.communicate()
    check(len(instances()) == 2, f'{instances()}')
    check(place.sql("SELECT value FROM meta WHERE key='complete'")[0]['value'] == 0, 'not complete')
    place.verify()
    done, s = record(place, '--duration', '0.3')
    check(done.returncode == 0 and s['stale_instances'] == 1, f'{s["stale_instances"]} {done.stderr}')
    check([n.split('.')[1] for n in instances()] == [str(other.pid)], 'a living recorder keeps its instance')
    other.send_signal(signal.SIGINT)
    other.communicate(timeout=60)
    check(other.returncode == 0, 'and ends well')
    nothing_left(place)


def limits(place):
    done, s = record(place, '--max-size', '300K',
                     command=[sys.executable, '-c', 'import os, time\nt = time.time() + 3\nwhile time.time() < t:\n'
                              '    os.close(os.open("/dev/null", 0))'])
    check(done.returncode == 0 and s['stopped'] == 'tape size reached', f'{s} {done.stderr}')
    consistent(place, s)
    for how, status in ((['--duration', '20'], 7), (['--', 'find', '/usr', '-name', 'x'], 125)):
        script = (f'mkdir -p full && mount -t tmpfs -o size=300k none full && {place.slabtape} record --kernel -a '
                  f'-o full/t.tape --summary s.json {" ".join(how)}; echo $?; ls full; umount full')
        done = place.run('unshare', '-m', '--propagation', 'unchanged', 'sh', '-c', script.replace('-a -o', '-o')
                         if how[0] != '--' else script)
        check(done.stdout.splitlines()[-1:] == [str(status)], f'status {status} and no tape: {done.stdout} {done.stderr}')
        with open(place.path('s.json'), encoding='utf-8') as f:
            check(json.load(f)['code'] == 7, 'code 7')
    nothing_left(place)


def refused(place):
    """An ordinary user; a machine without tracefs."""
    if place.drop:
        calls = [([], [])]
    else:
        # In a chroot / may be no mount point, /sys is one then; what is mounted here stays here.
        hide = ('{ mount --make-rprivate / || mount --make-rprivate /sys; } 2>/dev/null && '
                'mount -t tmpfs none /sys/kernel && mkdir /sys/kernel/tracing && exec "$@"')
        calls = [(['unshare', '-m', '--propagation', 'unchanged', 'sh', '-c', hide, 'sh'], ['mount -t tracefs'])]
    for prefix, words in calls:
        for tail, status in (([], 6), (['--', 'true'], 125)):
            done = place.run(*prefix, *place.kernel_args('--duration', '1'), *tail)
            lines = done.stderr.splitlines()
            check(done.returncode == status and len(lines) == 1, f'{done.returncode} {done.stderr}')
            check('slabtape: record: /sys/kernel/' in lines[0] and all(w in lines[0] for w in words or ['sudo']), lines[0])
            check(summary(place)['code'] == 6, 'code 6')
            check(not os.path.exists(place.path('t.tape')), 'no tape is left')
    nothing_left(place)


def script(place):
    """The printed script records the same, and import reads what it leaves."""
    text = place.run(place.slabtape, 'record', '--kernel', '--print-script').stdout
    with open(place.path('script'), 'w', encoding='ascii') as f:
        f.write(text)
    worker = Worker()
    witness = Witness(worker.p.pid, {'kfree': 'ptr != 0'})
    p = place.start('sh', 'script', '-o', 'dir')
    wait_for(lambda: os.path.exists(place.path('dir/slab.before')) and
             any(open(f'{TRACEFS}/instances/{n}/tracing_on', encoding='ascii').read() == '1\n' for n in instances()),
             'it records')
    worker.work(5000)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=60)
    check(p.returncode == 0, err)
    emitted = witness.count()
    witness.close()
    worker.close()
    nothing_left(place)
    imported(place, 'dir')
    check(emitted > 50000 and rows_of(place, worker) == emitted, f'{rows_of(place, worker)} rows of {emitted}')
    mode = [r['mode'] for r in place.sql('SELECT mode FROM run ORDER BY run')]
    check(mode == ['window', 'before', 'after'], f'runs {mode}')
    done = place.run('sh', 'script', '-o', 'dir2', '--', 'sh', '-c', 'ls /usr/bin >/dev/null; exit 5')
    check(done.returncode == 5, f'{done.returncode} {done.stderr}')
    nothing_left(place)
    imported(place, 'dir2')
    comms = {r['comm'] for r in place.sql("SELECT DISTINCT t.comm FROM event e JOIN thread t ON t.tid=e.tid "
                                          "WHERE NOT e.flags & 1 AND e.op<>'marker'")}
    check('ls' in comms and 'dd' not in comms, f'{comms}')
    done = place.run('sh', 'script', '-o', 'dir2')
    check(done.returncode == 7, 'an existing directory is not touched')


def imported(place, folder):
    done = place.run(place.slabtape, 'import', '-f', '-o', place.path('t.tape'), '--json', folder)
    check(done.returncode == 0, done.stderr)
    s = json.loads(done.stdout)
    read = 0
    for path in glob.glob(place.path(f'{folder}/cpu*.stats')):
        with open(path, encoding='ascii') as f:
            stats = dict(line.split(':', 1) for line in f)
        read += int(stats['read events'])
        check(int(stats['entries']) == 0 and int(stats['overrun']) == 0, f'{stats}')
    check(read == sum(s[e] for e in EVENTS) + s['markers'] + s['other'], f'{read} events: {s}')
    check(s['lost'] == 0 and s['source'] == 'ring-buffer-pages', f'{s}')
    place.verify()


def checked(case):
    def run(place):
        place.mounts = mounts()
        place.kernel_args = lambda *options: [place.slabtape, 'record', '--kernel', '-f', '-o', place.path('t.tape'),
                                              '--summary', place.path('summary.json'), *options]
        check(os.getuid() == 0, 'these tests need root')
        check(shutil.which('unshare'), 'these tests need unshare')
        case(place)
    return run


main({f.__name__: checked(f) for f in (counts, loss, filters, command, endings, killed, limits, refused, script)})
