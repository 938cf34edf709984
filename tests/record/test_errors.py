#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What must go wrong in one clear way, and what must go right although it looks wrong.

usage: test_errors.py BUILD_DIR HELPERS_DIR native|lttng root|user CASE
"""
import os
import shutil
import signal
import time

import recorder
from recorder import check


def refused(place, command, status, code, words):
    """record fails with @status and no tape; the JSON has @code; the message has @words."""
    if os.path.exists(place.path('t.tape')):
        os.unlink(place.path('t.tape'))
    done, summary = place.record(command)
    check(done.returncode == status, f'status {done.returncode}, not {status}: {done.stderr}')
    lines = [line for line in done.stderr.splitlines() if line.startswith('slabtape: ')]
    check(len(lines) == 1, f'one message: {done.stderr}')
    check(all(w in lines[0] for w in words), f'{words} in: {lines[0]}')
    check(summary and summary['code'] == code, f'code {summary and summary["code"]}, not {code}')
    check(summary['exit_status'] == status, 'exit_status')
    check(not os.path.exists(place.path('t.tape')), 'no tape is left')
    return done


def programs(place):
    refused(place, ['no-such-program'], 127, 3, ['no-such-program', 'not found'])
    refused(place, [place.path('nothing/here')], 127, 3, ['nothing/here'])
    path = place.path('data')
    with open(path, 'w', encoding='ascii') as f:
        f.write('x')
    os.chmod(path, 0o644)
    refused(place, [path], 126, 6, ['data', 'ermission denied'])
    refused(place, [place.path('plain_static')], 125, 6, ['static', 'plain_static'])
    refused(place, [place.path('plain_asan')], 125, 6, ['AddressSanitizer'])
    done = refused(place, [place.path('own_malloc')], 125, 6, ['recorded nothing', 'its own malloc'])
    check(done.stdout == '1\n', 'it did run')


def setuid(place):
    """As a user: a program of root with the set-user-id bit.  As root it gains nothing and is recorded."""
    if os.getuid():
        print('needs root to make the file; the check runs as user "user" of a root run')
        return
    shutil.copy(place.path('plain'), place.path('plain_suid'))
    os.chown(place.path('plain_suid'), 0, 0)
    os.chmod(place.path('plain_suid'), 0o4755)
    if place.drop:
        refused(place, [place.path('plain_suid')], 125, 6, ['plain_suid', 'more rights'])
    else:
        done, summary = place.record([place.path('plain_suid')])
        check(done.returncode == 0 and summary['events'] >= 1900, done.stderr)


def usage(place):
    for args in ([], ['--buffer', 'x'], ['--duration', '-1'], ['stray', '--', 'ls'], ['--no-such-option']):
        done = place.run(place.slabtape, 'record', *args)
        check(done.returncode == 125, f'{args}: {done.returncode}')
        check(len(done.stderr.splitlines()) == 1, f'{args}: {done.stderr}')


def output(place):
    """A tape that cannot be written: before the run, and (as root) a full file system in the middle."""
    done = place.run(place.slabtape, 'record', *place.backend_args(), '-o', place.path('no/t.tape'), '--',
                     place.path('plain'))
    check(done.returncode == 125 and done.stdout == '', f'{done.returncode} {done.stderr}')
    with open(place.path('t.tape'), 'w', encoding='ascii') as f:
        f.write('precious')
    done = place.run(place.slabtape, 'record', *place.backend_args(), '-o', place.path('t.tape'), '--',
                     place.path('plain'))
    check(done.returncode == 125, 'an existing file is not overwritten')
    with open(place.path('t.tape'), encoding='ascii') as f:
        check(f.read() == 'precious', 'nor touched')
    if os.getuid() == 0 and not place.drop:
        # Propagation unchanged: / need not be a mount point (a chroot); hence the umount.
        script = (f'mkdir -p full && mount -t tmpfs -o size=300k none full && {place.slabtape} record '
                  f'{" ".join(place.backend_args())} -o full/t.tape --summary s.json -- '
                  f'{place.path("exchange")} 2 200000; echo $?; ls full; umount full')
        done = place.run('unshare', '-m', '--propagation', 'unchanged', 'sh', '-c', script)
        lines = done.stdout.splitlines()
        check(lines[0].startswith('2 threads'), f'the program ran to its end: {done.stdout}')
        check(lines[1:] == ['125'], f'status 125 and no tape: {lines} {done.stderr}')
        check('full' in done.stderr or 'No space' in done.stderr, done.stderr)


def loss(place):
    """Buffers far too small: lost events are counted to the last one, and explain every violation."""
    done, s, (allocs, frees) = place.record_counted([place.path('exchange'), '4', '100000'],
                                                    options=['--buffer', '512K'])
    check(done.returncode == 0, done.stderr)
    check(s['lost'] > 0, 'events were lost')
    check(s['allocs'] + s['frees'] + s['lost'] == allocs + frees,
          f'{s["allocs"]} + {s["frees"]} + {s["lost"]} is not {allocs} + {frees}')
    check(s['violations'] == 0, f'violations outside loss {s["violations"]}')
    rows = place.sql('SELECT sum(events) AS n, min(ts_end >= ts_begin) AS ok FROM loss')
    check(rows[0]['n'] == s['lost'] and rows[0]['ok'] == 1, f'loss rows {rows}')
    place.verify()
    done, s = place.record([place.path('exchange'), '4', '100000'],
                           options=['--buffer', '512K', '--max-lost', '0'])
    check(done.returncode == 4 and s['code'] == 4, f'--max-lost: {done.returncode}')


def rotated(place):
    """Loss over several rotations (LTTng): still every event is recorded or counted as lost."""
    done, s, (allocs, frees) = place.record_counted([place.path('exchange'), '4', '700000'],
                                                    options=['--buffer', '256K'])
    check(done.returncode == 0, done.stderr)
    check(s['lost'] > 0 and s['elapsed_ns'] > 1e9, f'lost {s["lost"]} in {s["elapsed_ns"]} ns')
    check(s['allocs'] + s['frees'] + s['lost'] == allocs + frees,
          f'{s["allocs"]} + {s["frees"]} + {s["lost"]} is not {allocs} + {frees}')
    check(s['violations'] == 0, f'violations outside loss {s["violations"]}')
    place.verify()


def daemon(place):
    """LTTng's daemon: missing, forbidden, asked for and not there; gone after each recording."""
    env = {'PATH': place.dir}
    done, s = place.record([place.path('plain')], env=env)
    check(done.returncode == 125 and s['code'] == 6, f'{done.returncode} {done.stderr}')
    check('lttng-sessiond' in done.stderr and '--native' in done.stderr, done.stderr)
    if not os.path.exists('/run/lttng/lttng-sessiond.pid'):
        done, s = place.record([place.path('plain')], options=['--system-daemon'])
        check(done.returncode == 125 and s['code'] == 6 and 'no session daemon' in done.stderr, done.stderr)
    if os.getuid() == 0 and not place.drop:
        done = place.run('setpriv', '--bounding-set=-sys_admin', '--inh-caps=-sys_admin',
                         *place.record_args(), place.path('plain'))
        check(done.returncode == 125 and 'mount namespace' in done.stderr, f'{done.returncode} {done.stderr}')
    p = place.start(*place.record_args(), place.path('plain'))
    p.communicate(timeout=60)
    check(p.returncode == 0 and not recorder.daemons(p.pid), f'daemons left: {recorder.daemons(p.pid)}')
    check(not [n for n in recorder.leftovers() if f'.{p.pid}.' in n], 'folders left')


