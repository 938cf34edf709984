# SPDX-License-Identifier: MIT
"""Ways of asking a tape: our program, the stock shell, Python's module.  Shared by the tests."""
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from checks import check, finish, run  # noqa: E402

if not hasattr(sqlite3.Connection, 'enable_load_extension'):
    # Some Pythons are built without; the system's is not.
    if sys.executable == '/usr/bin/python3' or not os.path.exists('/usr/bin/python3'):
        sys.exit('this Python cannot load SQLite extensions and there is no /usr/bin/python3')
    os.execv('/usr/bin/python3', ['/usr/bin/python3'] + sys.argv)


def statements(sql):
    """Split at semicolons that end a statement."""
    out, pending = [], ''
    for part in sql.split(';'):
        pending += part + ';'
        if sqlite3.complete_statement(pending):
            if pending.strip(' \n;'):
                out.append(pending.strip())
            pending = ''
    if pending.strip(' \n;'):
        out.append(pending.strip())
    return out


def json_results(text):
    """Consecutive JSON arrays, as both our program and the shell print them."""
    decoder, at, out = json.JSONDecoder(), 0, []
    text = text.strip()
    while at < len(text):
        value, end = decoder.raw_decode(text, at)
        out.append([list(row.values()) for row in value])
        at = end
        while at < len(text) and text[at].isspace():
            at += 1
    return out


def ask_ours(slabtape, tape, sql, cwd=None):
    done = run(slabtape, 'sql', tape, sql, '--json', cwd=cwd)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json_results(done.stdout)


def ask_shell(extension, tape, sql, cwd=None):
    done = run('sqlite3', '-readonly', '-json', '-cmd', f'.load {extension}', tape, sql, cwd=cwd)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json_results(done.stdout)


def ask_c(host, extension, tape, sql, cwd=None):
    done = run(host, extension, tape, sql, cwd=cwd)
    if done.returncode:
        raise RuntimeError(done.stderr)
    decoder, at, out, text = json.JSONDecoder(), 0, [], done.stdout.strip()
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        out.append(value)
        at += 1
    return out


def connect(extension, tape):
    db = sqlite3.connect(f'file:{tape}?mode=ro', uri=True)
    db.enable_load_extension(True)
    db.load_extension(extension)
    return db


def ask_python(extension, tape, sql, cwd=None):
    before = os.getcwd()
    os.chdir(cwd or before)
    try:
        db = connect(extension, tape)
        out = []
        for statement in statements(sql):
            cursor = db.execute(statement)
            if cursor.description:
                out.append([list(row) for row in cursor.fetchall()])
        db.close()
        return out
    finally:
        os.chdir(before)
