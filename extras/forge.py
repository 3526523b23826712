"""Addresses of code forges (GitHub, GitLab, Gitea and Forgejo), read through the
forge's API.

The pages themselves are drawn by scripts, and robots.txt closes half of them. Addresses
of repositories, folders, files, issues, pull requests, discussions and releases become
API or file requests, and one page of HTML. Citations keep the original address. No
token is needed: if the API refuses (GitHub allows 60 anonymous requests an hour), the
caller reads the page itself. GitHub's REST API returns discussions, though
undocumented; GitLab's API requires a token for comments, its site does not. Not for:
connections and refusals (`pipeline/fetch/exchange.py`), nor other forms of addresses."""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from errors import SourceError, SourceUnreadable
from pipeline.fetch.page_source import Content, Get, ReadPage
from readers.converted import escape, whole_page

MOST_COMMENTS: Final = 500
"""Comments that are asked for, and files of a tree that are listed."""
_REVIEWS: Final = {
    "APPROVED": "Approved.",
    "CHANGES_REQUESTED": "Requested changes.",
    "REQUEST_CHANGES": "Requested changes.",
}
"""States of a review that say something without a text."""
_APIS: Final = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1"}
_SAME_PAGE: Final = ("plain=1", "tab=readme-ov-file", "ref_type=")
"""What an address may ask for besides without being another page."""
_NOT_OWNERS: Final = (
    "about apps collections explore features groups help login marketplace orgs pricing "
    "search settings site solutions sponsors topics trending users"
)
"""First sections of addresses below which no repository lies."""
_VIEW: Final = (
    r"/(?:(?P<thread>issues|work_items|pulls?|merge_requests|discussions)/(?P<number>\d+)"
    r"|(?P<releases>releases)(?:/(?:tag/)?(?P<tag>.+))?"
    r"|(?P<form>blob|tree|src/branch|src/tag|src/commit)/(?P<ref>[^/]+)(?:/(?P<path>.+))?)"
)
_OWNED_PROJECT: Final = re.compile(
    rf"/(?P<project>[\w.-]+/[\w.-]+?)(?:\.git)?(?:{_VIEW})?"
)
_NESTED_PROJECT: Final = re.compile(
    rf"/(?P<project>[\w.-]+(?:/[\w.-]+)+?)(?:/-{_VIEW})?"
)
"""An address of GitLab, where groups are nested."""


@dataclass(frozen=True, slots=True)
class Forge:
    """One forge: whose form of addresses, and where programs ask."""

    kind: str
    """`github`, `gitlab` or `gitea`."""
    site: str
    """What people's addresses begin with."""
    api: str

    def plan(self, url: str) -> ReadPage | None:
        """Return how to read an address of the forge; None for any that is not plainly
        of its form."""
        page = url.partition("#")[0]
        address, _, query = page.partition("?")
        is_other = query and not query.startswith(_SAME_PAGE)
        if not address.startswith(f"{self.site}/") or is_other:
            return None
        form = _NESTED_PROJECT if self.kind == "gitlab" else _OWNED_PROJECT
        match = form.fullmatch(address.removeprefix(self.site).rstrip("/"))
        if match is None or match["project"].partition("/")[0] in _NOT_OWNERS.split():
            return None
        fields = {name: unquote(text) for name, text in match.groupdict("").items()}
        return _ForgePage(self, fields, page).read


def forge_at(kind: str, site: str) -> Forge:
    """Return the forge of a `kind` that somebody runs at `site`, with its API where
    such a forge has it; raises `ValueError` for an unknown kind."""
    if kind not in _APIS:
        raise ValueError(
            f"Use KIND=ADDRESS with one of these kinds: {', '.join(_APIS)}; for "
            "example gitlab=https://git.example.org."
        )
    site = site.rstrip("/")
    return Forge(kind, site, site + _APIS[kind])


def known_forges() -> tuple[Forge, ...]:
    """Return the forges that everybody knows."""
    return (
        Forge("github", "https://github.com", "https://api.github.com"),
        forge_at("gitlab", "https://gitlab.com"),
        forge_at("gitlab", "https://gitlab.gnome.org"),
        forge_at("gitlab", "https://gitlab.freedesktop.org"),
        forge_at("gitea", "https://codeberg.org"),
    )


