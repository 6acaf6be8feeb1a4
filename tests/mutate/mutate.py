#!/usr/bin/env python3
# SPDX-License-Identifier: Zlib
"""Plants single faults in broadphase/ and integration/ and says which ones the tests miss.

    tests/mutate/mutate.py --count 200 --seed 1 --table mutation_table.md

CI does not run this tool. It needs Ninja. Faults are drawn by operator first, then by file, so
that rare operators and small files get their share. A fault that does not compile, or changes no
machine code, is counted separately, and another one is drawn. The tests run as in a release. Faults
that they miss are tested again with the sanitizers, and with every stage validated. Works on copies
in build/mutate, and does not touch your tree. Exit status 0: every fault was noticed or is
explained in survivors.md; 1: some were not; 2: wrong arguments."""
import argparse
import collections
import fnmatch
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # bytecode files would be in the source tree

import cpp_mutations
from mutant_tree import Tree, TestsFail

ROOT = pathlib.Path(__file__).resolve().parents[2]
SURVIVORS = pathlib.Path(__file__).with_name('survivors.md')
# Files whose code runs only on a GPU.
LEFT_OUT = ('*cuda*',)


def parse_arguments():
    parser = argparse.ArgumentParser(description='Plants faults and reports what the tests miss.')
    parser.add_argument('--count', type=int, default=200, help='faults to test (%(default)s)')
    parser.add_argument('--seed', type=int, help='seed of the draw (default: the time)')
    parser.add_argument('--files', default='*',
                        help="only these files, such as 'broadphase/host/*'")
    parser.add_argument('--jobs', type=int, default=1, choices=(1, 2))
    parser.add_argument('--quick', action='store_true',
                        help='skip the sanitizers, which notice some more faults')
    parser.add_argument('--set', default='all', choices=('quick', 'all'),
                        help='which tests: those of ./run test, or of ./run test all (%(default)s)')
    parser.add_argument('--table', default='build/mutate/table.md',
                        help='file for the table (%(default)s)')
    parser.add_argument('--again', metavar='TABLE', help='test the survivors of a table again')
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = int(time.time())
    if arguments.count < 1:
        parser.error(f'--count is {arguments.count}, must be at least 1')
    return arguments


def source_files(pattern):
    listed = subprocess.run(['git', '-C', ROOT, 'ls-files', 'broadphase', 'integration'],
                            check=True, capture_output=True, text=True).stdout.split()
    return [f for f in listed if f.endswith(('.h', '.inl', '.cpp')) and fnmatch.fnmatch(f, pattern)
            and not any(fnmatch.fnmatch(f, out) for out in LEFT_OUT)]


class Draw:
    """Draws every fault once: first an operator, then a file."""

    def __init__(self, files, seed):
        self.random = random.Random(seed)
        self.by_operator = {}
        for file in files:
            for one in cpp_mutations.mutations_of(file, (ROOT / file).read_text()):
                self.by_operator.setdefault(one.operator, {}).setdefault(file, []).append(one)

    def next(self):
        if not self.by_operator:
            return None
        operator = self.random.choice(sorted(self.by_operator))
        by_file = self.by_operator[operator]
        file = self.random.choice(sorted(by_file))
        mutations = by_file[file]
        one = mutations.pop(self.random.randrange(len(mutations)))
        if not mutations:
            del by_file[file]
        if not by_file:
            del self.by_operator[operator]
        return one


class Again:
    """Draws the survivors of a table that the source still has."""

    def __init__(self, files, table):
        rows = [row.split(' | ') for row in pathlib.Path(table).read_text().splitlines()]
        missed = {(row[1].split(':')[0], row[2], row[3]) for row in rows
                  if len(row) == 6 and row[4].startswith('SURVIVED')}
        self.left = [one for file in files
                     for one in cpp_mutations.mutations_of(file, (ROOT / file).read_text())
                     if (one.file, one.operator, cell(one.change)) in missed]

    def next(self):
        return self.left.pop(0) if self.left else None


def explanations():
    """The lines of survivors.md: [file pattern, regular expression, reason]."""
    lines = SURVIVORS.read_text().splitlines()
    return [match.groups() for match in
            (re.match(r'- `([^`]+)` `([^`]+)`:? *(.*)', line) for line in lines) if match]


def explained(one, reasons):
    for pattern, expression, reason in reasons:
        if fnmatch.fnmatch(one.file, pattern) and re.search(expression, one.change):
            return reason
    return None


def cell(text):
    return '`' + text.replace('|', '¦').replace('`', "'") + '`'


