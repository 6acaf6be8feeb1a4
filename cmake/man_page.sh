#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Writes a program's manual page. help2man makes the page from --help and --version. The first line of
# --help states the program's purpose. Usage: man_page.sh PROGRAM PAGE
set -euo pipefail
help=$("$1" --help)
about=${help%%$'\n'*}
about=${about%.}
help2man --no-info --section=1 --name="${about,}" --output="$2" "$1"
