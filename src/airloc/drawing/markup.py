"""Elements of SVG and HTML as text, with everything escaped."""

import html
import re

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def legible(text: str) -> str:
    """Put the replacement character where a text has one that neither XML nor HTML may hold, such as NUL."""
    return _NOT_XML.sub("�", text)


def element(tag: str, *children: str, **attributes: str | float | None) -> str:
    """Write an element; its children are markup already, its attributes are escaped.

    Underscores in attribute names become hyphens, one at the end is dropped; attributes that are None are left out.

    >>> element("text", words("a < b"), x=1.25, class_="ac-label", text_anchor="end")
    '<text x="1.25" class="ac-label" text-anchor="end">a &lt; b</text>'
    """
    parts = [tag]
    for name, value in attributes.items():
        if value is not None:
            shown = html.escape(legible(value)) if isinstance(value, str) else number(value)
            parts.append(f'{name.rstrip("_").replace("_", "-")}="{shown}"')
    opening = " ".join(parts)
    return f"<{opening}>{''.join(children)}</{tag}>" if children else f"<{opening}/>"


def words(text: str) -> str:
    """Text as the content of an element."""
    return html.escape(legible(text), quote=False)


def number(value: float) -> str:
    """A coordinate with at most two decimals.

    >>> number(3.0), number(2 / 3), number(-0.001)
    ('3', '0.67', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
