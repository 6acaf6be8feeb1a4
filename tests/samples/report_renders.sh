#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Renders a report of rigid_bodies in headless Chromium. The page must print nothing on the console and
# fetch nothing. Each chart must have a title, axes with units, a legend and a size, and texts must not
# overlap. Exits with 77 (skipped) if there is no Chromium.
# Usage: report_renders.sh RIGID_BODIES [PAGE]
set -euo pipefail
program=$1
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
# Ubuntu's chromium is only a script that tells the user to install a snap.
if [ -z "$chromium" ] || ! "$chromium" --version >/dev/null 2>&1; then
  echo "skipped: no chromium"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

page=${2:-$scratch/report.html}
if [ $# -lt 2 ]; then
  # Characters that must not become markup. The page shows them in the command.
  mkdir "$scratch/<b>&"
  page="$scratch/<b>&/report.html"
  "$program" --scene pile --steps 12 --sizes 60,120,240,2400 --compare all --report "$page" >/dev/null
fi

# render FILE: prints the document after its scripts have run. Writes the console to $scratch/log.
render() {
  timeout 100 "$chromium" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync \
    --user-data-dir="$scratch/profile" --window-size=1200,1000 --enable-logging=stderr --dump-dom \
    "file://$1" 2>"$scratch/log"
}
fail() { echo "FAILED: $*"; exit 1; }

cp "$page" "$scratch/as_written.html"
render "$scratch/as_written.html" >"$scratch/dom.html"
if grep -E 'CONSOLE' "$scratch/log"; then fail "messages on the console"; fi
grep -q '</html>' "$scratch/dom.html" || fail "nothing was rendered"
if grep -nE '(src|href)=|url\(|@import|<b>&|[^a-z](nan|inf)[^a-z]' "$page" | head -n 3 | grep .; then
  fail "a reference to another file, a character that is not escaped, or a nan or inf"
fi

# The page's Content-Security-Policy forbids scripts, so the checks run in a copy without it.
cat >"$scratch/checks.html" <<'EOF'
<script>
const problems = [];
const check = (ok, what) => { if (!ok) problems.push(what); };
const charts = [...document.querySelectorAll('svg.chart')];
check(charts.length >= WANTED, `${charts.length} charts instead of WANTED`);
for (const chart of charts) {
  const text = kind => [...chart.querySelectorAll(kind)].map(e => e.textContent.trim()).join();
  const name = text('.title');
  check(name.length > 8, 'a chart without a title');
  check(/step|\(.+\)/.test(text('.x-title')), `${name}: x axis without a unit`);
  const bars = chart.querySelectorAll('.fill').length;
  const lines = [...chart.querySelectorAll(':scope > .line')];
  check(bars || /\((ms|count)\)/.test(text('.y-title')), `${name}: y axis without a unit`);
  check(bars ? bars % 5 == 0 : lines.length > 0, `${name}: nothing drawn`);
  check(lines.every(e => e.getTotalLength() > 0 || e.getAttribute('d').split('L').length < 2),
        `${name}: a line without length`);
  check([...chart.querySelectorAll('.legend text')].length == (bars ? 5 : lines.length),
        `${name}: legend does not fit`);
  check(chart.querySelectorAll('.tick').length > 4, `${name}: axes without marks`);
  check(chart.querySelectorAll('circle title, rect title').length > 0, `${name}: nothing to hover`);
  const whole = chart.getBoundingClientRect();
  check(whole.width > 200 && whole.height > 100, `${name}: ${whole.width} x ${whole.height}`);
  const boxes = [...chart.querySelectorAll('text')].map(e => [e, e.getBoundingClientRect()]);
  for (const [e, box] of boxes) {
    check(box.width > 0 && box.left >= whole.left - 1 && box.right <= whole.right + 1 &&
          box.top >= whole.top - 1 && box.bottom <= whole.bottom + 1,
          `${name}: "${e.textContent}" is cut off`);
    for (const [f, other] of boxes)
      check(e === f || box.right <= other.left || other.right <= box.left ||
            box.bottom <= other.top + 1 || other.bottom <= box.top + 1,
            `${name}: "${e.textContent}" over "${f.textContent}"`);
  }
}
check(document.querySelectorAll('tbody tr').length >= 2, 'no table');
check(document.documentElement.scrollWidth <= innerWidth, 'wider than the window');
check(/Processor/.test(document.querySelector('dl').textContent), 'no description of the machine');
const verdict = document.createElement('pre');
verdict.textContent = `VERDICT ${charts.length} charts, ${problems.length} problems\n` + problems.join('\n');
document.body.append(verdict);
</script>
EOF
wanted=$(grep -q 'Over the number of objects' "$page" && echo 6 || echo 4)
sed '/Content-Security-Policy/d' "$page" >"$scratch/asked.html"
sed "s/WANTED/$wanted/g" "$scratch/checks.html" >>"$scratch/asked.html"
render "$scratch/asked.html" | sed -n '/<pre>VERDICT/,/<\/pre>/p' | sed 's/<[^>]*>//g' >"$scratch/verdict"
cat "$scratch/verdict"
grep -q 'VERDICT .* 0 problems' "$scratch/verdict" || fail "see above"