@dataclass(frozen=True, slots=True)
class _ForgePage:
    forge: Forge
    fields: Mapping[str, str]
    """What the address names: the groups of `_VIEW`, "" for each that it lacks."""
    address: str

    async def read(self, get: Get) -> Content:
        """Request the forge's API and combine the responses; raises `SourceError` if it
        refuses one that the page needs.

        Where it refuses a further one, `unread` says that something is missing."""
        if self.fields["thread"]:
            return await self._thread(get)
        if self.fields["releases"]:
            return await self._releases(get)
        if self.fields["form"] == "blob":
            path = self.fields["path"]
            return Content(await get(self._raw(self.fields["ref"], path)), path)
        return await self._folder(get)

    @property
    def _project(self) -> str:
        project = self.fields["project"]
        if self.forge.kind == "gitlab":
            return f"{self.forge.api}/projects/{quote(project, safe='')}"
        return f"{self.forge.api}/repos/{quote(project)}"

    def _raw(self, ref: str, path: str) -> str:
        ref = quote(ref)
        if self.forge.kind == "gitlab":
            file = quote(path, safe="")
            return f"{self._project}/repository/files/{file}/raw?ref={ref}"
        if self.forge.kind == "gitea":
            return f"{self._project}/raw/{quote(path)}?ref={ref}"
        project = quote(self.fields["project"])
        return f"{self.forge.site}/{project}/raw/{ref}/{quote(path)}"

    async def _json(self, get: Get, url: str) -> object:
        """Return an answer of the API; raises `SourceUnreadable` where it is not JSON."""
        try:
            return json.loads(await get(url))
        except (ValueError, RecursionError) as error:
            raise self._missing("JSON") from error

    async def _rows(self, get: Get, url: str) -> list[dict[str, object]]:
        """Return the rows of all pages of a list, `MOST_COMMENTS` at most."""
        rows: list[dict[str, object]] = []
        for page in range(1, MOST_COMMENTS // 100 + 1):
            address = url if page == 1 else f"{url}&page={page}"
            rows += _objects(await self._json(get, address))
            if "per_page=100" not in url or len(rows) < page * 100:
                break
        return rows

    def _missing(self, thing: str) -> SourceUnreadable:
        return SourceUnreadable(
            f"{self.address}: its API returned no {thing}.",
            source=self.address,
            hint="Check the address.",
        )

    async def _thread(self, get: Get) -> Content:
        address, comments = self._thread_addresses()
        opening = await self._json(get, address)
        title, notes, cut = _text(opening, "title"), [opening], False
        if not title:
            raise self._missing("issue")
        for url in comments:
            try:
                rows = await self._rows(get, url)
            except SourceError:
                cut = True
                continue
            cut = cut or len(rows) == MOST_COMMENTS
            for row in rows:  # GitLab puts the notes of each discussion together
                notes += _objects(row.get("notes")) or [row]
        sections = [f"<p>{escape(_state(opening))}</p>"]
        for note in sorted(notes, key=_when):
            text = _text(note, "body", "description", "note")
            if note is not opening and _text(note, "state") in _REVIEWS:
                text = f"{_REVIEWS[_text(note, 'state')]}\n\n{text}"
            # A forge itself notes what changed.
            if (text or note is opening) and _text(note, "system") != "True":
                sections.append(_remark(note, text or "(without a text)"))
        return _page(
            f"{title} (#{self.fields['number']})",
            sections,
            author=_author(opening),
            published=_when(opening)[:10],
            unread="its further comments" if cut else "",
        )

    def _thread_addresses(self) -> tuple[str, list[str]]:
        """Return where a thread begins, and where its comments are."""
        thread, number = self.fields["thread"], self.fields["number"]
        if self.forge.kind == "gitlab":
            kind = "merge_requests" if thread == "merge_requests" else "issues"
            site = f"{self.forge.site}/{self.fields['project']}/-"
            return (
                f"{self._project}/{kind}/{number}",
                [f"{site}/{kind}/{number}/discussions.json"],
            )
        kind = "discussions" if thread == "discussions" else "issues"
        address = f"{self._project}/{kind}/{number}"
        comments = [f"{address}/comments?per_page=100"]
        if thread == "pull":
            pull = f"{self._project}/pulls/{number}"
            comments += [f"{pull}/comments?per_page=100", f"{pull}/reviews"]
        return address, comments

    async def _releases(self, get: Get) -> Content:
        """Return one release, or the newest twenty."""
        tag, address = self.fields["tag"], f"{self._project}/releases"
        if not tag:
            releases = await self._json(get, f"{address}?per_page=20")
        elif tag == "latest" or self.forge.kind == "gitlab":
            releases = [await self._json(get, f"{address}/{quote(tag)}")]
        else:
            releases = [await self._json(get, f"{address}/tags/{quote(tag)}")]
        sections = []
        for row in _objects(releases):
            tag, name = _text(row, "tag_name"), _text(row, "name")
            if not tag:
                raise self._missing("release")
            day = _text(row, "published_at", "released_at", "created_at")[:10]
            called = f"{name} ({tag})" if name not in {"", tag} else tag
            heading = ", ".join(filter(None, (called, day, _author(row))))
            text = _text(row, "body", "description")
            sections.append(_section(heading, f"{text}\n\n{_assets(row)}"))
        title = f"Releases of {self.fields['project']}"
        return _page(title, sections or ["<p>There are no releases.</p>"])

    async def _folder(self, get: Get) -> Content:
        """Return a repository, or a folder of it: facts, README and files.

        A file of Gitea's has the address of a folder, and is returned as one."""
        about = await self._json(get, self._project)
        name = _text(about, "full_name", "path_with_namespace")
        if not name:
            raise self._missing("repository")
        ref = self.fields["ref"] or _text(about, "default_branch") or "HEAD"
        folder = self.fields["path"].strip("/")
        listed = await self._listed(get, ref, folder)
        if _text(listed, "type") == "file":
            return Content(await get(self._raw(ref, folder)), folder)
        if isinstance(listed, dict):
            listed = listed.get("tree")
        start = f"{folder}/" if folder else ""
        files = [
            row for row in _objects(listed) if _text(row, "path").startswith(start)
        ]
        files.sort(key=lambda row: (_text(row, "path").count("/"), _text(row, "path")))
        links = "\n".join(self._link(ref, row) for row in files[:MOST_COMMENTS])
        sections = [
            f'<base href="{html.escape(self._opened(ref, start))}">',
            f"<p>{escape(_text(about, 'description'))}</p>",
            f"<p>{escape(_facts(about, ref))}</p>",
            await self._readme(get, ref, start, files),
            f"<h2>Files</h2>\n<ul>\n{links}\n</ul>" if links else "",
        ]
        cut = len(files) > MOST_COMMENTS
        unread = f"what follows the first {MOST_COMMENTS} files" if cut else ""
        return _page(f"{name}/{folder}".rstrip("/"), sections, unread=unread)

    async def _listed(self, get: Get, ref: str, folder: str) -> object:
        """Return what the API says of the files of a folder."""
        if self.forge.kind == "gitlab":
            where = f"path={quote(folder)}&" if folder else ""
            query = f"{where}ref={quote(ref)}&recursive=true&per_page=100"
            return await self._rows(get, f"{self._project}/repository/tree?{query}")
        address = f"git/trees/{quote(ref)}?recursive=1"
        if self.forge.kind == "gitea" and folder:
            address = f"contents/{quote(folder)}?ref={quote(ref)}"
        return await self._json(get, f"{self._project}/{address}")

    async def _readme(
        self, get: Get, ref: str, start: str, files: Iterable[object]
    ) -> str:
        """Return the README of a folder as HTML, "" without one."""
        for row in files:
            path = _text(row, "path")
            name = path.removeprefix(start).lower()
            if name.partition(".")[0] == "readme" and "/" not in name:
                return _prose(path, await get(self._raw(ref, path)))
        return ""

    def _link(self, ref: str, row: object) -> str:
        """Return a file or folder as a link to where a person opens it."""
        path = _text(row, "path")
        slash = "/" if _text(row, "type") in {"tree", "dir"} else ""
        link = html.escape(self._opened(ref, path + slash))
        return f'<li><a href="{link}">{escape(path + slash)}</a></li>'

    def _opened(self, ref: str, path: str) -> str:
        """Return where a person opens a file, or a folder, whose path ends with `/`."""
        form = "tree" if path.endswith("/") else "blob"
        if self.forge.kind == "gitlab":
            form = f"-/{form}"
        if self.forge.kind == "gitea":
            form = self.fields["form"] or "src/branch"
        project = f"{self.forge.site}/{self.fields['project']}"
        return f"{project}/{form}/{quote(ref)}/{quote(path)}"


# From answers to a page


def _text(row: object, *names: str) -> str:
    """Return the first text or number below dotted names, "" where there is none."""
    for name in names:
        value = row
        for step in name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, str | int) and str(value).strip():
            return str(value).strip()
    return ""


