#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plant one fault at a time into a copy of the sources and require that its check finds it."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ('base', 'traces', 'allocator', 'store', 'capture', 'replay', 'analyze', 'cli')
# check, file, line planted at its end
FAULTS = (
    ('layers', 'traces/event.c', '#include "store/tape.h"'),
    ('layers', 'allocator/machine.c', '#include <replay/engine.h>'),
    ('layers', 'base/error.c', '#include "../traces/event.h"'),
    ('layers', 'replay/planted.c', '#include "store/store_internal.h"'),
    ('sources', 'base/error.c', 'int planted(void) { return atoi("1"); }'),
    ('sources', 'base/planted.c', 'int planted;'),
)


def run(check, root):
    return subprocess.run([sys.executable, f'{HERE}/check_{check}.py', root],
                          capture_output=True, text=True, check=False)


def main():
    failed = 0
    for check, rel, line in FAULTS:
        with tempfile.TemporaryDirectory() as copy:
            for folder in FOLDERS:
                source = os.path.join(sys.argv[1], folder)
                if os.path.isdir(source):
                    shutil.copytree(source, os.path.join(copy, folder),
                                    ignore=shutil.ignore_patterns('samples'))
            with open(os.path.join(copy, rel), 'a', encoding='utf-8') as target:
                target.write(line + '\n')
            result = run(check, copy)
            if result.returncode != 1 or rel not in result.stdout:
                print(f'{check} does not find {line!r} in {rel}: {result.stdout}{result.stderr}')
                failed += 1
    return 1 if failed else 0


sys.exit(main())
