"""Pages in front of the one asked for, with status 200: reported by their shape, and pages about
such things are read."""

# ruff: noqa: E501  the rows of a table

import pytest

from tests.support import Connect, Site, data_of, text_of
from tests.support.web_site import WORDS

NAV = "<nav>" + "".join(f'<a href="/{n}">Section number {n}</a>' for n in range(60)) + "</nav>"
FOOT = (
    "<footer><p>© 2026 Harbour Media. All rights reserved. <a "
    'href="/imprint">Imprint</a></p></footer>'
)
SCRIPT = "<script>window.run = 1</script>"
FIELD = '<input type="email" name="user"><input type="password" name="word">'
COOKIES = (
    "<p>We and our 412 partners store cookies on your device and read personal data for "
    "personalised advertising.</p>"
    "<p>You can withdraw your consent at any time; the privacy policy says how cookies are used "
    "by our partners.</p>"
)


def page(title: str, body: str, head: str = "") -> str:
    return (
        f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"
    )


FRONTS: list[tuple[str, str]] = [
    # checks
    ("check", page("Just a moment...", "<h1>shop.example</h1><p>Verifying you are "
    "human.</p><script>window._cf_chl_opt={}</script>")),
    ("check", page("shop.example", '<p>Please enable JS and disable any ad blocker</p><script '
    'src="https://geo.captcha-delivery.com/c.js"></script>')),
    ("check", page("Access to this page has been denied", '<div id="px-captcha"></div><p>Press '
    'and hold to confirm you are a human.</p>')),
    ("check", page("Pardon Our Interruption", f"<p>Something about your browser made us think you "
    f"were a bot.</p>{SCRIPT}")),
    ("check", page("Making sure you&#39;re not a bot!", f"<h1>Making sure you're not a "
    f"bot!</h1><p>Loading...</p>{SCRIPT}")),
    ("check", page("Robot Check", "<form action=/c><p>Type the characters you see in this "
    "image</p><input type=text name=c></form>")),
    ("check", page("Security Check - Port", f"<p>Checking your browser before you "
    f"enter.</p>{SCRIPT}")),
    # log-ins
    ("login", page("Log in | Harbour Club", f"{NAV}<form><h1>Welcome "
    f"back</h1><label>E-mail</label>{FIELD}<button>Log in</button></form>{FOOT}")),
    ("login", page("Harbour Club", f"<form>{FIELD}<button>Weiter</button></form>")),
    ("login", page("Sign in to your account", '<form><input type="email" name="loginfmt"><input '
    'type="submit" value="Next"></form>')),
    ("login", page("Anmelden · Hafenamt", f"<h1>Anmelden</h1><form>{FIELD}</form><p>Noch kein "
    f"Konto? Jetzt anlegen.</p>")),
    ("login", page("Connexion", f"<form>{FIELD}</form>")),
    ("login", page("ログイン - 港", f"<form>{FIELD}</form>")),
    ("login", page("Port Authority: Sign In", f"{NAV}<h2>Please sign in to continue "
    f"reading</h2><form>{FIELD}</form>{FOOT}")),
    # consent
    ("consent", page("Before you continue to Harbour", f"{COOKIES}<form><button>Reject "
    f"all</button><button>Accept all</button></form>")),
    # no page
    ("missing", page("Page not found - Harbour", f"{NAV}<h1>Page not found</h1><p>Sorry, we could "
    f"not find what you asked for.</p>{FOOT}")),
    ("missing", page("Harbour", f"{NAV}<h1>404</h1><p>Nothing is moored here.</p>{FOOT}")),
    ("missing", page("404 Not Found", "<center><h1>404 Not "
    "Found</h1></center><hr><center>nginx</center>")),
    ("missing", page("Oops! That page can’t be found. – Harbour Blog", f"{NAV}<p>It looks like "
    f"nothing was found here.</p><form><input type=search></form>")),
]  # fmt: skip
LONG = f"<p>{WORDS}</p>"
PAGES = [
    page("Log in", f"<h1>How members log in</h1>{LONG}{LONG}<form>{FIELD}</form>"),
    page("Piran", f"<header><form>{FIELD}</form></header>{LONG}"),
    page("Contact", '<h1>Contact</h1><p>Harbour office, Quay 4, 6330 Piran. Open from 7 to '
    '19.</p><form><input name=mail><div class="g-recaptcha"></div><button>Send</button></form>'),
    page("404 Not Found - HTTP", f"<h1>404 Not Found</h1>{LONG}{LONG}"),
    page("Error 404: what it means", "<h1>Error 404: what it means</h1><p>A server that has no "
    "page answers with 404.</p><p>" + WORDS * 2 + "</p>"),
    page("Just a moment: the story of a lock", f"<p>{WORDS}</p>{SCRIPT}"),
    page("Mooring fees", f"<h1>Mooring "
    f"fees</h1><table><tr><th>Boat<th>Fee</tr>{''.join(f'<tr><td>Boat of {n} metres<td>{n} crowns' for n in range(5, 30))}</table><div>{COOKIES}<button>Accept all</button></div>"),
    page("Cookies of our kitchen", "<h1>Cookies</h1><p>Our cookies are baked from oats, and the "
    "dough rests for a night.</p><p>" + WORDS + "</p><button>Accept all</button>"),
    page("Access denied: a novel", f"<h1>Access denied: a novel</h1>{LONG}"),
    page("Harbour", f"<p>The gate opens at six.</p>{SCRIPT}"),
    page("Sign in", "<h1>Sign in</h1><ul><li><a href=/a>Harbour office</a><li><a "
    "href=/b>Members</a></ul><p>Choose where.</p>"),
    page("Before you continue to the lock", f"{COOKIES}<p>Wait for the green light.</p>"),
    page("Sign in at the club house of the old harbour before six", "<p>The book lies on the "
    "table.</p><form><input name=mail><button>Send</button></form>"),
    page("Verify", "<p>Docs</p><pre>window._cf_chl_opt</pre>" + LONG + LONG),
]  # fmt: skip


