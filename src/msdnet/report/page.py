"""The page of a report: one HTML file with everything in it, for light and dark, wide and narrow."""

from collections.abc import Iterable
from html import escape

from msdnet.report.charts import NARROW, PAGE, WIDE
from msdnet.report.contents import Section

__all__ = ["page"]

_STYLE = """
:root { --ink: #1f2328; --faint: #656d76; --grid: #d8dee4; --card: #ffffff; --back: #f6f8fa;
  --s0: #1f6feb; --s1: #d1452b; --s2: #2a9d5c; --s3: #8957c9; --s4: #b7791f; --s5: #0f8b8d; --s6: #6e7781; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #9198a1; --grid: #3d444d; --card: #151b23;
  --back: #0d1117; --s0: #4c8dff; --s1: #ff7b62; --s2: #4ac27d; --s3: #b392f0; --s4: #e3b341; --s5: #39c5cf;
  --s6: #9ea7b3; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 0 0 .4rem; }
p { margin: .3rem 0 .8rem; } .lead, small { color: var(--faint); }
section { background: var(--card); border: 1px solid var(--grid); border-radius: 8px; padding: 1rem; margin: 1rem 0; }
svg { display: block; width: 100%; height: auto; margin: .5rem 0; } .phone { display: none; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; margin-top: .5rem; }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--grid); }
td { font-variant-numeric: tabular-nums; } th { color: var(--faint); font-weight: 500; }
.gallery img { width: 36px; height: 36px; margin: 1px; object-fit: cover; image-rendering: pixelated; }
.bar { display: inline-block; height: .6em; min-width: 2px; background: var(--s0); }
td:has(.bar) { width: 35%; white-space: nowrap; }
pre { overflow-x: auto; font-size: .8rem; } details { margin-top: .6rem; }
summary { cursor: pointer; color: var(--faint); }
@media (max-width: 560px) { main { padding: 1rem .5rem 3rem; } section { padding: .75rem; }
  .screen, .gallery thead { display: none; } .phone { display: block; }
  .gallery, .gallery tbody, .gallery tr, .gallery th, .gallery td { display: block; }
  .gallery th { border: 0; color: var(--ink); font-weight: 600; } .gallery img { width: 44px; height: 44px; }
  .gallery td::before { content: attr(data-what); display: block; color: var(--faint); } }
"""


def page(title: str, lead: str, sections: Iterable[Section]) -> str:
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>",
            f'<h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>',
            *map(_section, sections),
            "</main></body></html>\n",
        ]
    )


def _section(section: Section) -> str:
    # Each chart twice, and the style says which is seen: letters as small as a phone would make them cannot be read.
    charts = "".join(
        f'<div class="{where}">{chart.svg(PAGE, width)}</div>'
        for _, chart in section.charts
        for where, width in (("screen", WIDE), ("phone", NARROW))
    )
    notes = "".join(f"<br>{escape(note)}" for note in section.notes)
    told = f"<small>Dashed: published by others, counting whole layers.{notes}</small>" if notes else ""
    return (
        f"<section><h2>{escape(section.name)}</h2><p>{escape(section.text)}</p>{charts}{told}{section.html}</section>"
    )
