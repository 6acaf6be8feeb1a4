#!/usr/bin/env python3
# SPDX-License-Identifier: Zlib
"""Checks that the repository's statements about itself are true. Most checks are also tests of CTest.

Usage: check.py NAME [ARGUMENT]...      NAME is a function below; a comment names its arguments
Exits with 0 if the check holds, 1 if not, and 77 (skipped) if a tool is missing."""
import csv
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
failures = 0


def require(holds, what):
    global failures
    if not holds:
        print("FAILED:", what)
        failures += 1


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def files(folders, endings):
    """Sorted paths, relative to the root. Skips folders named build."""
    found = []
    for folder in folders.split():
        for here, below, names in os.walk(ROOT / folder):
            below[:] = [name for name in below if name not in ("build", ".git")]
            found += [os.path.relpath(os.path.join(here, name), ROOT) for name in names if name.endswith(endings)]
    return sorted(found)


def blocks(page, language):
    """The fenced blocks of a page, each with the number of its first line."""
    text = read(page)
    return [(text.count("\n", 0, match.start(1)) + 1, match.group(1))
            for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)]


def run(*command, **options):
    """Returns the status of the command and its output."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **options)
    return done.returncode, done.stdout


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            print("skipped: no", tool)
            sys.exit(77)


# Path prefixes, each with the number of its layer. The first prefix that matches a path determines the path's
# layer.
ROOMS = [(1, "broadphase/core/"), (2, "broadphase/lbvh/"), (2.1, "broadphase/host/parallel/"),
         (2.2, "broadphase/host/simd/"), (2.15, "broadphase/host/block_tree"),
         (2.16, "broadphase/host/block_query"), (2.17, "broadphase/tree_query"), (2.18, "broadphase/query/tree_query"),
         (2.3, "broadphase/host/verlet/"),
         (3, "broadphase/host/"), (2.1, "broadphase/cuda/runtime/"), (2.3, "broadphase/cuda/kernels/"),
         (3, "broadphase/cuda/"), (4, "broadphase/choose/"), (5, "broadphase/pair_finder"),
         (5.5, "broadphase/device_pair_finder"), (0, "broadphase/"), (6, "integration/"), (6.5, "dbvt/"),
         (7, "samples/support/"),
         (8, "samples/scenes/"), (8, "samples/worlds/"), (9, "samples/report/"), (10, "samples/"), (10, "viewer/"),
         (10, "benchmarks/")]


def upward_includes():
    """No file includes a file of a higher layer, or a file of its own layer with another prefix."""
    sources = files("broadphase integration dbvt samples viewer benchmarks", (".h", ".inl", ".cpp", ".cuh", ".cu"))
    named = {os.path.basename(path): path for path in sources}

    def room(path):
        return next(room for room in ROOMS if path.startswith(room[1]))

    def resolve(name, source):
        """Looks in the file's folder, the root and samples/, and then for any file of that name."""
        places = (os.path.join(os.path.dirname(source), name), name, "samples/" + name)
        return next((path for path in places if path in known), named.get(os.path.basename(name)))

    known = set(sources)
    count = 0
    for source in sources:
        for number, line in enumerate(read(source).splitlines(), 1):
            include = re.match(r' *# *include *"([^"]+)"', line)
            target = include and resolve(include.group(1), source)
            if target:
                count += 1
                above, below = room(source), room(target)
                require(above == below or below[0] < above[0],
                        f"{source}:{number}: includes {target}, which is not below it")
    require(count >= 200, f"only {count} includes were found")
    print(count, "includes")


