# SPDX-License-Identifier: MIT
"""What every Python test needs: remember failures, run commands."""
import subprocess
import sys

FAILED = []


def check(ok, what):
    """Remember a failure; the test goes on."""
    if not ok:
        print(f'not ok - {what}')
        FAILED.append(what)


def finish():
    print(f'{len(FAILED)} failures' if FAILED else 'all as expected')
    sys.exit(1 if FAILED else 0)


def run(*command, **kwargs):
    return subprocess.run(command, capture_output=True, text=True, timeout=250, check=False, **kwargs)
