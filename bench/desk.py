"""Draws the pictures of the documents: each view of the desk over the sample library, in
Chromium.

    python -m bench.desk FOLDER

Needs Playwright and Chromium. Not for: whether anything is right
(`tests/test_desk.py`)."""

import argparse
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import LIBRARY
from tests.support.desk import browsing, desk_served


def main() -> None:
    """Draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with browsing() as browser:
        draw_pictures(folder, browser)


def draw_pictures(folder: Path, browser: Any) -> None:
    """Ask the sample library in every view, and save what is seen."""
    asked = {
        "ask": ("How deep is Lake Orvane?", ""),
        "read": ("How deep is Lake Orvane?", "lake-orvane.html"),
    }
    with tempfile.TemporaryDirectory(prefix="winnow-") as place:
        # A copy, since pictures show where it lies.
        library = Path(shutil.copytree(LIBRARY, Path(place) / "library"))
        # Longer than in use, so that what else this machine does is not in the picture.
        with desk_served(Path(place) / "cache", "seconds=100", library=library) as url:
            _draw(folder, browser, url, asked)


def _draw(
    folder: Path, browser: Any, url: str, asked: Mapping[str, tuple[str, str]]
) -> None:
    page = browser.new_page(viewport={"width": 1180, "height": 760})
    for view, wanted in asked.items():
        page.goto(f"{url}#{view}")
        areas = page.locator(f"#{view} textarea")
        areas.first.fill(wanted[0])
        areas.nth(1).fill(wanted[1])
        page.locator(f"#{view} form.ask button.main").click()
        page.locator(f"#{view} .answer").wait_for(timeout=120_000)
        page.locator(f"#{view} h2").first.wait_for()
        page.screenshot(path=folder / f"desk-{view}.png")
    page.close()


if __name__ == "__main__":
    main()