def named_tests():
    """Every test that docs/contract.md names exists."""
    tests = "".join(map(read, files("tests", ".cpp")))
    exist = set(re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", tests, re.M))
    names = set(re.findall(r"`([A-Z][A-Za-z]+)\.([A-Z][A-Za-z]+)`", read("docs/contract.md")))
    for name in sorted(names - exist):
        require(False, f"there is no test {'.'.join(name)}")
    require(len(names) >= 20, f"only {len(names)} names were found")


def named_files():
    """No page links to a missing file, and tests/mutate/survivors.md excuses only files that exist."""
    names = [("tests/mutate/survivors.md", name)
             for name in re.findall(r"^- `([^`]+)`", read("tests/mutate/survivors.md"), re.M)]
    for page in files(".", ".md"):
        names += [(page, os.path.join(os.path.dirname(page), link))
                  for link in re.findall(r"\]\((?!https?:)([^)#: ]+)", read(page))]
    for page, name in names:
        require(glob.glob(str(ROOT / name)), f"{page} names {name}, which does not exist")
    require(len(names) >= 150, f"only {len(names)} names were found")


def license_lines():
    """Every source file names its license in its first or second line."""
    endings = (".cpp", ".h", ".cu", ".cuh", ".inl", ".sh", ".py", ".cmake", ".in", "CMakeLists.txt")
    sources = ["run", "CMakeLists.txt", *files(".ci", "")]
    sources += files("benchmarks broadphase cmake docs include integration packaging samples tests viewer", endings)
    for source in sources:
        require(re.match(r"(.*\n)?(//|#) SPDX-License-Identifier: Zlib\n", read(source)),
                f"{source} has no line SPDX-License-Identifier: Zlib at its head")
    require(len(sources) >= 450, f"only {len(sources)} files were found")


def readme_snippet():
    """Each C++ block of the README is in samples/hello.cpp, in the README's order. The block with a
    PairFinder is in docs/integration.md instead. docs_snippets compiles the blocks of that page."""
    rest = "\n" + read("samples/hello.cpp")
    guide = "".join("\n" + block for _, block in blocks("docs/integration.md", "cpp"))
    shown = [block for _, block in blocks("README.md", "cpp")]
    for block in shown:
        if "PairFinder" in block:
            require("\n" + block in guide, f"not in docs/integration.md:\n{block}")
            continue
        _, found, rest = rest.partition("\n" + block.rstrip("\n"))
        require(found and rest.startswith("\n"), f"not in samples/hello.cpp, or not in this order:\n{block}")
    for line in ("GpuLbvhBroadphase broadphase;  // was: ", "PairFinder finder;"):
        require(line in "".join(shown), f"the README does not show: {line}")


def readme_figures():
    """The README's chart is what bench.py draws from the committed CSV files, and the first sentence about
    speed has the ranges of those files."""
    results = ROOT / "benchmarks/results/epyc-2-cores"
    scenes = [results / "scenes.csv", results / "scenes_avx2.csv"]
    with tempfile.TemporaryDirectory() as scratch:
        drawn = Path(scratch) / "speed.svg"
        status, said = run(ROOT / "benchmarks/bench.py", "chart", "--scenes", *scenes, "--sizes",
                           results / "over_size.csv", results / "over_size_avx2.csv", drawn)
        require(status == 0, said)
        require(status == 0 and drawn.read_text(encoding="utf-8") == read("docs/pictures/speed.svg"),
                "docs/pictures/speed.svg differs from what `bench.py chart` draws")
    rows = []
    for file in scenes:
        with open(file, newline="", encoding="utf-8") as lines:
            rows += [row for row in csv.DictReader(lines) if row["scene"] != "stack"]

    def between(column, digits):
        values = [float(row[column]) for row in rows]
        return f"{min(values):,.{digits[0]}f} to {max(values):,.{digits[1]}f}"

    readme = " ".join(read("README.md").split())
    for figure in (f"{between('broadphase_ratio', (1, 0))} times as fast",
                   f"scenes of {between('boxes', (0, 0))} objects",
                   f"whole step is {between('step_ratio', (1, 1))} times as fast"):
        require(figure in readme, f"the README does not say: {figure}")


# Declarations for the snippets. One group is for a Bullet program, the other for a program with its
# boxes on a GPU.
SNIPPETS = """
#include <BulletCollision/CollisionDispatch/btGhostObject.h>
#include <GpuLbvhBroadphase.h>
#include <btBulletDynamicsCommon.h>
#include <gpulbvh/device_pair_finder.h>
#include <gpulbvh/pair_finder.h>
#include <gpulbvh/tree_query.h>
#include <migrateBroadphase.h>
#include <cstdio>
#include <vector>
struct Program {
  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher{&configuration};
  btSequentialImpulseConstraintSolver solver;
  GpuLbvhBroadphase broadphase;
  btDiscreteDynamicsWorld world{&dispatcher, &broadphase, &solver, &configuration};
  btOverlapFilterCallback& filter;
@integration.md@
};
struct Body {
  float lower[3], upper[3], velocity[3];
};
struct Engine {
  lbvh::DevicePairFinder finder;
  std::size_t capacity;
  const std::uint32_t *deviceCount, *deviceWorlds, *deviceRayWorlds;
  const Body* deviceBodies;
  const lbvh::Ray* deviceRays;
  lbvh::RayHit* deviceHits;
  lbvh::DeviceScene scene;
  lbvh::DeviceRequest request;
  CUstream_st* stream;
@device.md@
};
"""


def docs_snippets(*compiler):  # [COMPILER [FLAG]...]
    """The C++ blocks of two pages compile, each as the body of a function."""
    def functions(match):
        page = "docs/" + match.group(1)
        require(blocks(page, "cpp"), f"{page} has no C++ block")
        return "\n".join(f'void snippet{line}() {{\n#line {line} "{page}"\n{text}}}'
                         for line, text in blocks(page, "cpp"))

    source = re.sub(r"^@(.*)@$", functions, SNIPPETS, flags=re.M)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "snippets.cpp"
        path.write_text(source, encoding="utf-8")
        # A snippet need not use all its variables.
        status, said = run(*compiler, "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-std=c++17",
                           "-fsyntax-only", path)
    require(status == 0, "the compiler says:\n" + said)


def why_not(command, root):
    """Returns why a command of the documentation is not run, or an empty string if it is run."""
    if command.startswith("./run"):
        return "installs and builds"
    if not command.startswith("build/release/bin/viewer"):
        return ""
    if not (root / "build/release/bin/viewer").exists():
        return "not built"
    return "" if re.search("--(screenshot|video|verify|help)", command) else "opens a window"


def docs_commands(programs):  # [FOLDER_OF_PROGRAMS]
    """Every command in the sh blocks of README.md and docs/ runs from the repository's root after ./run build,
    as a reader would run it. The commands write to a scratch folder."""
    starts = {"./run demo": "rigid_bodies", "./run worlds": "many_worlds", "./run viewer": "viewer"}
    ran = 0
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)  # a stand-in for the repository's root, with links to what the commands use
        (root / "build/release").mkdir(parents=True)
        (root / "docs/pictures").mkdir(parents=True)
        (root / "build/release/bin").symlink_to(Path(programs).resolve())
        for folder in ("benchmarks", "tests"):
            (root / folder).symlink_to(ROOT / folder)
        for page in ["README.md", *files("docs", ".md")]:
            lines = "".join(text for _, text in blocks(page, "sh")).replace("\\\n", "").splitlines()
            for line in filter(re.compile("[^#]").match, lines):
                command = line  # ./run builds first, and then runs a program
                for start, program in starts.items():
                    command = re.sub("^" + re.escape(start), "build/release/bin/" + program, command)
                reason = why_not(command, root)
                if reason:
                    print(f"skipped, {reason}: {line}")
                    continue
                ran += 1
                status, said = run("timeout", "300", "bash", "-c", command, cwd=root)
                require(status == 0, f"{page}: {line}\n" + "\n".join("  | " + last for last in said.splitlines()[-5:]))
    print(ran, "commands of README.md and docs/ were run")
    require(ran >= 15, "too few commands were found")


