"""Addresses of code forges (GitHub, GitLab, Gitea and Forgejo), read through the
forge's API.

The pages themselves are drawn by scripts, and robots.txt closes half of them. Addresses
of repositories, folders, files, issues, pull requests, discussions, releases and gists
become API or file requests, and one page of HTML. Citations keep the original address.
No token is needed: if the API refuses (GitHub allows 60 anonymous requests an hour),
the caller reads the page itself. GitHub's REST API returns discussions, though
undocumented; GitLab's API requires a token for comments, its site does not. Not for:
connections and refusals (`pipeline/fetch/exchange.py`), nor forms of addresses beyond these."""

import base64
import binascii
import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from errors import SourceError, SourceUnreadable
from pipeline.document.converted import escape, whole_page
from pipeline.fetch.page_source import Content, Get


@dataclass(frozen=True, slots=True)
class Forge:
    """One forge: whose form of addresses, and where programs ask."""

    kind: str
    """`github`, `gitlab` or `gitea`."""
    site: str
    """What people's addresses begin with."""
    api: str
    raw: str = ""
    """Where GitHub has the bytes of a file."""
    gists: str = ""

    def plan(self, url: str) -> "ForgePlan | None":
        """Return how to read an address of the forge; None for any that is not plainly
        of its form."""
        bare = url.partition("#")[0]
        try:
            query = urlsplit(bare).query
        except ValueError:
            return None
        if not _QUERY.fullmatch(query):
            return None
        for site, rules in ((self.gists, _GISTS), (self.site, _FORGE_RULES[self.kind])):
            if not site or not bare.startswith(f"{site}/"):
                continue
            path = bare.partition("?")[0].removeprefix(site).rstrip("/")
            for rule in rules:
                fields = rule.fields(path)
                if fields is not None:
                    return ForgePlan(self, rule, fields, bare)
        return None


def forge_at(kind: str, site: str) -> Forge:
    """Return the forge of a `kind` that somebody runs at `site`, with its API where
    such a forge has it; raises `ValueError` for an unknown kind."""
    if kind not in _FORGE_RULES:
        raise ValueError(
            f"Use KIND=ADDRESS with one of these kinds: {', '.join(_FORGE_RULES)}; for "
            "example gitlab=https://git.example.org."
        )
    site = site.rstrip("/")
    if kind == "github":
        return Forge(
            kind,
            site,
            f"{site}/api/v3",
            f"{site}/{{o}}/{{r}}/raw/{{ref}}/{{path}}",
            f"{site}/gist",
        )
    return Forge(kind, site, f"{site}/api/{'v4' if kind == 'gitlab' else 'v1'}")