class Report:
    """Prints the table, each row as soon as it is known, and then the sums."""

    def __init__(self, path, seed):
        self.lock = threading.Lock()
        self.file = open(ROOT / path, 'w', encoding='utf-8')
        self.by_operator = collections.defaultdict(collections.Counter)
        self.redrawn = collections.Counter()
        self.rows = 0
        self.seen = set()
        self.print(f'Seed {seed}.\n\n| # | place | operator | change | verdict | s |')
        self.print('|---|---|---|---|---|---|')

    def print(self, line):
        for file in (self.file, sys.stdout):
            print(line, file=file, flush=True)

    def row(self, one, verdict, seconds):
        with self.lock:
            self.rows += 1
            self.by_operator[one.operator][verdict.split(':')[0]] += 1
            self.print(f'| {self.rows} | {one.file}:{one.line} | {one.operator} | '
                       f'{cell(one.change)} | {verdict} | {seconds:.0f} |')

    def redraw(self, why):
        with self.lock:
            self.redrawn[why] += 1

    def is_new(self, one, code):
        with self.lock:
            new = (one.file, code) not in self.seen
            self.seen.add((one.file, code))
            return new

    def finish(self):
        self.print('\n| operator | killed | explained | survived |\n|---|---|---|---|')
        sums = collections.Counter()
        for operator, counts in sorted(self.by_operator.items()):
            sums += counts
            self.print(f'| {operator} | {counts["killed"]} | {counts["explained"]} | '
                       f'{counts["SURVIVED"]} |')
        self.print(f'| all | {sums["killed"]} | {sums["explained"]} | {sums["SURVIVED"]} |')
        self.print('\nDrawn again: ' + (', '.join(f'{n} {why}' for why, n in
                                        sorted(self.redrawn.items())) or 'none') + '.')
        return 1 if sums['SURVIVED'] else 0


def judge(one, tree, sanitized, report):
    """The verdict, or None if another fault must be drawn."""
    with tree.mutated(one):
        if not tree.build():
            return report.redraw('did not compile')
        code = tree.changed_code()
        if code is None:
            return report.redraw('changed no machine code')
        if not report.is_new(one, code):
            return report.redraw('gave the same machine code as an earlier one')
        killer = tree.first_failure(one.file)
    if killer is None and sanitized:
        with sanitized.lock, sanitized.mutated(one):
            killer = sanitized.first_failure(one.file) if sanitized.build() else 'does not compile'
            killer = killer and killer + ', validated, with sanitizers'
    return f'killed: {killer}' if killer else 'SURVIVED'


class Workers:
    def __init__(self, arguments, draw, report):
        self.draw, self.report, self.left = draw, report, arguments.count
        self.lock, self.reasons, self.failure = threading.Lock(), explanations(), None
        place = ROOT / 'build/mutate'
        leaves = arguments.set == 'quick'
        self.sanitized = (None if arguments.quick else
                          Tree(ROOT, place / 'sanitized', sanitize=True, leaves_to_all=leaves))
        self.trees = [Tree(ROOT, place / f'release{i}', leaves_to_all=leaves)
                      for i in range(arguments.jobs)]

    def take(self):
        with self.lock:
            if self.left == 0 or self.failure:
                return None
            self.left -= 1
            return self.draw.next()

    def put_back(self):
        with self.lock:
            self.left += 1

    def work(self, tree):
        try:
            tree.prepare()
            while (one := self.take()) is not None:
                began = time.monotonic()
                verdict = judge(one, tree, self.sanitized, self.report)
                if verdict is None:
                    self.put_back()
                    continue
                reason = explained(one, self.reasons) if verdict == 'SURVIVED' else None
                self.report.row(one, f'explained: {reason}' if reason else verdict,
                                time.monotonic() - began)
        except Exception as error:  # the main thread raises the exception again
            self.failure = error

    def run(self):
        for tree in filter(None, [self.sanitized, *self.trees]):
            tree.copy_sources()
        if self.sanitized:
            self.sanitized.prepare()
        threads = [threading.Thread(target=self.work, args=[tree]) for tree in self.trees]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt as interrupt:
            self.failure = interrupt  # each worker ends its mutant and restores its copy
            for thread in threads:
                thread.join()
        if self.failure:
            raise self.failure


def main():
    arguments = parse_arguments()
    files = source_files(arguments.files)
    if not shutil.which('ninja'):
        sys.exit('mutate.py: ninja is not in PATH')
    if not files:
        sys.exit(f'no source file matches {arguments.files}')
    if arguments.again:
        draw = Again(files, arguments.again)
        arguments.count = len(draw.left)
        if not draw.left:
            sys.exit(f'{arguments.again}: none of its survivors is still in the source')
    else:
        draw = Draw(files, arguments.seed)
    (ROOT / 'build/mutate').mkdir(parents=True, exist_ok=True)
    report = Report(arguments.table, arguments.seed)
    try:
        Workers(arguments, draw, report).run()
    except TestsFail as error:
        sys.exit(f'fails without a fault: {error}')
    except KeyboardInterrupt:
        report.finish()
        sys.exit('interrupted')
    sys.exit(report.finish())


if __name__ == '__main__':
    main()
