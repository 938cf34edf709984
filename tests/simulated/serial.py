#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every script replayed by the simulated engine with --pace serial decides what ordered decides.

Usage: serial.py SLABTAPE CASES_DIR EXPECT_DIR VARIANT

Counters, per-CPU counters, free classes and the final lists must be equal; with --pace asap two
runs of one seed must be equal to the byte.  Cases are those that the kernel of EXPECT_DIR ran.
"""
import json
import os
import subprocess
import sys

SKIPPED_KEYS = ('checkpoints', 'refill_hist')  # checkpoints are no operation of a virtual CPU


def run(slabtape, script, variant, *extra):
    command = [slabtape, 'replay', script, '--variant', variant, '--json', '--state', '--no-timing', *extra]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f'{" ".join(command)}: exit {result.returncode}: {result.stderr}')
    return result.stdout


def main():
    slabtape, cases, expected, variant = sys.argv[1:5]
    names = sorted({name.split('.expect')[0] for name in os.listdir(expected) if '.expect' in name})
    failed = 0
    for name in names:
        script = next(path for path in (f'{cases}/{name}.ops', f'{cases}/{name}.ops.zst') if os.path.exists(path))
        ordered = json.loads(run(slabtape, script, variant))['caches'][0]
        serial = json.loads(run(slabtape, script, variant, '--mode', 'simulated', '--pace', 'serial'))['caches'][0]
        differing = [key for key in ordered if key not in SKIPPED_KEYS and ordered[key] != serial.get(key)]
        if differing:
            print(f'{name}: serial differs from ordered in {", ".join(differing)}')
            failed += 1
        simulated = [run(slabtape, script, variant, '--mode', 'simulated', '--pace', 'asap') for _ in range(2)]
        if simulated[0] != simulated[1]:
            print(f'{name}: two simulated runs differ')
            failed += 1
    if len(names) < 100:
        print(f'only {len(names)} cases in {expected}')
        failed += 1
    print(f'{len(names)} cases, {failed} failed')
    return 1 if failed else 0


sys.exit(main())
