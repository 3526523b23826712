"""Settings: where a value comes from and what is refused."""

import os
from pathlib import Path

import pytest

from errors import UsageError
from extras.desk.serve import setting_rows
from server.settings import SETTINGS_TABLE, read_settings


def test_the_command_line_overrules_the_environment_and_that_the_default() -> None:
    env = {"WINNOW_SECONDS": "11", "WINNOW_CACHE_MB": "99"}
    settings = read_settings({"seconds": "7"}, env)
    assert (settings.seconds, settings.cache_mb, settings.page_mb) == (7.0, 99, 30)


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


def test_one_folder_that_is_missing_among_several_is_left_out_and_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    settings = read_settings({"folders": os.pathsep.join([missing, str(tmp_path)])}, {})
    assert settings.folders == (tmp_path.resolve(),)
    assert list(settings.warnings()) == [f"folder {missing}"]


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("WINNOW_FOLDER", "WINNOW_FOLDERS"),
        ("WINNOW_BRAVEKEY", "WINNOW_BRAVE_KEY"),
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
        ("log_level", "loud"),
        ("page_mb", "nan"),
        ("searxng", "search.me"),
        ("pruning", "wild"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        read_settings({name: value}, {})


def test_a_secret_is_never_shown_with_the_settings() -> None:
    assert "sesame" not in repr(read_settings({"model_key": "sesame", "http_tokens": "sesame"}, {}))


def test_a_password_in_an_address_is_not_repeated_when_that_is_refused() -> None:
    with pytest.raises(UsageError, match=r"otlp is 'http://…@127\.0\.0\.1:8888'") as caught:
        read_settings({"otlp": "http://ann:p@ssw0rd@127.0.0.1:8888"}, {})
    assert "ssw0rd" not in str(caught.value)


def test_the_password_of_a_search_engine_is_a_secret_whether_its_address_is_right_or_not() -> None:
    settings = read_settings({"searxng": "http://ann:p@ssw0rd@127.0.0.1:8888/search"}, {})
    assert settings.searxng == "http://ann:p@ssw0rd@127.0.0.1:8888/search"
    assert "ssw0rd" not in repr(settings)
    with pytest.raises(UsageError) as caught:
        read_settings({"searxng": "ftp://ann:p@ssw0rd@127.0.0.1:8888"}, {})
    assert "ssw0rd" not in str(caught.value)


def test_a_file_is_below_the_environment_and_above_the_default(tmp_path: Path) -> None:
    file = tmp_path / "winnow.toml"
    file.write_text(
        'seconds = 20\nrobots = false\ncache_mb = 64\nhttp_tokens = "sesame"\n', encoding="utf-8"
    )
    settings = read_settings(
        {"seconds": "7"}, {"WINNOW_CONFIG": str(file), "WINNOW_CACHE_MB": "99"}
    )
    assert (settings.seconds, settings.cache_mb, settings.robots, settings.page_mb) == (
        7.0,
        99,
        False,
        30,
    )
    assert settings.http_tokens == ("sesame",)


@pytest.mark.parametrize(
    "text", ["secnds = 20", "seconds = [20]", "seconds =", 'config = "other.toml"']
)
def test_a_file_with_a_name_or_a_value_that_cannot_be_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "winnow.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"winnow\.toml|config"):
        read_settings({"config": str(file)}, {})
    with pytest.raises(UsageError, match="cannot be read"):
        read_settings({"config": str(tmp_path / "missing.toml")}, {})


def test_the_desk_shows_every_setting_and_keys_of_providers_as_dots() -> None:
    rows = {
        row["name"]: row["value"] for row in setting_rows(read_settings({"brave_key": "x1"}, {}))
    }
    assert set(rows) == {setting.name for setting in SETTINGS_TABLE}
    assert (rows["brave_key"], rows["exa_key"]) == ("•••", "")
