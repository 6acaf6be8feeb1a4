// SPDX-License-Identifier: Zlib
// The style sheet of the HTML reports, for light and dark screens and for paper. Colour-blind
// people can distinguish the colours c0 to c3. Lines also differ in their dash patterns.
#pragma once

inline constexpr const char* kHtmlStyle = R"(
:root { color-scheme: light dark;
  --paper: #ffffff; --ink: #1c2430; --soft: #5a6675; --rule: #d9dee5; --panel: #f6f8fa;
  --c0: #0b66c3; --c1: #c2500a; --c2: #0a7d5c; --c3: #97509c; --hint: #6f7781; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #12161c; --ink: #e4e9ef; --soft: #a2adba; --rule: #333c47; --panel: #1a2028;
  --c0: #62acf5; --c1: #f0914f; --c2: #45c79e; --c3: #d294d6; --hint: #9aa4b0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 1180px; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .8rem; padding-top: .8rem; border-top: 1px solid var(--rule); }
.lead { margin: 0; color: var(--soft); }
.finding { margin: 1.4rem 0 0; padding: .9rem 1.1rem; border-left: 4px solid var(--c0);
  background: var(--panel); }
.wide { overflow-x: auto; } .charts + .wide { margin-top: 1.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .86rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .5rem; }
th, td { padding: .4rem .5rem; text-align: right; border-bottom: 1px solid var(--rule);
  white-space: nowrap; vertical-align: top; }
thead th { vertical-align: bottom; font-weight: 600; color: var(--soft); line-height: 1.25; }
tbody th, thead th:first-child { text-align: left; font-weight: 600; }
td small { display: block; color: var(--soft); font-size: .78rem; }
.swatch { display: inline-block; width: .7em; height: .7em; margin-right: .5em; border-radius: 2px; }
.charts { display: grid; gap: 1.2rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); }
figure { margin: 0; padding: 1rem; border: 1px solid var(--rule); border-radius: 6px; }
svg.chart { display: block; width: 100%; height: auto; font-size: 13px; fill: var(--ink); }
.chart text { stroke: none; }
.chart .title { font-size: 16px; font-weight: 600; }
.chart .tick, .chart .x-title, .chart .y-title { fill: var(--soft); }
.chart .on-dark { fill: #ffffff; font-size: 12px; } .chart .on-light { fill: #1c2430; font-size: 12px; }
.chart .grid { stroke: var(--rule); }
.chart .axis { stroke: var(--soft); fill: none; }
.chart .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.chart .part { stroke-width: 12; }
.chart .hint { fill: transparent; stroke: none; }
.chart .hint:hover { fill: var(--hint); fill-opacity: .4; }
.chart .dot { stroke: var(--paper); stroke-width: 1.5; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); }
.c3 { stroke: var(--c3); }
.line.c1 { stroke-dasharray: 9 3; } .line.c2 { stroke-dasharray: 2 3; }
.line.c3 { stroke-dasharray: 9 3 2 3; }
.fill { stroke: var(--paper); } .fill.p0 { fill: #1f5fa8; } .fill.p1 { fill: #7fb6e6; }
.fill.p2 { fill: #e3b04b; } .fill.p3 { fill: #b296cc; } .fill.p4 { fill: #b9c0c8; }
.p0 { stroke: #1f5fa8; } .p1 { stroke: #7fb6e6; } .p2 { stroke: #e3b04b; } .p3 { stroke: #b296cc; }
.p4 { stroke: #b9c0c8; }
.dot.c0 { fill: var(--c0); } .dot.c1 { fill: var(--c1); } .dot.c2 { fill: var(--c2); }
.dot.c3 { fill: var(--c3); }
.swatch.c0 { background: var(--c0); } .swatch.c1 { background: var(--c1); }
.swatch.c2 { background: var(--c2); } .swatch.c3 { background: var(--c3); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.4rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
code { font: .9em ui-monospace, "DejaVu Sans Mono", monospace; background: var(--panel);
  padding: .1em .35em; border-radius: 3px; }
ul { padding-left: 1.2rem; } li { margin: .3rem 0; }
@media (max-width: 560px) { .charts { grid-template-columns: 1fr; } dl { grid-template-columns: 1fr; } }
@media print { body { padding: 0; max-width: none; font-size: 11pt; } h2 { break-after: avoid; }
  figure, table, .finding { break-inside: avoid; } .charts { grid-template-columns: 1fr 1fr; }
  .wide { overflow: visible; } th, td { padding: .25rem .35rem; } }
)";