MOST_COMMENTS: Final = 500
"""Comments that are asked for, and files of a tree that are listed, the least deep
first."""
_QUERY: Final = re.compile(r"(?:plain=1|tab=readme-ov-file|ref_type=\w+)?")
"""What an address may ask for besides without being another page."""
_NOT_OWNERS: Final = re.compile(
    "about|admin|apps|collections|customer-stories|dashboard|enterprise|explore|features|groups|help|login|marketplace|"
    "notifications|orgs|pricing|public|readme|resources|search|security|settings|site|solutions|sponsors|team|topics|"
    "trending|users"
)
"""First parts of addresses below which no repository lies."""
_OWNER_PATH: Final = r"/(?P<o>[\w.-]+)/(?P<r>[\w.-]+?)(?:\.git)?"
_PROJECT: Final = r"/(?P<o>[\w.-]+)/(?P<r>[\w.-]+(?:/[\w.-]+)*?)"
_RELATIVE: Final = re.compile(r'\b(?:href|src)="(?![a-zA-Z][\w+.-]*:|[#/])')
_README: Final = re.compile(r"readme(?:\.(?:md|markdown|rst|txt))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ForgePlan:
    """How one address is read."""

    forge: Forge
    rule: "Rule"
    fields: Mapping[str, str]
    address: str

    async def read(self, get: Get) -> Content:
        """Request the forge's API and combine the responses; raises `SourceError` if it
        refuses one that the page needs.

        Where it refuses a further one, `unread` says that something is missing."""
        if self.rule.shape is None:
            return Content(
                await get(self._url(self.rule.calls[0], {})), self.fields["path"]
            )
        said: list[object] = []
        cut = False
        for call in self.rule.calls:
            branch = _text(said[0], "default_branch") if said else ""
            try:
                rows, more = await self._rows(
                    get, self._url(call.lstrip("?"), {"branch": branch})
                )
            except SourceError:
                if not call.startswith("?"):
                    raise
                rows, more = None, True
            said.append(rows)
            cut = cut or more
        made = self.rule.shape(self, said)
        readme = (
            _readme_in(said, self.fields.get("path") or "")
            if b"<!--readme-->" in made.body
            else ""
        )
        if readme:
            found = {"path": readme, "branch": _text(said[0], "default_branch")}
            words = _prose(
                readme, await get(self._url(_RAW_FILE[self.forge.kind], found))
            )
            above = _open_at(
                self, _ref(self, said[0]), readme, is_folder=False
            ).rpartition("/")[0]
            words = _RELATIVE.sub(lambda link: f"{link[0]}{html.escape(above)}/", words)
            made = made._replace(
                body=made.body.replace(
                    b"<!--readme-->", words.encode("utf-8", "replace"), 1
                )
            )
        return made._replace(
            unread="its further comments or files" if cut else made.unread
        )

    async def _rows(self, get: Get, url: str) -> tuple[object, bool]:
        """Return an answer, of a list the rows of all pages until there are
        `MOST_COMMENTS`, and whether there are more."""
        value = self._json(await get(url))
        rows = list(value) if isinstance(value, list) else []
        page = 1
        while (
            rows and "per_page=100" in url and len(rows) == page * 100 < MOST_COMMENTS
        ):
            page += 1
            more = self._json(await get(f"{url}&page={page}"))
            rows += more if isinstance(more, list) else []
        return (rows if isinstance(value, list) else value), len(rows) == MOST_COMMENTS

    def _json(self, body: bytes) -> object:
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise SourceUnreadable(
                f"{self.address}: its API did not return JSON.",
                source=self.address,
                hint="Try again later.",
            ) from error

    def _url(self, call: str, more: Mapping[str, str]) -> str:
        fields = {
            **self.fields,
            **{name: value for name, value in more.items() if value},
        }
        path = fields.get("path") or ""
        project = quote(unquote(f"{fields.get('o')}/{fields.get('r')}"), safe="")
        named = {
            **fields,
            "path": quote(unquote(path)),
            "whole": quote(unquote(path), safe=""),
            "ref": fields.get("ref") or fields.get("branch") or "HEAD",
            "project": project,
            "site": self.forge.site,
        }
        base = "" if call.startswith("{") else self.forge.api
        return base + call.replace("{raw}", self.forge.raw).format(**named)


Shape = Callable[[ForgePlan, Sequence[object]], Content]


class Rule(NamedTuple):
    """One form of address: its path, what is asked for, and what is made of the
    answers."""

    path: re.Pattern[str]
    calls: tuple[str, ...]
    """Below the API, or whole; a `?` in front may fail."""
    shape: Shape | None = None
    """None for a file, whose bytes are the page."""

    def fields(self, path: str) -> dict[str, str] | None:
        """Return what a path says, "" for each part that it lacks; None for one of
        another form, or of a page of the forge's own."""
        found = self.path.fullmatch(path)
        if found is None:
            return None
        said = found.groupdict("")
        return None if _NOT_OWNERS.fullmatch(said.get("o", "")) else said


# ---- from answers to a page


def _text(row: object, *names: str) -> str:
    """Return the first text or whole number below dotted names, "" where there is none."""
    for name in names:
        value = row
        for step in name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, str | int) and str(value).strip():
            return str(value).strip()
    return ""


def _objects(value: object) -> list[dict[str, object]]:
    return (
        [one for one in value if isinstance(one, dict)]
        if isinstance(value, list)
        else []
    )


def _who(row: object) -> str:
    return _text(
        row,
        "user.login",
        "author.username",
        "author.login",
        "author.name",
        "owner.login",
    )


def _prose(name: str, body: bytes | str) -> str:
    """Return a text as HTML below our own headings: Markdown, or what its ending
    says."""
    from pipeline.read import plain, text  # noqa: PLC0415  they bring markdown-it and lxml, 0.1 s

    words = body if isinstance(body, str) else body.decode("utf-8", "replace")
    markdown = name.lower().endswith((".md", ".markdown")) or not name
    # Forges take sheets away: one of a comment would hide what others say.
    page = (
        text.markdown_to_html(words, sheets=False)
        if markdown
        else plain.plain_to_html(words)
    ).html
    inner = page.partition("<body>")[2].rpartition("</body>")[0]
    return re.sub(
        r"<(/?)h([1-6])>", lambda tag: f"<{tag[1]}h{min(6, int(tag[2]) + 2)}>", inner
    )


