#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Every file exists that a page links to, or that tests/mutate/survivors.md excuses. Usage:
# named_files.sh SOURCE_FOLDER
set -u
cd "$1" || exit 1
found=0 failures=0
require() {  # PAGE PATH
  found=$((found + 1))
  compgen -G "$2" >/dev/null || { echo "FAILED: $1 names $2, which is not there"; failures=1; }
}
while IFS= read -r page; do
  while IFS= read -r link; do
    require "$page" "$(dirname "$page")/$link"
  done < <(grep -oE '\]\([^)#: ]+' "$page" | cut -c3- | grep -vxE 'https?')
done < <(find . -name build -prune -o -name '*.md' -print)
while IFS= read -r file; do
  require tests/mutate/survivors.md "$file"
done < <(sed -nE 's/^- `([^`]+)`.*/\1/p' tests/mutate/survivors.md)
[ $found -ge 150 ] || { echo "FAILED: only $found names found"; failures=1; }
exit $failures
