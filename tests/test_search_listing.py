"""Listing folders again and again: a listing has whatever was written before it."""

import os
import random
from pathlib import Path
from typing import Final

import pytest

from pipeline.search.listing import Folders, list_files

STEPS: Final = 150


def change(root: Path, draw: random.Random) -> None:
    """One thing that people and programs do to files and folders."""
    files = sorted(path for path in root.rglob("*.md") if path.is_file())
    folders = [root, *sorted(path for path in root.rglob("*") if path.is_dir())]
    place, what = draw.choice(folders), draw.randrange(10)
    name = f"{draw.randrange(40)}.md"
    if what < 3 or not files:
        (place / name).write_text("x" * draw.randrange(1, 90))
    elif what == 3:
        with draw.choice(files).open("r+") as file:
            file.write("edited in its place")
    elif what == 4:
        os.utime(draw.choice(files), ns=(1, draw.randrange(10**9)))
    elif what == 5:
        draw.choice(files).rename(place / name)
    elif what == 6:
        draw.choice(files).unlink()
    elif what == 7:
        (place / f"folder{draw.randrange(6)}").mkdir(exist_ok=True)
    elif what == 8 and place != root and not (root / place.name).exists():
        place.rename(root / place.name)
    elif place != root and not (root.parent / "away").exists():
        place.rename(root.parent / "away")
        (root.parent / "away" / name).write_text("written outside")
    elif (root.parent / "away").exists() and not (place / "back").exists():
        (root.parent / "away").rename(place / "back")


@pytest.mark.parametrize("seed", range(3))
def test_after_any_change_a_listing_is_what_lies_there(tmp_path: Path, seed: int) -> None:
    root, draw = tmp_path / "root", random.Random(seed)
    root.mkdir()
    folders = Folders([root])
    for _ in range(STEPS):
        change(root, draw)
        assert folders.look() == list_files([root])


def test_where_nothing_changed_the_listing_is_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.md").write_text("a")
    folders = Folders([tmp_path])
    first = folders.look()
    assert folders.look() is first
    for name in (".hidden", "~$a.docx", "id_rsa"):
        (tmp_path / name).write_bytes(b"no document")
    assert (folders.look().files, folders.look().ignored) == (first.files, 3)


def test_a_write_by_another_name_of_the_file_is_seen(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.md").write_text("a")
    os.link(root / "a.md", tmp_path / "outside.md")
    folders = Folders([root])
    folders.look()
    with (tmp_path / "outside.md").open("a") as file:
        file.write("longer")
    assert [stamp.size for stamp in folders.look().files] == [len("alonger")]


def test_a_root_that_is_a_file_is_listed_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("a")
    folders = Folders([file, tmp_path])
    assert [stamp.size for stamp in folders.look().files] == [1]
    file.write_text("abc")
    assert [stamp.size for stamp in folders.look().files] == [3]
    file.unlink()
    assert folders.look().files == ()


IGNORED = {
    "nothing": ("", ["a/b/two.md", "a/one.md", "docs/three.md", "top.md"]),
    "an ending": ("*.md\n!top.md\n", ["top.md"]),
    "a folder anywhere": ("b/\n", ["a/one.md", "docs/three.md", "top.md"]),
    "a path of here": ("/top.md\n/one.md\n", ["a/b/two.md", "a/one.md", "docs/three.md"]),
    "children alone": ("a/*.md\n", ["a/b/two.md", "docs/three.md", "top.md"]),
    "any depth": ("a/**/*.md\n# docs/\n", ["docs/three.md", "top.md"]),
    "an ignored folder keeps nothing": ("a/\n!a/one.md\n", ["docs/three.md", "top.md"]),
    "many stars": (
        "*o" * 40 + "z\n" + "**/o*/" * 9 + "z\n",
        ["a/b/two.md", "a/one.md", "docs/three.md", "top.md"],
    ),
}
"""What git says too (`git ls-files -o --exclude-standard`)."""


@pytest.mark.parametrize("case", IGNORED)
def test_files_of_patterns_say_what_is_no_document(tmp_path: Path, case: str) -> None:
    patterns, kept = IGNORED[case]
    for name in IGNORED["nothing"][1]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("o" * 200)
    (tmp_path / ".gitignore").write_text(patterns)
    listing = list_files([tmp_path])
    assert sorted(Path(stamp.path).relative_to(tmp_path).as_posix() for stamp in listing.files) == (
        kept
    )
    assert (listing.ignored > 1) == (len(kept) < len(IGNORED["nothing"][1]))


def test_own_patterns_overrule_those_of_git_and_programs_and_roots_are_read(
    tmp_path: Path,
) -> None:
    (built := tmp_path / "build").mkdir()
    for path in (built / "a.md", built / "poetry.lock", tmp_path / "yarn.lock", tmp_path / "b.md"):
        path.write_text("words")
    (tmp_path / ".gitignore").write_text("build/\nb.md\n")
    (tmp_path / ".winnowignore").write_text("!b.md\n!yarn.lock\n")
    (tmp_path / "node_modules").mkdir()
    listing = list_files([tmp_path])
    assert [Path(stamp.path).name for stamp in listing.files] == ["b.md", "yarn.lock"]
    assert listing.ignored == 4  # both files of patterns as well
    assert [Path(stamp.path).name for stamp in list_files([built]).files] == ["a.md"]
    os.mkfifo(built / ".gitignore")  # nothing waits for a pipe
    assert [Path(stamp.path).name for stamp in list_files([built]).files] == ["a.md"]
