#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Every source file names its licence at its head. Usage: license_lines.sh SOURCE_FOLDER
set -u
cd "$1" || exit 1
found=0 failures=0
while IFS= read -r file; do
  found=$((found + 1))
  head -n 2 "$file" | grep -qxE '(//|#) SPDX-License-Identifier: Zlib' ||
    { echo "FAILED: $file has no line SPDX-License-Identifier: Zlib at its head"; failures=1; }
done < <(find .ci benchmarks broadphase cmake include integration packaging samples tests viewer docs CMakeLists.txt \
  -name build -prune -o -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inl' -o -name '*.sh' \
  -o -name '*.py' -o -name '*.cmake' -o -name '*.in' -o -name CMakeLists.txt -o -path '.ci/*' \) -print)
[ $found -ge 450 ] || { echo "FAILED: only $found files found"; failures=1; }
exit $failures
