"""Self-contained HTML pages, and the parts to build them from.

A page contains its style and its pictures, and fetches nothing: its content security policy forbids it. Every function
escapes plain text; `Html` is inserted as it is.

Legend: pixels are uint8: grey (H, W), RGB (H, W, 3) or RGBA (H, W, 4).
"""

import base64
import html
import io
import re
from collections.abc import Collection, Sequence
from importlib import resources
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from airloc.errors import AirlocError
from airloc.files import encode_png

CSP = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content security policy of a page."""

_PNG_IS_SMALL = 24_000
_JPEG_QUALITY = 88
_LARGE = 1_000_000
"""Bytes from which on an opaque image is a JPEG without trying PNG, which would take seconds and be no smaller."""
_WIDE = 8
"""A table of more columns is set closer, so that it fits a window of 1200 px."""
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def replace_invalid(text: str) -> str:
    """Replace characters that XML and HTML do not allow, such as NUL."""
    return _NOT_XML.sub("�", text)


def element(tag: str, *children: str, **attributes: str | float | None) -> str:
    """Return an element of SVG or HTML.

    Args:
        tag: Name of the element.
        children: Markup inside the element.
        attributes: Attributes, which are escaped. Underscores in their names become hyphens, and one at the end is
            removed. Attributes that are None are left out.

    >>> element("text", escape_text("a < b"), x=1.25, class_="ac-label", text_anchor="end")
    '<text x="1.25" class="ac-label" text-anchor="end">a &lt; b</text>'
    """
    parts = [tag]
    for name, value in attributes.items():
        if value is not None:
            shown = html.escape(replace_invalid(value)) if isinstance(value, str) else number(value)
            parts.append(f'{name.rstrip("_").replace("_", "-")}="{shown}"')
    opening = " ".join(parts)
    return f"<{opening}>{''.join(children)}</{tag}>" if children else f"<{opening}/>"


def escape_text(text: str) -> str:
    """Return text escaped for the inside of an element."""
    return html.escape(replace_invalid(text), quote=False)


def number(value: float) -> str:
    """Return a number with at most two decimals.

    >>> number(3.0), number(2 / 3), number(-0.001)
    ('3', '0.67', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


class Html(str):
    """Text that is HTML and is inserted into a page as it is."""

    __slots__ = ()


Content: TypeAlias = Html | str | float | None
"""Content of a cell or a caption. None is shown as a dash; text other than `Html` is escaped."""


def page(title: str, body: str, *, subtitle: str = "") -> str:
    """Return a whole page.

    Args:
        title: The title as plain text.
        body: HTML, such as the results of the functions below and SVG charts.
        subtitle: A line below the title as plain text.
    """
    style = resources.files("airloc.drawing").joinpath("page.css").read_text(encoding="utf-8")
    under = f"\n<p>{escape(subtitle)}</p>" if subtitle else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{CSP}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>{under}
</header>
<main>
{body}
</main>
</body>
</html>
"""


def escape(content: Content) -> Html:
    """Return HTML that shows the content."""
    if isinstance(content, Html):
        return content
    if content is None:
        return Html("\N{EN DASH}")
    return Html(html.escape(replace_invalid(str(content))))


def section(heading: str, *contents: str) -> Html:
    """Return a section. Its anchor is the heading in lower case with hyphens."""
    anchor = re.sub(r"\W+", "-", replace_invalid(heading).lower()).strip("-")
    head = f'<h2 id="{html.escape(anchor)}">{escape(heading)}</h2>'
    return Html("\n".join(["<section>", head, *contents, "</section>"]))


def paragraph(*contents: Content) -> Html:
    """Return a paragraph."""
    return Html(f"<p>{''.join(map(escape, contents))}</p>")


def command(text: str) -> Html:
    """Return a command line."""
    return Html(f"<pre><code>{escape(text)}</code></pre>")


def link(text: Content, href: str) -> Html:
    """Return a link to a web page, to a file beside the page, to an anchor or to embedded data.

    Raises:
        AirlocError: If following the link could run code.
    """
    scheme = re.match(r"[^/?#]*?:", replace_invalid(href).strip())
    if scheme and scheme[0].lower() not in ("http:", "https:", "mailto:", "data:"):
        raise AirlocError(f"A page may not link to {href!r}", "Link to a web page or to a file beside it")
    return Html(f'<a href="{html.escape(replace_invalid(href))}">{escape(text)}</a>')


def table(
    header: Sequence[Content],
    rows: Sequence[Sequence[Content]],
    *,
    highlight: Collection[tuple[int, int]] = (),
    caption: Content = "",
) -> Html:
    """Return a table. The first column has the names of the rows.

    Args:
        header: Names of the columns.
        rows: Cells, one for each column. Columns of numbers and dashes are aligned right.
        highlight: (row, column) of highlighted cells, counted from 0 without the header.
        caption: A line above the table.

    Raises:
        AirlocError: If there is no column, or if a row has another number of cells.
    """
    if not header or any(len(contents) != len(header) for contents in rows):
        raise AirlocError(
            f"A table of {len(header)} columns has rows of {sorted({len(contents) for contents in rows})} cells",
            "Use one cell for each column",
        )
    right = [
        bool(rows) and col > 0 and all(_is_numeric(contents[col]) for contents in rows) for col in range(len(header))
    ]
    heads = "".join(f'<th scope="col"{_classes(right[col])}>{escape(name)}</th>' for col, name in enumerate(header))
    lines = []
    for index, contents in enumerate(rows):
        cells = []
        for col, content in enumerate(contents):
            tag = "td" if col else 'th scope="row"'
            marked = (index, col) in highlight
            cells.append(f"<{tag}{_classes(right[col], marked)}>{escape(content)}</{tag[:2]}>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    above = f"<caption>{escape(caption)}</caption>\n" if caption else ""
    body = "\n".join(lines)
    width = " wide" if len(header) > _WIDE else ""
    return Html(
        f'<div class="table{width}" role="region" tabindex="0" aria-label="Table">\n<table>\n{above}'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def figure(content: str, caption: Content, *, source: str = "", made_by: str = "") -> Html:
    """Return a figure with its caption.

    Args:
        content: HTML, such as a chart or `image_tag(...)`.
        caption: The caption.
        source: Link to the data.
        made_by: The command that creates the figure.
    """
    data = " " + link("Data", source) if source else ""
    again = "\n" + command(made_by) if made_by else ""
    return Html(f"<figure>\n{content}\n<figcaption>{escape(caption)}{data}{again}</figcaption>\n</figure>")


def row(*contents: str) -> Html:
    """Return figures side by side, if the page is wide enough."""
    return Html('<div class="row">\n' + "\n".join(contents) + "\n</div>")


def beside(fixed: str, content: str) -> Html:
    """Return a figure that stays in view beside a longer content."""
    return Html(f'<div class="beside">\n{fixed}\n{content}\n</div>')


def image_tag(pixels: npt.NDArray[np.uint8], alt: str) -> Html:
    """Return an image embedded in the page.

    The format is PNG for small and for transparent images, JPEG for large opaque images, and the smaller of both
    otherwise.
    """
    opaque = pixels.ndim == 2 or pixels.shape[2] != 4
    kind, data = "png", encode_png(pixels) if not opaque or pixels.nbytes < _LARGE else b""
    if opaque and (not data or len(data) > _PNG_IS_SMALL):
        buffer = io.BytesIO()
        grey = pixels.ndim == 3 and pixels.shape[2] == 1
        Image.fromarray(pixels.squeeze(2) if grey else pixels).save(
            buffer, "JPEG", quality=_JPEG_QUALITY, subsampling=0
        )
        if not data or buffer.tell() < len(data):
            kind, data = "jpeg", buffer.getvalue()
    text = base64.b64encode(data).decode("ascii")
    size = f'width="{pixels.shape[1]}" height="{pixels.shape[0]}"'
    return Html(f'<img src="data:image/{kind};base64,{text}" {size} alt="{html.escape(replace_invalid(alt))}">')


def _is_numeric(content: Content) -> bool:
    """Return True if a cell reads as a number."""
    if content is None or isinstance(content, int | float):
        return True
    text = re.sub(r"<[^>]*>", "", content)
    return re.match("\\s*[-+\N{MINUS SIGN}±<>≤≥]?\\s*\\d|\\s*\N{EN DASH}?\\s*$", text) is not None


def _classes(numeric: bool, marked: bool = False) -> str:
    names = [name for name, wanted in (("number", numeric), ("marked", marked)) if wanted]
    return f' class="{" ".join(names)}"' if names else ""