def _objects(value: object) -> list[dict[str, object]]:
    rows = value if isinstance(value, list) else []
    return [row for row in rows if isinstance(row, dict)]


def _author(row: object) -> str:
    return _text(row, "user.login", "author.username", "author.login", "author.name")


def _when(row: object) -> str:
    return _text(row, "created_at", "submitted_at")[:16].replace("T", " ")


def _state(issue: object) -> str:
    labels = issue.get("labels") if isinstance(issue, dict) else None
    names = [
        label if isinstance(label, str) else _text(label, "name")
        for label in (labels if isinstance(labels, list) else [])
    ]
    state = _text(issue, "state")
    if _text(issue, "pull_request.merged_at", "merged_at"):
        state = "merged"
    elif state == "closed" and isinstance(issue, dict) and "pull_request" in issue:
        state = "closed without merge"
    facts = {
        "State": state,
        "Labels": ", ".join(names),
        "Comments": _text(issue, "comments", "user_notes_count"),
    }
    return ". ".join(f"{name}: {fact}" for name, fact in facts.items() if fact)


def _assets(release: object) -> str:
    assets = release.get("assets") if isinstance(release, dict) else None
    if isinstance(assets, dict):  # GitLab
        assets = assets.get("links")
    links = [
        f"- [{_text(asset, 'name')}]"
        f"({_text(asset, 'browser_download_url', 'direct_asset_url', 'url')})"
        for asset in _objects(assets)
    ]
    return "\n".join(("# Files", *links)) if links else ""


