#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail when a module includes a header its layer may not see.  Usage: check_layers.py ROOT

The table is the one of docs/architecture.md.  Quoted and angle-bracket includes of our own
headers count; "*_internal.h" stays inside its folder; "../" is never allowed.
"""
import os
import re
import sys

MAY_INCLUDE = {
    'base': set(),
    'traces': {'base'},
    'allocator': {'base'},
    'store': {'base', 'traces'},
    'capture': {'base', 'traces', 'store'},
    'replay': {'base', 'traces', 'store', 'allocator'},
    'analyze': {'base', 'traces', 'store'},
    'cli': {'base', 'traces', 'store', 'allocator', 'capture', 'replay', 'analyze'},
}
# Installed public headers: the recording side of libslab and whoever implements them.
MAY_INCLUDE_PUBLIC = {'allocator', 'capture'}
INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def judge(module, target, quoted):
    """Why the include is wrong, or None."""
    if target.startswith('..') or '/../' in target:
        return f'relative include {target}'
    top, slash, rest = target.partition('/')
    if top in ('slabtape', 'include') and slash:
        return None if module in MAY_INCLUDE_PUBLIC else f'{module}/ may not include {target}'
    if top not in MAY_INCLUDE or not slash:
        return f'own header {target} is named without its folder' if quoted and not slash else None
    if top != module and top not in MAY_INCLUDE[module]:
        return f'{module}/ may not include {target}'
    if top != module and rest.endswith('_internal.h'):
        return f'{target} is private to {top}/'
    return None


def violations(root):
    for module in MAY_INCLUDE:
        for path, _, names in os.walk(os.path.join(root, module)):
            for name in sorted(names):
                if not name.endswith(('.c', '.h')):
                    continue
                full = os.path.join(path, name)
                with open(full, encoding='utf-8') as source:
                    for number, line in enumerate(source, 1):
                        m = INCLUDE.match(line)
                        if not m:
                            continue
                        why = judge(module, m.group(1) or m.group(2), m.group(1) is not None)
                        if why:
                            yield f'{os.path.relpath(full, root)}:{number}: {why}'


def main():
    root = sys.argv[1]
    missing = [m for m in ('base', 'traces', 'allocator', 'store') if not os.path.isdir(os.path.join(root, m))]
    if missing:
        print('no such module folder:', ', '.join(missing))
        return 1
    bad = list(violations(root))
    if bad:
        print('\n'.join(bad))
    return 1 if bad else 0


sys.exit(main())
