#!/usr/bin/env python3
"""Checks the links of the built book: each leads to a page and an anchor that mdBook has written.

scripts/book_links.py target/book
"""

from __future__ import annotations

import html
import os
import re
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

# Pages that repeat others, or that no reader follows links from.
SKIPPED = {"404.html", "toc.html", "print.html"}


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page."""
    return set(re.findall(r' id="([^"]+)"', page.read_text(encoding="utf-8")))


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    text = page.read_text(encoding="utf-8")
    main = text[text.find("<main") : text.find("</main>")]
    found = []
    for link in map(html.unescape, re.findall(r'href="([^"]+)"', main)):
        if "://" in link or link.startswith("mailto:"):
            continue
        file, _, anchor = link.partition("#")
        target = Path(os.path.normpath(page.parent / unquote(file))) if file else page
        is_page = target.suffix == ".html" and target.exists()
        if not target.exists() or (anchor and is_page and unquote(anchor) not in anchors(target)):
            found.append(f"{page}: {link}")
    return found


def main() -> int:
    """Check every page of a book."""
    pages = [page for page in Path(sys.argv[1]).rglob("*.html") if page.name not in SKIPPED]
    found = [link for page in sorted(pages) for link in broken(page)]
    print("\n".join(found) or f"{len(pages)} pages: every link leads to a page and an anchor")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
