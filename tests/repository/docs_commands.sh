#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Runs every command of the fenced sh blocks in README.md and docs/, as a reader would: from the
# repository's root, after ./run build. What they write goes to a scratch folder. Skipped, and said to
# be: what opens a window, what installs, and programs that were left out of the build (the viewer).
# Usage: docs_commands.sh SOURCE_FOLDER FOLDER_OF_PROGRAMS
set -u
source=$(realpath "$1") bin=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
run=0 failures=0

# A root that looks like the repository's, so that it stays clean.
mkdir -p "$scratch/build/release" "$scratch/docs/pictures"
ln -s "$bin" "$scratch/build/release/bin"
ln -s "$source"/{benchmarks,tests} "$scratch"
cd "$scratch" || exit 1

# Why a command is not run; empty if it is.
why_not() {
  case $1 in
    ./run*) echo "installs and builds" ;;
    build/release/bin/viewer*)
      if [ ! -x build/release/bin/viewer ]; then echo "not built"; return; fi
      [[ $1 =~ --(screenshot|video|verify|help) ]] || echo "opens a window" ;;
  esac
}

for page in "$source"/README.md "$source"/docs/*.md; do
  while IFS= read -r line; do
    # ./run builds first, and then runs a program.
    command=${line/#.\/run demo/build/release/bin/rigid_bodies}
    command=${command/#.\/run worlds/build/release/bin/many_worlds}
    command=${command/#.\/run viewer/build/release/bin/viewer}
    reason=$(why_not "$command")
    if [ -n "$reason" ]; then
      echo "skipped, $reason: $line"
      continue
    fi
    run=$((run + 1))
    if ! timeout 300 bash -c "$command" >log 2>&1 </dev/null; then
      echo "FAILED: $(basename "$page"): $line"
      tail -n 5 log | sed 's/^/  | /'
      failures=$((failures + 1))
    fi
  done < <(sed -n '/^```sh$/,/^```$/p' "$page" | sed -E ':a; /\\$/ { N; s/\\\n */ /; ba }; /^(```.*|#.*|)$/d')
done
echo "$run commands of README.md and docs/ were run, $failures failed"
[ $run -ge 15 ] || { echo "FAILED: too few commands found"; exit 1; }
[ $failures -eq 0 ]
