"""Settings: where a value comes from and what is refused."""

import os
from pathlib import Path

import pytest

from cli.command import main
from errors import UsageError
from server.settings import folder_list, read_settings


def test_the_command_line_overrules_the_environment_and_that_the_default() -> None:
    env = {"WINNOW_SECONDS": "11", "WINNOW_PAGE_MB": "99"}
    settings = read_settings({"seconds": "7"}, env)
    assert (settings.seconds, settings.page_mb, settings.robots) == (7.0, 99, True)


def test_folders_are_split_resolved_and_must_exist(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    folders = read_settings(
        {"folders": os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "link")])}, {}
    ).folders
    assert set(folders) == {(tmp_path / "a").resolve()}
    with pytest.raises(UsageError, match="does not exist"):
        read_settings({"folders": str(tmp_path / "missing")}, {})
    # None at all: without folders the web would be searched with what was meant for them.
    with pytest.raises(UsageError, match="None of these folders exist"):
        read_settings(
            {"folders": os.pathsep.join([str(tmp_path / "missing"), "~no-one-of-that-name/x"])}, {}
        )


def test_the_list_of_a_person_is_for_that_person_alone(tmp_path: Path) -> None:
    listed = folder_list()
    with pytest.raises(SystemExit, match="0"):
        main(["folders", "add", str(tmp_path)])
    try:
        assert read_settings({}).folders == (tmp_path.resolve(),)
        assert read_settings({}, for_others=True).folders == ()
        assert read_settings({}, {}).folders == ()
    finally:
        listed.unlink()


def test_one_folder_that_is_missing_among_several_is_left_out_and_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    settings = read_settings({"folders": os.pathsep.join([missing, str(tmp_path)])}, {})
    assert settings.folders == (tmp_path.resolve(),)
    assert list(settings.warnings()) == [f"folder {missing}"]


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("WINNOW_FOLDER", "WINNOW_FOLDERS"),
        ("WINNOW_KEY", "WINNOW_KEYS"),
        ("WINNOW_XYZZY", ""),
    ],
)
def test_a_variable_that_is_no_setting_is_named_with_the_nearest_that_is_one(
    variable: str, nearest: str
) -> None:
    warnings = read_settings({}, {variable: "x", "WINNOW_SECONDS": "7", "OTHER": "1"}).warnings()
    assert list(warnings) == [variable]
    assert warnings[variable].endswith(f"Did you mean {nearest}?") == bool(nearest)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seconds", "soon"),
        ("seconds", "0"),
        ("robots", "maybe"),
        ("log", "level=loud"),
        ("page_mb", "nan"),
        ("searxng", "search.me"),
        ("papers", "pruning=wild"),
        ("papers", "wild"),
        ("http", "rates=5"),
        ("networks", "nat64=10.0.0.0/8"),
        ("keys", "bravery=x"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        read_settings({name: value}, {})


def test_a_secret_is_never_shown_with_the_settings() -> None:
    assert "sesame" not in repr(
        read_settings({"keys": "model=sesame", "http_tokens": "sesame"}, {})
    )


def test_a_search_engines_password_is_secret_though_its_address_is_wrong() -> None:
    settings = read_settings({"searxng": "http://ann:p@ssw0rd@127.0.0.1:8888/search"}, {})
    assert settings.searxng == "http://ann:p@ssw0rd@127.0.0.1:8888/search"
    assert "ssw0rd" not in repr(settings)
    with pytest.raises(UsageError) as caught:
        read_settings({"searxng": "ftp://ann:p@ssw0rd@127.0.0.1:8888"}, {})
    assert "ssw0rd" not in str(caught.value)
