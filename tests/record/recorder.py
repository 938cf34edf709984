# SPDX-License-Identifier: MIT
"""What the tests of `slabtape record` share: a place to run in, as root or as an ordinary user."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

NOBODY = 65534


def check(condition, text):
    if not condition:
        raise SystemExit(f'FAILED: {text}')


class Place:
    """A scratch folder with copies of the programs, usable by user `uid`."""

    def __init__(self, build, helpers, backend, user):
        self.dir = tempfile.mkdtemp(prefix='st-', dir='/tmp')
        self.backend, self.user = backend, user
        self.drop = user == 'user' and os.getuid() == 0
        for name in os.listdir(build):
            if name == 'slabtape' or (name.startswith('libslabtape-') and '.so' in name):
                shutil.copy(os.path.join(build, name), self.dir)
        for name in os.listdir(helpers):
            path = os.path.join(helpers, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                shutil.copy(path, self.dir)
        os.chmod(self.dir, 0o755)
        if self.drop:
            os.chown(self.dir, NOBODY, NOBODY)
        self.slabtape = self.path('slabtape')

    def path(self, name):
        return os.path.join(self.dir, name)

    def close(self):
        shutil.rmtree(self.dir)

    def _become(self):
        if self.drop:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    def start(self, *args, env=None, **more):
        full = {'PATH': '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', 'HOME': self.dir, 'LC_ALL': 'C',
                'PYTHONMALLOC': 'malloc', 'PYTHONHASHSEED': '1', **(env or {})}
        return subprocess.Popen([str(a) for a in args], cwd=self.dir, env=full, text=True,
                                preexec_fn=self._become, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def run(self, *args, env=None, timeout=240):
        p = self.start(*args, env=env)
        out, err = p.communicate(timeout=timeout)
        return subprocess.CompletedProcess(args, p.returncode, out, err)

    def backend_args(self):
        return ['--native'] if self.backend == 'native' else []

    def record_args(self, *options):
        return [self.slabtape, 'record', *self.backend_args(), '-f', '-o', self.path('t.tape'),
                '--summary', self.path('summary.json'), *options, '--']

    def record(self, command, options=(), env=None):
        """Run under record; the finished process and its JSON summary."""
        if os.path.exists(self.path('summary.json')):
            os.unlink(self.path('summary.json'))
        done = self.run(*self.record_args(*options), *command, env=env)
        summary = None
        if os.path.exists(self.path('summary.json')):
            with open(self.path('summary.json'), encoding='utf-8') as f:
                summary = json.load(f)
        return done, summary

    def count_env(self):
        """A fresh count file and the environment that makes count_malloc.so fill it."""
        path = self.path('count')
        with open(path, 'wb') as f:
            f.write(bytes(32))
        os.chmod(path, 0o666)
        return {'COUNT_FILE': path, 'LD_PRELOAD': self.path('libcount_malloc.so')}

    def record_counted(self, command, options=()):
        """Record @command: the process, its summary, and what was counted in it (allocs, frees)."""
        done, summary = self.record(command, options=options, env=self.count_env())
        return done, summary, self.counted()[:2]

    def counted(self):
        with open(self.path('count'), 'rb') as f:
            return struct.unpack('4Q', f.read(32))

    def sql(self, query):
        done = self.run(self.slabtape, 'sql', '--json', self.path('t.tape'), query)
        check(done.returncode == 0, f'{query}: {done.stderr}')
        return json.loads(done.stdout)

    def verify(self):
        done = self.run(self.slabtape, 'verify', self.path('t.tape'))
        check(done.returncode == 0, f'verify: {done.stdout}{done.stderr}')


def leftovers():
    """Folders that recorders left behind."""
    return sorted(n for d in ('/dev/shm', '/tmp') for n in os.listdir(d)
                  if n.startswith(('slabtape.', 'slabtape-lttng.')))


def daemons(parent):
    """Session daemons that process @parent started, and their consumers."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/environ', 'rb') as f:
                environ = f.read()
            with open(f'/proc/{pid}/comm', encoding='ascii') as f:
                comm = f.read().strip()
        except OSError:
            continue
        if comm.startswith('lttng-') and f'.{parent}.'.encode() in environ:
            found.append((pid, comm))
    return found


def main(cases):
    """argv: BUILD_DIR HELPERS_DIR BACKEND root|user CASE"""
    build, helpers, backend, user, case = sys.argv[1:6]
    if user == 'root' and os.getuid():
        print('not root: the case runs as this user')
    place = Place(build, helpers, backend, user)
    try:
        cases[case](place)
    finally:
        place.close()
    print('ok')
