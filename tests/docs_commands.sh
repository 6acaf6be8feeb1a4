#!/usr/bin/env bash
# Runs every command of the fenced sh blocks in README.md and docs/, as a reader would: from the
# repository's root, after ./run build. What they write goes to a scratch folder. Lines of programs that
# were left out of the build (the viewer) are skipped, and said to be.
# Usage: docs_commands.sh SOURCE_FOLDER FOLDER_OF_PROGRAMS
set -u
source=$(realpath "$1") bin=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
run=0 failures=0

# A root that looks like the repository's, so that it stays clean.
mkdir -p "$scratch/build/release"
ln -s "$bin" "$scratch/build/release/bin"
ln -s "$source"/{benchmarks,docs,tests} "$scratch"
cd "$scratch" || exit 1

for page in "$source"/README.md "$source"/docs/*.md; do
  while IFS= read -r line; do
    program=${line%% *}
    case $program in
      "" | "#") continue ;;
      build/release/bin/*)
        if [ ! -x "$program" ] && [[ " rigid_bodies replay hello " != *" ${program##*/} "* ]]; then
          echo "skipped, not built: $line"
          continue
        fi ;;
    esac
    run=$((run + 1))
    if ! timeout 300 bash -c "$line" >log 2>&1 </dev/null; then
      echo "FAILED: $(basename "$page"): $line"
      tail -n 5 log | sed 's/^/  | /'
      failures=$((failures + 1))
    fi
  done < <(sed -n '/^```sh$/,/^```$/p' "$page" | grep -v '^```')
done
echo "$run commands of README.md and docs/ were run, $failures failed"
[ $run -ge 15 ] || { echo "FAILED: too few commands found"; exit 1; }
[ $failures -eq 0 ]
