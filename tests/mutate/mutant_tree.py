# SPDX-License-Identifier: Zlib
"""A copy of the source with its own build, in which one fault at a time is planted."""
import collections
import contextlib
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time

MEMORY = 8 << 30  # bytes that a test may allocate, because some faults would use all memory
LIBRARIES = ['gpulbvh_broadphase', 'gpulbvh_bullet']
FIRST = 5  # tests that are built and run before the others
REPLAYS = ('finder', 'adapter')  # fuzz targets


class TestsFail(Exception):
    pass


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


class Tree:
    def __init__(self, root, place, sanitize=False, leaves_to_all=False):
        self.root, self.source, self.out = root, place / 'src', place / 'out'
        self.sanitize, self.leaves_to_all = sanitize, leaves_to_all
        self.lock = threading.Lock()
        self.kills = collections.defaultdict(collections.Counter)  # found faults, by file and test
        self.seconds = {}  # time of each test without a fault
        self.unmutated_code = None

    def prepare(self):
        """Builds the copy and runs all tests. @raises TestsFail"""
        sanitizers = '-fsanitize=address,undefined -fno-sanitize-recover=all'
        kind = 'Debug' if self.sanitize else 'RelWithDebInfo'  # neither is a unity build
        flags = '-O1 -w ' + (sanitizers if self.sanitize else '-DNDEBUG')
        # With shared libraries, a fault in a library does not require linking the tests again. Shared
        # libraries do not link with UBSan.
        self.command('cmake', '-G', 'Ninja', '-S', self.source, '-B', self.out,
                     '-D', f'BUILD_SHARED_LIBS={"OFF" if self.sanitize else "ON"}',
                     '-D', f'CMAKE_BUILD_TYPE={kind}',
                     '-D', f'CMAKE_CXX_FLAGS_{kind.upper()}={flags}',
                     '-D', f'GPULBVH_CHECKED={"ON" if self.sanitize else "OFF"}',
                     '-D', 'GPULBVH_CUDA=OFF', '-D', 'CMAKE_LINK_DEPENDS_NO_SHARED=ON')
        targets = self.command('ninja', '-C', self.out, '-t', 'targets', 'all').stdout
        self.tests = [t for t in re.findall(r'^bin/(\w+_tests):', targets, re.M)
                      if not t.startswith(('viewer', 'cuda'))]
        self.tests += [f'replay_{name}' for name in REPLAYS]
        if self.leaves_to_all:
            left = self.command('ctest', '--test-dir', self.out, '--show-only', '--label-regex', '^all$').stdout
            self.tests = [t for t in self.tests if not re.search(rf': {t}$', left, re.M)]
        if not self.build(LIBRARIES + self.tests):
            raise TestsFail(f'{self.out} does not build')
        self.includes = self.included_files()
        self.unmutated_code = self.code()
        self.unmutated_tests = self.code(self.tests)
        for test in self.tests:
            began = time.monotonic()
            failure = self.failure_of(test, 600)
            if failure:
                raise TestsFail(f'{failure} in {self.out}')
            self.seconds[test] = time.monotonic() - began

    def copy_sources(self):
        files = self.command('git', '-C', self.root, 'ls-files', '-co', '--exclude-standard').stdout
        for file in files.splitlines():
            old, new = self.root / file, self.source / file
            if not old.is_file() or new.is_file() and new.read_bytes() == old.read_bytes():
                continue
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(old, new)

    @staticmethod
    def command(*arguments):
        return subprocess.run([str(a) for a in arguments], check=True, capture_output=True,
                              text=True)

    @contextlib.contextmanager
    def mutated(self, mutation):
        path = self.source / mutation.file
        source = path.read_text()
        path.write_text(mutation.applied(source))
        try:
            yield
        finally:
            path.write_text(source)

    def build(self, targets=LIBRARIES):
        return subprocess.run(['ninja', '-C', str(self.out), '-j', '2', *targets],
                              capture_output=True).returncode == 0

    def code(self, targets=LIBRARIES):
        files = [f for t in targets for f in (self.out / f'lib{t}.so', self.out / 'bin' / t)]
        return hashlib.sha256(b''.join(hashlib.sha256(f.read_bytes()).digest()
                                       for f in files if f.is_file())).hexdigest()

    def changed_code(self):
        """A digest of the machine code; None if it equals that of the source without a fault."""
        code = self.code()
        if code != self.unmutated_code:
            return code
        code = self.code(self.tests) if self.build(self.tests) else None  # tests contain the templates' code
        return None if code == self.unmutated_tests else code

    def first_failure(self, file):
        """The first test that notices a fault. The order is: tests that noticed faults of this file,
        tests that need not be built again, quick tests. The tests are built in two groups,
        because the first group notices most faults."""
        order = sorted(self.tests, key=lambda t: (-self.kills[file][t], file in self.includes[t],
                                                  self.seconds[t]))
        for tests in (order[:FIRST], order[FIRST:]):
            if not self.build(tests):
                return 'does not compile in a test'
            for test in tests:
                failure = self.failure_of(test, 10 + 10 * self.seconds[test])
                if failure:
                    self.kills[file][test] += 1
                    return failure
        return None

    def included_files(self):
        """For each test, the files of this repository that its own source includes."""
        included = collections.defaultdict(set)
        target = None
        for line in self.command('ninja', '-C', self.out, '-t', 'deps').stdout.splitlines():
            if line and not line[0].isspace():
                match = re.match(r'tests/CMakeFiles/(\w+)\.dir/', line)
                target = match and match[1]
            elif target and f'{self.source}/' in line:
                included[target].add(line.strip().removeprefix(f'{self.source}/'))
        return included

    def inputs(self, replay):
        """The inputs that fuzzers found, and random inputs that are equal for every fault."""
        name = replay.removeprefix('replay_')
        return ['--inputs', '300', '--seed', '1', str(self.source / f'tests/fuzz/{name}.inputs')]

    def failure_of(self, test, limit):
        """What fails in a test, or None if it passes."""
        environment = dict(os.environ, ASAN_OPTIONS=f'hard_rss_limit_mb={MEMORY >> 20}')
        arguments = self.inputs(test) if test.startswith('replay_') else ['--gtest_fail_fast']
        process = subprocess.Popen(
            [str(self.out / 'bin' / test), *arguments], cwd=self.out, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
            start_new_session=True, preexec_fn=None if self.sanitize else limit_memory)
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f'{test}, still running after {limit:.0f} s'
        if process.returncode == 0:
            return None
        lines = output.splitlines()
        for line in lines:
            if line.startswith('[  FAILED  ] ') and '.' in line:
                return re.split(r'[ ,]', line[len('[  FAILED  ] '):])[0]
        running = [line.split('] ')[1] for line in lines if line.startswith('[ RUN ')]
        return f'{running[-1] if running else test}, status {process.returncode}'
