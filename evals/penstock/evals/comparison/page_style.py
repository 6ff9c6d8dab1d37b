"""How the page looks, in light and dark."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root {
  --page: #fff; --raised: #f6f7f9; --text: #1c2024; --dim: #60646c; --line: #d9dce1;
  --good: #18794e; --good-soft: #d6f1e2; --bad: #c62a2f; --bad-soft: #fde3e3;
  --unsure: #8a5a00; --unsure-soft: #fdf0cf; --tie: #a9afb8;
  --candidate: #1f6feb; --baseline: #d0730f; --marked: #fff0a8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --raised: #1d2125; --text: #e8eaed; --dim: #a0a6ae; --line: #383d44;
    --good: #4cc38a; --good-soft: #12351f; --bad: #ff6369; --bad-soft: #451a1d;
    --unsure: #f1b543; --unsure-soft: #3d2e0c; --tie: #6b727c;
    --candidate: #6aa8ff; --baseline: #f0a35c; --marked: #57480a;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 24px 20px 64px; }
h1 { font-size: 1.5rem; margin: 0; line-height: 1.3; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 40px 0 10px; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 0 0 6px; overflow-wrap: anywhere; }
h4 { font-size: .9rem; margin: 0 0 6px; overflow-wrap: anywhere; }
header { padding: 18px 20px; border-radius: 8px; border-left: 8px solid; }
header.pass { background: var(--good-soft); border-color: var(--good); }
header.fail { background: var(--bad-soft); border-color: var(--bad); }
header.inconclusive { background: var(--unsure-soft); border-color: var(--unsure); }
header ul { margin: 10px 0 0; padding-left: 20px; }
.note { color: var(--dim); font-size: .85rem; font-weight: normal; }
.candidate { color: var(--candidate); } .baseline { color: var(--baseline); }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
td, th { text-align: left; padding: 8px 10px 8px 0; border-bottom: 1px solid var(--line);
  vertical-align: middle; overflow-wrap: anywhere; }
th { font-weight: normal; color: var(--dim); white-space: nowrap; vertical-align: top; }
.figure { font-size: 1.1rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.plot { width: 270px; }
figure { margin: 0; }
svg { max-width: 100%; height: auto; display: block; font: 13px system-ui, sans-serif; }
svg text { fill: var(--text); } svg .small { fill: var(--dim); font-size: 11px; }
svg .inside { fill: #fff; font-weight: 600; }
svg .axis { stroke: var(--dim); stroke-width: 1.5; } svg .grid { stroke: var(--line); }
svg .allowed { fill: #2fa36b; opacity: .4; } svg .limit { stroke: var(--text); stroke-width: 2; }
svg .interval { stroke: var(--text); stroke-width: 5; stroke-linecap: round; opacity: .55; }
svg .dot { fill: var(--text); }
svg polyline { fill: none; stroke-width: 2; }
svg polyline.loss { fill: none; stroke: #c62a2f; } svg polyline.win { fill: none; stroke: #18794e; }
svg .half { stroke: var(--text); stroke-width: 3; }
svg .win { fill: #18794e; } svg .loss { fill: #c62a2f; } svg .tie { fill: #687076; }
svg .uncompared { fill: #8a5a00; }
svg circle.candidate { fill: var(--candidate); }
svg circle.baseline { fill: var(--page); stroke: var(--baseline); stroke-width: 3; }
svg circle.faint { opacity: .55; }
svg circle.baseline.faint { fill: var(--baseline); stroke: none; }
.key { display: inline-block; width: 12px; height: 12px; border-radius: 3px;
  margin: 0 5px 0 12px; vertical-align: -1px; }
.key:first-child { margin-left: 0; }
.key.win { background: #18794e; } .key.loss { background: #c62a2f; }
.key.tie { background: #687076; } .key.uncompared { background: #8a5a00; }
.key.candidate { background: var(--candidate); } .key.baseline { background: var(--baseline); }
.mark { display: inline-block; padding: 1px 9px; border-radius: 10px; font-size: .82rem;
  font-weight: 600; white-space: nowrap; }
.mark.pass, .mark.win { color: var(--good); background: var(--good-soft); }
.mark.fail, .mark.loss { color: var(--bad); background: var(--bad-soft); }
.mark.inconclusive, .mark.uncompared { color: var(--unsure); background: var(--unsure-soft); }
.mark.tie { color: var(--dim); background: var(--raised); }
.pair { background: var(--raised); border-radius: 8px; padding: 14px 16px; margin: 12px 0; }
.asked, .reference, .answer { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 8px;
  unicode-bidi: isolate; }
.asked { font-weight: 600; }
.sides { display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); }
.side { min-width: 0; background: var(--page); border-radius: 6px; padding: 10px 12px; }
.answer { font: .88rem/1.5 ui-monospace, monospace; max-height: 320px; overflow: auto; }
.answer mark { background: var(--marked); color: inherit; border-radius: 2px; }
.checks { margin: 0; font-size: .82rem; } .checks span { margin-right: 10px; white-space: nowrap; }
.met { color: var(--good); } .missed, .error { color: var(--bad); } .part { color: var(--dim); }
.cut { color: var(--dim); font-style: italic; }
details { margin: 8px 0; } summary { cursor: pointer; padding: 4px 0; }
.findings section { display: grid; gap: 4px 16px; align-items: center; padding: 8px 0;
  grid-template-columns: minmax(0, 3fr) 90px 400px minmax(0, 3fr);
  border-bottom: 1px solid var(--line); break-inside: avoid; }
.findings .name { overflow-wrap: anywhere; }
.plots { display: grid; grid-template-columns: 1fr 1fr; gap: 10px; }
@media (max-width: 820px) {
  .findings section { grid-template-columns: minmax(0, 1fr) auto; }
  .findings .plots { grid-column: 1 / -1; order: 4; }
  .findings .figure { text-align: right; }
}
@media (max-width: 640px) {
  .thresholds tr { display: grid; grid-template-columns: 1fr auto auto; align-items: center;
    border-bottom: 1px solid var(--line); padding: 8px 0; }
  .thresholds td { border: 0; padding: 2px 8px 2px 0; }
  .thresholds .plot { grid-row: 2; grid-column: 1 / -1; width: 100%; }
}
@media print { .answer { max-height: none; } .pair { break-inside: avoid; } }
"""