def _page(title: str, parts: Sequence[str], **about: str) -> Content:
    body = "\n".join((f"<h1>{escape(title)}</h1>", *filter(None, parts)))
    return Content(
        whole_page(f"<main>{body}</main>", title=title).encode("utf-8", "replace"),
        **about,
    )


def _missing(plan: ForgePlan, what: str) -> SourceUnreadable:
    return SourceUnreadable(
        f"{plan.address}: its API returned no {what}.",
        source=plan.address,
        hint="Check the address.",
    )


def _thread(plan: ForgePlan, said: Sequence[object]) -> Content:
    first, number = said[0], plan.fields["n"]
    if not _text(first, "title"):
        raise _missing(plan, "issue")
    notes = (
        note
        for one in said[1:]
        for row in _objects(one)
        for note in _objects(row.get("notes")) or [row]
    )
    rows = [first, *sorted(notes, key=_when)]
    parts = [f"<p>{escape(_facts(first))}</p>"]
    for row in rows:
        words = _text(row, "body", "description", "note")
        # an approval has no words
        if (words or row is first) and not _is_of_system(row):
            parts.append(_section(row, words or "(without a text)"))
    day = _when(first)[:10]
    return _page(
        f"{_text(first, 'title')} (#{number})", parts, author=_who(first), published=day
    )


def _facts(issue: object) -> str:
    """Return the state and the labels of an issue."""
    labels = issue.get("labels") if isinstance(issue, dict) else None
    named = [
        one if isinstance(one, str) else _text(one, "name")
        for one in (labels if isinstance(labels, list) else [])
    ]
    merged = _text(issue, "pull_request.merged_at", "merged_at")
    state = "merged" if merged else _text(issue, "state")
    facts = {"State": state, "Labels": ", ".join(named)}
    return ". ".join(f"{name}: {said}" for name, said in facts.items() if said)


def _section(row: object, words: str) -> str:
    """Return what somebody says in a thread, below who says it, when, and of which
    file."""
    path = _text(row, "path")
    place = f", on {path}" if path else ""
    heading = escape(f"{_who(row) or 'someone'}, {_when(row)}{place}")
    return f"<section><h2>{heading}</h2>\n{_prose('', words)}</section>"


def _is_of_system(row: object) -> bool:
    """Whether a forge, no person, wrote a comment."""
    return isinstance(row, dict) and row.get("system") is True


def _when(row: object) -> str:
    return _text(row, "created_at", "submitted_at")[:16].replace("T", " ")


def _releases(plan: ForgePlan, said: Sequence[object]) -> Content:
    rows = _objects(said[0]) or _objects([said[0]])
    if not all(_text(row, "tag_name") for row in rows):
        raise _missing(plan, "release")
    parts = []
    for row in rows:
        day, tag = (
            _text(row, "published_at", "released_at", "created_at")[:10],
            _text(row, "tag_name"),
        )
        name = _text(row, "name")
        heading = ", ".join(
            filter(
                None,
                (f"{name} ({tag})" if name and name != tag else tag, day, _who(row)),
            )
        )
        parts.append(
            f"<section><h2>{escape(heading)}</h2>\n{_prose('', _text(row, 'body', 'description'))}</section>"
        )
    return _page(
        f"Releases of {plan.fields['o']}/{plan.fields['r']}",
        parts or ["<p>There are no releases.</p>"],
    )


def _gist(plan: ForgePlan, said: Sequence[object]) -> Content:
    files = said[0].get("files") if isinstance(said[0], dict) else None
    if not isinstance(files, dict) or not files:
        raise _missing(plan, "gist")
    parts = []
    for name, file in files.items():
        words = _text(file, "content")
        summary = (
            _prose(name, words)
            if name.lower().endswith((".md", ".txt"))
            else f"<pre>{escape(words)}</pre>"
        )
        parts.append(f"<section><h2>{escape(name)}</h2>\n{summary}</section>")
    cut = any(
        isinstance(file, dict) and file.get("truncated") is True
        for file in files.values()
    )
    title = _text(said[0], "description") or next(iter(files))
    unread = "the end of its longest files" if cut else ""
    return _page(
        title,
        parts,
        author=_who(said[0]),
        published=_text(said[0], "created_at")[:10],
        unread=unread,
    )


