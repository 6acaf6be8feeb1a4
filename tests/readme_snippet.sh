#!/usr/bin/env bash
# The README's C++ snippet must be samples/hello.cpp, word for word. Usage: readme_snippet.sh ROOT
set -eu
sed -n '/^```cpp$/,/^```$/p' "$1/README.md" | sed '1d;$d' | diff - "$1/samples/hello.cpp"