SAID = {
    "check": "is behind a bot check",
    "login": "is behind a login",
    "consent": "is behind a cookie consent page",
    "missing": "is not there",
}


async def asked(connect: Connect, site: Site, html: str) -> str:
    """Return the failure with which a page that a site serves is refused, else nothing."""
    url = site.put("/p", html)
    async with connect(networks="loopback", embedder="none", reader="none") as client:
        result = await client.call_tool("fetch_and_prune_html", {"sources": [url]})
    return text_of(result) if result.is_error else ""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("front", "html"), FRONTS, ids=[f"{front} {number}" for number, (front, _) in enumerate(FRONTS)]
)
async def test_a_page_in_front_of_another_is_reported_by_its_shape(
    connect: Connect, site: Site, front: str, html: str
) -> None:
    assert SAID[front] in await asked(connect, site, html)


@pytest.mark.anyio
@pytest.mark.parametrize("html", PAGES, ids=range(len(PAGES)))
async def test_a_page_that_only_mentions_it_is_a_page(
    connect: Connect, site: Site, html: str
) -> None:
    assert await asked(connect, site, html) == ""


@pytest.mark.anyio
async def test_a_check_is_a_failure_of_its_own_and_never_answers(
    connect: Connect, site: Site
) -> None:
    check = site.put("/check", FRONTS[0][1])
    login = site.put("/login", FRONTS[11][1])
    other = site.put("/other", page("Piran", f"<p>{WORDS}</p>"))
    question = {"question": "Is the connection of Brindle's shop verified as human?"}
    async with connect(folders=" ", search="none", networks="loopback") as client:
        alone = await client.call_tool("extract_relevant", {**question, "sources": [check]})
        beside = await client.call_tool(
            "extract_relevant", {**question, "sources": [check, login, other]}
        )
    assert alone.is_error
    assert "behind a bot check" in text_of(alone)
    assert data_of(beside)["verdict"] == "unsure"
    assert "behind a bot check" in text_of(beside)
    assert "behind a login" in text_of(beside)