def _repository(plan: ForgePlan, said: Sequence[object]) -> Content:
    about, folder = said[0], unquote(plan.fields.get("path") or "").strip("/")
    name = _text(about, "full_name", "path_with_namespace")
    if not name:
        raise _missing(plan, "repository")
    stars = _text(about, "stargazers_count", "stars_count", "star_count")
    facts = {
        "Language": _text(about, "language"),
        "License": _text(about, "license.name"),
        "Stars": stars,
        "Branch": plan.fields.get("ref") or _text(about, "default_branch"),
        "Last change": _text(about, "pushed_at", "updated_at", "last_activity_at")[:10],
    }
    summary = "; ".join(f"{key}: {value}" for key, value in facts.items() if value)
    below = f"{folder}/" if folder else ""
    listed = [row for row in _files(said) if _text(row, "path").startswith(below)]
    listed.sort(key=lambda row: (_text(row, "path").count("/"), _text(row, "path")))
    ref = _ref(plan, about)
    items = "\n".join(_item(plan, ref, row) for row in listed[:MOST_COMMENTS])
    parts = [
        f"<p>{escape(_text(about, 'description'))}</p>",
        f"<p>{escape(summary)}</p>",
        "<!--readme-->",
        f"<h2>Files</h2>\n<ul>\n{items}\n</ul>" if items else "",
    ]
    unread = (
        f"what follows the first {MOST_COMMENTS} files"
        if len(listed) > MOST_COMMENTS
        else ""
    )
    return _page(f"{name}/{folder}" if folder else name, parts, unread=unread)


def _item(plan: ForgePlan, ref: str, row: object) -> str:
    """Return a file or folder as a link to where a person opens it."""
    path, is_folder = _text(row, "path"), _text(row, "type") in ("tree", "dir")
    link = html.escape(_open_at(plan, ref, path, is_folder=is_folder))
    return f'<li><a href="{link}">{escape(path)}{"/" if is_folder else ""}</a></li>'


def _ref(plan: ForgePlan, about: object) -> str:
    return plan.fields.get("ref") or _text(about, "default_branch") or "HEAD"


def _open_at(plan: ForgePlan, ref: str, path: str, *, is_folder: bool) -> str:
    """Return where a person opens a file or folder of a repository."""
    forms = {
        "github": f"{'tree' if is_folder else 'blob'}/{ref}",
        "gitlab": f"-/{'tree' if is_folder else 'blob'}/{ref}",
        "gitea": f"src/{plan.fields.get('what') or 'branch'}/{ref}",
    }
    return f"{plan.forge.site}/{plan.fields['o']}/{plan.fields['r']}/{forms[plan.forge.kind]}/{quote(path)}"


def _files(said: Sequence[object]) -> list[dict[str, object]]:
    """Return the rows of a tree, in the form of any of the three; [] where the API was
    asked for no tree."""
    last = said[-1]
    return (
        _objects(last.get("tree") if isinstance(last, dict) else last)
        if len(said) > 1
        else []
    )


def _readme_in(said: Sequence[object], folder: str) -> str:
    """Return the path of the README of a folder among the files that were listed, ""
    without one."""
    below = unquote(folder).strip("/")
    files = (
        _text(row, "path").rpartition("/")
        for row in _files(said)
        if _text(row, "type") != "tree"
    )
    return next(
        (
            "".join(path)
            for path in files
            if _README.fullmatch(path[2]) and path[0] == below
        ),
        "",
    )


def _source(plan: ForgePlan, said: Sequence[object]) -> Content:
    """Return a folder or a file of Gitea's, whose addresses look the same.

    Raises `SourceUnreadable` where its content is missing or malformed."""
    found = said[-1]
    if isinstance(found, list):
        return _repository(plan, said)
    try:
        return Content(base64.b64decode(_text(found, "content")), _text(found, "name"))
    except (binascii.Error, ValueError) as error:
        raise _missing(plan, "file") from error


def _rule(path: str, calls: str, shape: Shape | None = None) -> Rule:
    return Rule(re.compile(path), tuple(calls.split()), shape)


