"""Three code forges as a site on loopback plays them: what their APIs say, what is shown of it, and
how they fail."""

import json
from typing import Any

from tests.support.web_site import Reply, Route

README = b"# Orvane\n\nReads the depth of lakes. See [the guide](docs/guide.md).\n\n## Install\n\nRun `make`.\n"
GUIDE = b"# Guide\n\nTurn it on."


def say(value: object, **headers: str) -> Reply:
    """An answer in JSON."""
    return Reply(
        json.dumps(value).encode(), kind="application/json; charset=utf-8", headers=headers
    )


def issue(number: int, **more: Any) -> dict[str, Any]:
    """One issue as GitHub and Gitea show it."""
    return {
        "id": 1,
        "number": number,
        "title": "Depth is wrong at noon",
        "user": {"login": "ada", "id": 7},
        "labels": [{"name": "bug", "color": "f00"}],
        "state": "closed",
        "comments": 2,
        "created_at": "2024-05-03T10:00:00Z",
        "closed_at": "2024-05-04T10:00:00Z",
        "body": "It says **12 m** where the lake has 213 m.\n\n## Steps\n\nLook at noon. "
        "<script>alert(1)</script>",
        **more,
    }


COMMENTS = [
    {
        "id": 2,
        "user": {"login": "bo"},
        "created_at": "2024-05-03T12:30:00Z",
        "body": "The sensor drifts by heat.",
    },
    {
        "id": 31,
        "html_url": "https://github.com/lakes/orvane/issues/3#issuecomment-31",
        "user": None,
        "created_at": "2024-05-04T09:00:00Z",
        "body": "Fixed in 1.2.",
    },
]
REPOSITORY = {
    "id": 5,
    "full_name": "lakes/orvane",
    "description": "Depths of lakes",
    "default_branch": "trunk",
    "language": "Python",
    "license": {"key": "mit", "name": "MIT License"},
    "stargazers_count": 41,
    "pushed_at": "2024-06-01T08:00:00Z",
}
TREE = {
    "sha": "abc",
    "tree": [
        {"path": "README.md", "mode": "100644", "type": "blob", "size": 90},
        {"path": "docs", "mode": "040000", "type": "tree"},
        {"path": "docs/guide.md", "mode": "100644", "type": "blob", "size": 12},
        {"path": "src/depth.py", "mode": "100644", "type": "blob", "size": 400},
    ],
    "truncated": False,
}
RELEASE = {
    "tag_name": "v1.2",
    "name": "Noon",
    "published_at": "2024-06-01T08:00:00Z",
    "author": {"login": "bo"},
    "body": "- The sensor is read at noon",
}
GITHUB: dict[str, Route] = {
    "/api/v3/repos/lakes/orvane": say(REPOSITORY),
    "/api/v3/repos/lakes/orvane/git/trees/trunk?recursive=1": say(TREE),
    "/api/v3/repos/lakes/orvane/git/trees/v1?recursive=1": say(TREE),
    "/lakes/orvane/raw/trunk/README.md": Reply(README, kind="text/plain; charset=utf-8"),
    "/lakes/orvane/raw/v1/docs/guide.md": Reply(GUIDE, kind="text/plain; charset=utf-8"),
    "/api/v3/repos/lakes/orvane/issues/3": say(issue(3)),
    "/api/v3/repos/lakes/orvane/issues/3/comments?per_page=100": say(COMMENTS),
    "/api/v3/repos/lakes/orvane/issues/4": say(
        issue(4, pull_request={"merged_at": "2024-05-05T00:00:00Z"})
    ),
    "/api/v3/repos/lakes/orvane/issues/4/comments?per_page=100": say(COMMENTS[:1]),
    "/api/v3/repos/lakes/orvane/pulls/4/comments?per_page=100": say(
        [
            {
                "user": {"login": "cy"},
                "created_at": "2024-05-03T11:00:00Z",
                "path": "README.md",
                "body": "Why noon?",
            }
        ]
    ),
    "/api/v3/repos/lakes/orvane/pulls/4/reviews": say(
        [
            {
                "user": {"login": "cy"},
                "submitted_at": "2024-05-03T11:01:00Z",
                "state": "APPROVED",
                "body": "",
            }
        ]
    ),
    "/api/v3/repos/lakes/orvane/discussions/5": say(
        issue(5, title="Which lakes?", state="open", labels=[])
    ),
    "/api/v3/repos/lakes/orvane/discussions/5/comments?per_page=100": say(COMMENTS),
    "/api/v3/repos/lakes/orvane/releases?per_page=20": say([RELEASE]),
    "/api/v3/repos/lakes/orvane/releases/tags/v1.2": say(RELEASE),
}
LAB = "/api/v4/projects/lakes%2Fdeep%2Forvane"
BO, ADA = {"name": "Bo", "username": "bo"}, {"name": "Ada", "username": "ada"}
NOTES = [
    {
        "id": "a",
        "notes": [
            {
                "id": 41,
                "note": "Sensor drifts by heat.",
                "author": BO,
                "created_at": "2024-05-03T12:30:00Z",
            },
            {"note": "closed", "system": True, "author": ADA, "created_at": "2024-05-04T12:30:00Z"},
        ],
    }
]
LAB_ISSUE = {
    "iid": 3,
    "title": "Depth is wrong at noon",
    "description": "It says 12 m.",
    "state": "closed",
    "labels": ["bug"],
    "author": ADA,
    "created_at": "2024-05-03T10:00:00Z",
}
GITLAB: dict[str, Route] = {
    LAB: say(
        {
            "path_with_namespace": "lakes/deep/orvane",
            "default_branch": "trunk",
            "description": "Depths",
        }
    ),
    f"{LAB}/repository/tree?ref=trunk&recursive=true&per_page=100": say(TREE["tree"]),
    f"{LAB}/repository/files/README.md/raw?ref=trunk": Reply(README, kind="text/plain"),
    f"{LAB}/repository/files/docs%2Fguide.md/raw?ref=v1": Reply(GUIDE, kind="text/plain"),
    f"{LAB}/issues/3": say(LAB_ISSUE),
    "/lakes/deep/orvane/-/issues/3/discussions.json": say(NOTES),
    f"{LAB}/merge_requests/4": say({**LAB_ISSUE, "merged_at": "2024-05-05T00:00:00Z"}),
    "/lakes/deep/orvane/-/merge_requests/4/discussions.json": say(NOTES),
    f"{LAB}/releases/v1.2": say({**RELEASE, "description": RELEASE["body"], "body": None}),
}
GITEA: dict[str, Route] = {
    "/api/v1/repos/lakes/orvane": say({**REPOSITORY, "stars_count": 41}),
    "/api/v1/repos/lakes/orvane/git/trees/trunk?recursive=1": say(TREE),
    "/api/v1/repos/lakes/orvane/raw/README.md?ref=trunk": Reply(README, kind="text/plain"),
    "/api/v1/repos/lakes/orvane/contents/docs/guide.md?ref=v1": say(
        {
            "name": "guide.md",
            "type": "file",
        }
    ),
    "/api/v1/repos/lakes/orvane/raw/docs/guide.md?ref=v1": Reply(GUIDE, kind="text/plain"),
    "/api/v1/repos/lakes/orvane/contents/docs?ref=v1": say(
        [{"name": "guide.md", "path": "docs/guide.md", "type": "file"}]
    ),
    "/api/v1/repos/lakes/orvane/issues/3": say(issue(3)),
    "/api/v1/repos/lakes/orvane/issues/3/comments?per_page=100": say(COMMENTS),
    "/api/v1/repos/lakes/orvane/issues/4": say(
        issue(4, pull_request={"merged_at": "2024-05-05T00:00:00Z"})
    ),
    "/api/v1/repos/lakes/orvane/issues/4/comments?per_page=100": say(COMMENTS),
    "/api/v1/repos/lakes/orvane/releases?per_page=20": say([RELEASE]),
}
SITES: dict[str, dict[str, Route]] = {"github": GITHUB, "gitlab": GITLAB, "gitea": GITEA}