def endings(place):
    """However the program ends, what it did is there and its status is passed on."""
    for how, status in (('', 0), ('exit7', 7), ('kill', 128 + 9), ('abort', 128 + 6), ('_exit', 3),
                        ('closeall', 0), ('closerange', 0)):
        done, s, (allocs, frees) = place.record_counted(
            [place.path('plain'), how] if how else [place.path('plain')])
        check(done.returncode == status, f'{how}: status {done.returncode}: {done.stderr}')
        check(done.stdout == 'done\n', how)
        check(s['allocs'] == allocs and s['frees'] == frees and s['violations'] == 0,
              f'{how}: {s["allocs"]} {s["frees"]}, counted {allocs} {frees}')
        place.verify()


def wait_for(condition, what):
    for _ in range(200):
        if condition():
            return
        time.sleep(0.05)
    check(False, what)


def started(place, options=()):
    p = place.start(*place.record_args(*options), place.path('plain'), 'sleep')
    check(p.stdout.readline() == 'done\n', 'the program runs')
    return p


def signals(place):
    for number in (signal.SIGINT, signal.SIGTERM):
        p = started(place)
        time.sleep(0.3)
        p.send_signal(number)
        _, err = p.communicate(timeout=60)
        check(p.returncode == 128 + number, f'status {p.returncode}: {err}')
        place.verify()
        check(place.sql("SELECT value FROM meta WHERE key='complete'")[0]['value'] == 1, 'complete')
        check(place.sql('SELECT count(*) AS n FROM event')[0]['n'] >= 1900, 'events are there')


def limits(place):
    p = started(place, ['--duration', '0.5'])
    time.sleep(2)
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=60)
    check('duration reached' in err, err)
    check(place.sql('SELECT max(ts) AS t FROM event')[0]['t'] < 1.5e9, 'nothing after the duration')
    done, s = place.record([place.path('exchange'), '2', '3000000'], options=['--max-size', '400K', '--buffer', '16M'])
    check(done.returncode == 0 and s['stopped'] == 'tape size reached', f'{s["stopped"]}')
    # What the buffers hold when the size is reached still comes: 16 MiB are 512 Ki events; LTTng's
    # data of the last two rotations too, that is the whole run of this program here.
    check(s['tape_bytes'] < (12e6 if place.backend == 'native' else 60e6), f'{s["tape_bytes"]} bytes')
    place.verify()


def killed(place):
    """SIGKILL of the recorder: a valid prefix stays, the program goes on, the next run cleans up."""
    p = started(place)
    time.sleep(1.5)
    with open(f'/proc/{p.pid}/task/{p.pid}/children', encoding='ascii') as f:
        program = int(f.read().split()[0])
    p.kill()
    p.wait()
    wait_for(lambda: not recorder.daemons(p.pid), 'the session daemon ends with the recorder')
    check(not os.kill(program, 0), 'the program goes on')
    os.kill(program, signal.SIGKILL)
    p.stdout.close()
    p.stderr.close()
    check(place.sql("SELECT value FROM meta WHERE key='complete'")[0]['value'] == 0, 'not complete')
    done = place.run(place.slabtape, 'verify', place.path('t.tape'))
    check(done.returncode == 0, f'a valid prefix: {done.stderr}')
    done, _ = place.record([place.path('plain')])
    check(done.returncode == 0, done.stderr)
    check(not [n for n in recorder.leftovers() if f'.{p.pid}.' in n], 'nothing is left')


recorder.main({f.__name__: f for f in (programs, setuid, usage, output, loss, endings, signals, limits,
                                       killed, rotated, daemon)})