_RAW_FILE: Final[Mapping[str, str]] = {
    "github": "{raw}",
    "gitlab": "/projects/{project}/repository/files/{whole}/raw?ref={ref}",
    "gitea": "/repos/{o}/{r}/raw/{path}?ref={ref}",
}
_AT: Final = r"/(?P<ref>[^/]+)"
_ISSUE: Final = (
    "/repos/{o}/{r}/issues/{n} ?/repos/{o}/{r}/issues/{n}/comments?per_page=100"
)
_SHARED: Final = (
    _rule(_OWNER_PATH + r"/issues/(?P<n>\d+)", _ISSUE, _thread),
    _rule(_OWNER_PATH + r"/releases", "/repos/{o}/{r}/releases?per_page=20", _releases),
    _rule(
        _OWNER_PATH + r"/releases/latest", "/repos/{o}/{r}/releases/latest", _releases
    ),
    _rule(
        _OWNER_PATH + r"/releases/tag/(?P<tag>.+)",
        "/repos/{o}/{r}/releases/tags/{tag}",
        _releases,
    ),
    _rule(
        _OWNER_PATH,
        "/repos/{o}/{r} /repos/{o}/{r}/git/trees/{ref}?recursive=1",
        _repository,
    ),
)
_GITHUB: Final = (
    _rule(
        _OWNER_PATH + r"/pull/(?P<n>\d+)",
        f"{_ISSUE} ?/repos/{{o}}/{{r}}/pulls/{{n}}/comments?per_page=100 "
        f"?/repos/{{o}}/{{r}}/pulls/{{n}}/reviews",
        _thread,
    ),
    _rule(f"{_OWNER_PATH}/blob{_AT}/(?P<path>.+)", "{raw}"),
    _rule(
        f"{_OWNER_PATH}/tree{_AT}(?:/(?P<path>.+))?",
        "/repos/{o}/{r} /repos/{o}/{r}/git/trees/{ref}?recursive=1",
        _repository,
    ),
    _rule(
        _OWNER_PATH + r"/discussions/(?P<n>\d+)",
        "/repos/{o}/{r}/discussions/{n} ?/repos/{o}/{r}/discussions/{n}/comments?per_page=100",
        _thread,
    ),
)
_GITEA: Final = (
    _rule(_OWNER_PATH + r"/pulls/(?P<n>\d+)", _ISSUE, _thread),
    _rule(
        _OWNER_PATH + r"/src/(?P<what>branch|tag|commit)" + _AT + r"(?:/(?P<path>.+))?",
        "/repos/{o}/{r} /repos/{o}/{r}/contents/{path}?ref={ref}",
        _source,
    ),
)
_GITLAB: Final = (
    _rule(f"{_PROJECT}/-/blob{_AT}/(?P<path>.+)", _RAW_FILE["gitlab"]),
    _rule(
        f"{_PROJECT}/-/tree{_AT}(?:/(?P<path>.+))?",
        "/projects/{project} "
        "/projects/{project}/repository/tree?path={whole}&ref={ref}&per_page=100",
        _repository,
    ),
    *(
        _rule(
            f"{_PROJECT}/-/{address}/(?P<n>\\d+)",
            f"/projects/{{project}}/{kind}/{{n}} "
            f"?{{site}}/{{o}}/{{r}}/-/{kind}/{{n}}/discussions.json",
            _thread,
        )
        for address, kind in (
            ("(?:issues|work_items)", "issues"),
            ("merge_requests", "merge_requests"),
        )
    ),
    _rule(
        _PROJECT + "/-/releases", "/projects/{project}/releases?per_page=20", _releases
    ),
    _rule(
        _PROJECT + "/-/releases/(?P<tag>[^/]+)",
        "/projects/{project}/releases/{tag}",
        _releases,
    ),
    _rule(_PROJECT + r"/-/(?P<path>snippets/\d+)", "{site}/{o}/{r}/-/{path}/raw"),
    _rule(
        _PROJECT,
        "/projects/{project} "
        "/projects/{project}/repository/tree?ref={ref}&recursive=true&per_page=100",
        _repository,
    ),
)
_FORGE_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "github": (*_GITHUB, *_SHARED),
    "gitea": (*_GITEA, *_SHARED),
    "gitlab": _GITLAB,
}
_GISTS: Final = (_rule(r"/(?:[\w-]+/)?(?P<id>[0-9a-f]{8,64})", "/gists/{id}", _gist),)


def known_forges() -> tuple[Forge, ...]:
    """Return the forges that everybody knows."""
    return (
        Forge(
            "github",
            "https://github.com",
            "https://api.github.com",
            "https://raw.githubusercontent.com/{o}/{r}/{ref}/{path}",
            "https://gist.github.com",
        ),
        *(
            forge_at("gitlab", f"https://{host}")
            for host in ("gitlab.com", "gitlab.gnome.org", "gitlab.freedesktop.org")
        ),
        *(
            forge_at("gitea", f"https://{host}")
            for host in ("codeberg.org", "gitea.com")
        ),
    )