ADDRESSES: list[tuple[str, str, list[str]]] = [
    (
        "github",
        "/lakes/orvane",
        ["Reads the depth of lakes.", "Depths of lakes", "MIT License", "src/depth.py"],
    ),
    ("github", "/lakes/orvane.git", ["Reads the depth of lakes."]),
    ("github", "/lakes/orvane/tree/v1/docs", ["docs/guide.md"]),
    ("github", "/lakes/orvane/blob/v1/docs/guide.md", ["Turn it on."]),
    (
        "github",
        "/lakes/orvane/issues/3",
        ["ada, 2024-05-03 10:00", "bo, 2024-05-03 12:30", "drifts", "someone"],
    ),
    (
        "github",
        "/lakes/orvane/pull/4",
        ["State: merged", "cy, 2024-05-03 11:00, on README.md", "Why noon?"],
    ),
    ("github", "/lakes/orvane/discussions/5", ["Which lakes? (#5)", "The sensor drifts by heat."]),
    (
        "github",
        "/lakes/orvane/releases",
        ["Noon (v1.2), 2024-06-01, bo", "The sensor is read at noon"],
    ),
    ("github", "/lakes/orvane/releases/tag/v1.2", ["The sensor is read at noon"]),
    ("gitlab", "/lakes/deep/orvane", ["Reads the depth of lakes.", "src/depth.py"]),
    ("gitlab", "/lakes/deep/orvane/-/blob/v1/docs/guide.md", ["Turn it on."]),
    (
        "gitlab",
        "/lakes/deep/orvane/-/issues/3",
        ["ada, 2024-05-03 10:00", "bo, 2024-05-03 12:30", "drifts", "bug"],
    ),
    ("gitlab", "/lakes/deep/orvane/-/work_items/3", ["Depth is wrong at noon (#3)"]),
    (
        "gitlab",
        "/lakes/deep/orvane/-/merge_requests/4",
        ["State: merged", "Sensor drifts by heat."],
    ),
    ("gitlab", "/lakes/deep/orvane/-/releases/v1.2", ["The sensor is read at noon"]),
    ("gitea", "/lakes/orvane", ["Reads the depth of lakes.", "Stars: 41"]),
    ("gitea", "/lakes/orvane/src/tag/v1/docs/guide.md", ["Turn it on."]),
    ("gitea", "/lakes/orvane/src/tag/v1/docs", ["docs/guide.md"]),
    ("gitea", "/lakes/orvane/issues/3", ["ada, 2024-05-03 10:00", "The sensor drifts by heat."]),
    ("gitea", "/lakes/orvane/pulls/4", ["State: merged", "Fixed in 1.2."]),
    ("gitea", "/lakes/orvane/releases", ["Noon (v1.2), 2024-06-01, bo"]),
]
LIMITED = Reply(
    b'{"message": "API rate limit exceeded for 127.0.0.1."}',
    403,
    {"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800003600"},
    "application/json",
)
FAILURES: dict[str, Reply] = {
    "403 limit": LIMITED,
    "404": Reply(b'{"message": "Not Found"}', 404, kind="application/json"),
    "410": Reply(b'{"message": "This issue was deleted"}', 410, kind="application/json"),
    "429": Reply(b"{}", 429),
    "451": Reply(b'{"message": "Repository access blocked"}', 451, kind="application/json"),
    "500": Reply(b"", 500),
    "502": Reply(b"<html>Bad Gateway</html>", 502),
    "HTML": Reply(b"<html><body>Sign in</body></html>"),
    "cut JSON": Reply(b'{"title": "Depth is', kind="application/json"),
    "cut transfer": Reply(
        b'{"title": ', headers={"Content-Length": "4000"}, kind="application/json"
    ),
    "other JSON": say({"hello": "world"}),
    "a list": say([]),
    "null": say(None),
    "slow": Reply(silent=True),
    "redirect loop": Reply(b"", 302, {"Location": "/api/v3/repos/lakes/orvane/issues/3"}),
    "redirect away": Reply(b"", 302, {"Location": "http://169.254.169.254/latest"}),
}