def _facts(about: object, ref: str) -> str:
    is_archived = _text(about, "archived") == "True"
    facts = {
        "State": "archived, read-only" if is_archived else "",
        "Language": _text(about, "language"),
        "License": _text(about, "license.name"),
        "Stars": _text(about, "stargazers_count", "stars_count", "star_count"),
        "Branch": ref,
        "Last change": _text(about, "pushed_at", "updated_at", "last_activity_at")[:10],
    }
    return "; ".join(f"{name}: {fact}" for name, fact in facts.items() if fact)


def _remark(row: object, text: str) -> str:
    """Return what somebody says in a thread, below who says it, when, and of which
    file."""
    path = _text(row, "path")
    file = f", on {path}" if path else ""
    # An address of one remark ends so; GitLab's API gives its number alone.
    anchor = _text(row, "html_url").partition("#")[2] or f"note_{_text(row, 'id')}"
    heading = f"{_author(row) or 'someone'}, {_when(row)}{file}"
    return _section(heading, text, anchor)


def _section(heading: str, text: str, anchor: str = "") -> str:
    section = f'<section id="{html.escape(anchor)}">'
    return f"{section}<h2>{escape(heading)}</h2>\n{_prose('', text)}</section>"


def _prose(name: str, body: bytes | str) -> str:
    """Return a text as HTML below our own headings: Markdown, or what its ending
    says."""
    from readers.text import markup, plain  # noqa: PLC0415  they bring markdown-it and lxml, 0.1 s

    words = body if isinstance(body, str) else body.decode("utf-8", "replace")
    markdown = name.lower().endswith((".md", ".markdown")) or not name
    # Forges take sheets away: one of a comment would hide what others say.
    page = (
        markup.markdown_to_html(words, sheets=False)
        if markdown
        else plain.plain_to_html(words)
    ).html
    inside = page.partition("<body>")[2].rpartition("</body>")[0]
    return re.sub(
        r"<(/?)h([1-6])>", lambda tag: f"<{tag[1]}h{min(6, int(tag[2]) + 2)}>", inside
    )


def _page(title: str, sections: Sequence[str], **about: str) -> Content:
    body = "\n".join((f"<h1>{escape(title)}</h1>", *filter(None, sections)))
    return Content(
        whole_page(f"<main>{body}</main>", title=title).encode("utf-8", "replace"),
        **about,
    )