def first_minutes(cxx):  # [COMPILER]
    """The project of docs/first_minutes.md, with the repository as a folder in it, builds and runs."""
    page = "docs/first_minutes.md"
    with tempfile.TemporaryDirectory() as scratch:
        game = Path(scratch)
        for name, language in (("CMakeLists.txt", "cmake"), ("game.cpp", "cpp")):
            (_, text), = blocks(page, language)
            (game / name).write_text(text, encoding="utf-8")
        (game / "GpuLbvhBroadphase").symlink_to(ROOT)
        for command in (["cmake", "-B", "build", "-D", "CMAKE_BUILD_TYPE=Release", "-D", "GPULBVH_CUDA=OFF",
                         f"-DCMAKE_CXX_COMPILER={cxx}"], ["cmake", "--build", "build", "--parallel", "--target", "game"],
                        ["build/game"]):
            status, said = run(*command, cwd=game)
            require(status == 0, said)
    require("mean of a step: GpuLbvhBroadphase" in said and "pairs" in said, said)
    print(said)


def without_cmake():
    """The commands of "Without CMake" in docs/integration.md build a program that runs. The commands
    contain Debian's folder for Bullet's headers."""
    with tempfile.TemporaryDirectory() as scratch:
        for folder in ("broadphase", "include", "integration", "samples"):
            shutil.copytree(ROOT / folder, Path(scratch) / folder)
        commands = "".join(text for _, text in blocks("docs/integration.md", "bash"))
        require("g++" in commands, "no compiler is called")
        status, said = run("bash", "-euo", "pipefail", "-c", commands + "\n./hello", cwd=scratch)
    require(status == 0 and "rests at a height of 0.50 m" in said, said)
    print(said)


