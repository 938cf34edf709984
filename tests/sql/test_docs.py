#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/sql.md: every tutorial query gives the same rows in our program, in the stock sqlite3
shell, in Python's sqlite3 module and in a C program with stock SQLite, and the output printed in the document is the real one; the
reference is the one the code prints.

usage: test_docs.py SLABTAPE EXTENSION SOURCE_DIR C_HOST [--update]   (--update rewrites the document)
"""
import os
import re
import sys
import tempfile

import hosts

# An SQL block, and behind it the output block, which --update makes.
QUERY = re.compile(r'```sql\n(.*?)```\n(\n```text\n(.*?)```\n)?', re.S)
REFERENCE = re.compile(r'(<!-- reference -->\n).*?(<!-- end of reference -->)', re.S)


def main():
    slabtape, extension, source, host = (os.path.abspath(p) for p in sys.argv[1:5])
    update = '--update' in sys.argv
    path = os.path.join(source, 'docs/sql.md')
    with open(path, encoding='utf-8') as f:
        text = f.read()
    with tempfile.TemporaryDirectory() as work:
        recording = os.path.join(source, 'traces/samples/src/6.1-netperf0-4c2n')
        done = hosts.run(slabtape, 'import', '-q', '-o', 'netperf0.tape', recording, cwd=work)
        if done.returncode:
            sys.exit(done.stderr)
        done = hosts.run(slabtape, 'replay', 'netperf0.tape', '--variant', 'slub-6.1', cwd=work)
        if done.returncode:
            sys.exit(done.stderr)
        new = QUERY.sub(lambda m: question(slabtape, extension, host, work, m), text)
    reference = hosts.run(slabtape, 'sql', '--reference').stdout
    new = REFERENCE.sub(lambda m: m.group(1) + reference + '\n' + m.group(2), new)
    if update:
        with open(path, 'w', encoding='utf-8') as f:
            f.write(new)
    else:
        hosts.check(new == text, 'docs/sql.md shows what the program prints (else run --update)')
        hosts.check(len(QUERY.findall(text)) >= 10, 'at least ten questions')
    hosts.finish()


def question(slabtape, extension, host, work, match):
    sql = match.group(1)
    name = sql.split('\n')[0]
    rows = hosts.ask_ours(slabtape, 'netperf0.tape', sql, cwd=work)
    hosts.check(rows and all(rows), f'rows for: {name}')
    hosts.check(rows == hosts.ask_shell(extension, 'netperf0.tape', sql, cwd=work),
                f'the sqlite3 shell agrees: {name}')
    hosts.check(rows == hosts.ask_python(extension, 'netperf0.tape', sql, cwd=work),
                f'Python agrees: {name}')
    hosts.check(rows == hosts.ask_c(host, extension, 'netperf0.tape', sql, cwd=work),
                f'a C program agrees: {name}')
    table = hosts.run(slabtape, 'sql', 'netperf0.tape', sql, cwd=work).stdout
    return f'```sql\n{sql}```\n\n```text\n{table}```\n'


main()