def api_reference(version, *headers):  # [VERSION HEADER...]
    """Doxygen prints no warning, documents the public headers and no others, and writes no dead
    link."""
    need("doxygen")
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "a reference"
        output.mkdir()
        status, said = run("doxygen", "docs/Doxyfile", cwd=ROOT,
                           env=dict(os.environ, VERSION=version, OUTPUT=str(output), HEADERS=" ".join(headers)))
        require(status == 0, "Doxygen warned:\n" + said)
        pages = {page.name: page.read_text(encoding="utf-8") for page in (output / "html").glob("*.html")}
        links = {(link, name) for name, text in pages.items()
                 for link in re.findall(r'(?:href|src)="(?!https?:|javascript:)([^"#]+)', text)}
        for link, name in sorted(links):
            require((output / "html" / link).exists(), f"a dead link to {link} in {name}")
    for page, text in (("index", version), ("md_docs_.*integration", "One line"),
                       ("classlbvh_1_1PairFinder", "updateUnchanged"),
                       ("classGpuLbvhBroadphase", "calculateOverlappingPairs"),
                       ("migrateBroadphase_8h", "ghostCallback"), ("namespacelbvh", "rayTestBatch")):
        require(any(re.fullmatch(page + r"\.html", name) and text in pages[name] for name in pages),
                f"{page}.html does not have: {text}")
    told = set(re.findall(r"(\w+\.h)</a>", pages.get("files.html", "")))
    public = {os.path.basename(header) for header in headers}
    require(told == public, f"Doxygen documents the headers {sorted(told)}, not {sorted(public)}")
    require(len({link for link, _ in links}) >= 80, "too few links were found")


def man_pages(programs, version, *names):  # [FOLDER_OF_PROGRAMS VERSION PROGRAM...]
    """Each program's manual page has its name, its version, its purpose and every option, and groff
    prints no warning."""
    need("help2man", "groff")
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            page, warnings = Path(scratch) / name, Path(scratch) / "warnings"
            status, said = run(ROOT / "cmake/man_page.sh", f"{programs}/{name}", page)
            require(status == 0, f"{name}: {said}")
            _, text = run("bash", "-c", 'groff -man -ww -Tascii -P-cbu "$0" 2>"$1"', page, warnings)
            require(not warnings.read_text(), f"{name}: groff warns: {warnings.read_text()}")
            _, help_text = run(f"{programs}/{name}", "--help")
            first, second = (help_text[0].lower() + help_text[1:]).split()[:2]
            for pattern in (rf"^{name.upper()}\(1\) ", rf"^ +{name} +- +{re.escape(first)} +{re.escape(second)}",
                            rf"^ +{name} .*OPTIONS", rf"^GpuLbvhBroadphase {re.escape(version)} "):
                require(re.search(pattern, text, re.M), f"{name}: its page does not have: {pattern}")
            # groff changes line ends and hyphens, so options are searched for in its input.
            source = page.read_text(encoding="utf-8").replace("\\-", "-")
            options = re.findall(r"^ +(?:-[a-z],)?(--[a-z-]+)", help_text, re.M)
            require(len(options) >= 4, f"{name}: too few options: {options}")
            for option in options:
                require(re.search(option + r"([^a-z-]|$)", source, re.M), f"{name}: its page does not have {option}")


def msvc_flags(cxx, nvcc):  # [CXX NVCC]
    """The project's options for MSVC reach C++ but not nvcc, which would take /W4 for a second input
    file. nvcc compiles a kernel in a build in which CMake's variable MSVC is true."""
    with tempfile.TemporaryDirectory() as scratch:
        status, said = run("cmake", "-S", ROOT / "tests/msvc_flags", "-B", scratch, "-G", "Unix Makefiles",
                           "-D", f"ROOT={ROOT}", "-D", f"CMAKE_CXX_COMPILER={cxx}", "-D", f"CMAKE_CUDA_COMPILER={nvcc}",
                           "-D", "CMAKE_CUDA_ARCHITECTURES=75")
        require(status == 0, said)
        status, said = run("cmake", "--build", scratch, "--target", "device")
        require(status == 0, said)
        commands = (Path(scratch) / "compile_commands.json").read_text(encoding="utf-8")
    require(re.search(r'"command".*/W4 /WX.*host\.cpp', commands), "C++ is compiled without /W4 /WX")


CHECKS = (upward_includes, named_tests, named_files, license_lines, readme_snippet, readme_figures, docs_snippets,
          docs_commands, first_minutes, without_cmake, api_reference, man_pages, msvc_flags)

if __name__ == "__main__":
    chosen = {check.__name__: check for check in CHECKS}.get((sys.argv + [""])[1])
    if not chosen:
        sys.exit(__doc__ + "\n" + " ".join(check.__name__ for check in CHECKS))
    chosen(*sys.argv[2:])
    sys.exit(failures > 0)
