"""Threads of mail and exports of chats: turns, each with who said it and when."""

import io
import json
import zipfile
from collections.abc import Mapping
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Final

import pytest

import readers
from errors import SourceUnreadable
from pipeline.fetch.files import read_file
from readers.html.document import read_document
from tests.support import Connect, text_of


def shown(body: bytes, name: str) -> str:
    """What a file says, a line for each block, headings marked."""
    blocks = readers.read(body, name=name).blocks
    return "\n".join("# " * (block.kind == "heading") + block.text for block in blocks)


def mail(plain: str = "", html: str = "") -> bytes:
    message = EmailMessage()
    message["Subject"] = "Re: meeting"
    if plain:
        message.set_content(plain)
    if html:
        message.add_alternative(html, subtype="html")
    return bytes(message)


PLAIN = """Thursday at 4, in the loft.

On Thu, 5 Feb 2026 at 18:20, Per <per@example.org>
wrote:
> I can't on Wednesday.
>
> Am 5. Februar schrieb Ida:
>> Wednesday at 3?
"""
HTML = (
    '<div>Thursday at 4, in the loft.</div><br><div class="quote"><div>On Thu, 5 Feb 2026 at 18:20,'
    " Per &lt;<a href='mailto:per@example.org'>per@example.org</a>&gt; wrote:<br></div>"
    "<blockquote><div>I can't on Wednesday.</div><blockquote type=cite><div>Am 5. Februar schrieb "
    "Ida:</div><br><div>Wednesday at 3?</div></blockquote></blockquote></div>"
)
THREAD = """Thursday at 4, in the loft.
# On Thu, 5 Feb 2026 at 18:20, Per <per@example.org> wrote:
I can't on Wednesday.
# Am 5. Februar schrieb Ida:
Wednesday at 3?"""


@pytest.mark.parametrize("body", [mail(PLAIN), mail(html=HTML)])
def test_each_message_that_a_mail_quotes_is_below_who_wrote_it_the_newest_first(
    body: bytes,
) -> None:
    assert shown(body, "a.eml").endswith(THREAD)


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (mail("On Monday Per wrote:\n> When?\n\nAt 4.\n"), ("> When?", "At 4.")),
        (mail("At 4.\n\nOn Monday Per wrote:\n> When?\n\n-- \nIda\n"), ("> When?",)),
        (mail("At 4.\n\n> When?\n"), ("> When?",)),
        (
            mail(html="<p>Per wrote:</p><blockquote>When?</blockquote><p>At 4.</p>"),
            ("Per wrote:", "At 4."),
        ),
    ],
)
def test_an_answer_below_a_quotation_is_not_said_to_be_the_other_persons(
    body: bytes, lines: tuple[str, ...]
) -> None:
    text = shown(body, "a.eml")
    assert text.count("# ") == 1
    assert all(line in text.splitlines() for line in lines)


@pytest.mark.parametrize(
    ("plain", "html", "wanted", "other"),
    [
        ("The fee is 12 crowns. " * 9, "<img src='a.png'><p>See online.</p>", "fee", "online"),
        ("The fee is 12 crowns.", "<p>Your <b>fee</b> is 12.</p>", "Your fee is 12.", "crowns"),
        ("The fee is 12 crowns.", "<img src='a.png'>", "12 crowns", "png"),
    ],
)
def test_of_a_text_in_two_forms_the_one_with_more_words_is_read(
    plain: str, html: str, wanted: str, other: str
) -> None:
    text = shown(mail(plain, html), "a.eml")
    assert wanted in text
    assert other not in text


def test_a_mailbox_begins_with_its_newest_message() -> None:
    box = b"".join(b"From a@b.c\n" + mail(f"Word {number}.") + b"\n" for number in range(3))
    document = readers.read(box, name="a.mbox")
    assert [block.text for block in document.blocks if block.text.startswith("Word")] == [
        "Word 2.",
        "Word 1.",
        "Word 0.",
    ]
    assert document.blocks[-1].place == "message=1"


SLACK = [
    {
        "type": "message",
        "user": "U0ABCDEF1",
        "text": "Window? <@U0ABCDEF2> &amp; all",
        "ts": "1714629600.000100",
        "user_profile": {"image_72": "x.png", "real_name": "Alva Brink", "display_name": "alva"},
    },
    {
        "type": "message",
        "user": "U0ABCDEF2",
        "text": "",
        "ts": "1714629900.000200",
        "blocks": [{"elements": [{"text": "Thursday "}, {"text": "21:00"}]}],
        "user_profile": {"real_name": "Jonas Ryd"},
        "reactions": [{"name": "tada"}],
    },
    {
        "type": "message",
        "text": "",
        "ts": "1714640000.000100",
        "username": "Alerts",
        "attachments": [{"title": "Disk", "text": "91 percent"}],
    },
]
TELEGRAM = {
    "name": "Board",
    "messages": [
        {"type": "service", "date": "2025-02-01T10:00:00", "actor": "Pelle", "action": "create"},
        {
            "date": "2025-02-01T10:02:00",
            "from": "Pelle",
            "from_id": "user1",
            "text": [{"type": "bold", "text": "Decision:"}, " sold for ", {"text": "84"}, "."],
        },
        {"date": "2025-02-03T18:20:00", "from": "Runa", "from_id": "user2", "text": "Due\nsoon."},
    ],
}
DISCORD = {
    "channel": {"id": "1", "name": "crane"},
    "messages": [
        {
            "isPinned": False,
            "timestamp": "2023-05-01T12:00:00.000+00:00",
            "author": {"id": "7", "name": "Runa"},
            "content": "See this.",
            "attachments": [{"id": "9", "fileName": "a.pdf"}, {"id": "8", "fileName": "b.pdf"}],
        }
    ],
}
MESSENGER = {
    "title": "Runa",
    "messages": [
        {
            "sender_name": "Ren\u00c3\u00a9",
            "timestamp_ms": 1682942400000,
            "content": "O\u00c3\u00b9?",
        }
    ],
}


def turn(parent: str | None, role: str, text: str) -> dict[str, Any]:
    message = {
        "author": {"role": role, "name": None},
        "create_time": 1700000001.0,
        "content": {"content_type": "text", "parts": [text]},
    }
    return {"parent": parent, "message": message if text else None}


CHATGPT = [
    {
        "title": "Varnish",
        "mapping": {
            "r": turn(None, "system", ""),
            "a": turn("r", "user", "How many coats?"),
            "b": turn("a", "assistant", "Three."),
            "c": turn("a", "assistant", "Six."),
        },
        "current_node": "c",
    }
]
CLAUDE = [
    {
        "name": "Ferry",
        "chat_messages": [
            {"uuid": "1", "sender": "human", "created_at": "2026-01-02T03:04:05Z", "text": "When?"}
        ],
    }
]


@pytest.mark.parametrize(
    ("export", "lines"),
    [
        (
            SLACK,
            [
                "2024-05-02 06:00 Alva Brink: Window? <@Jonas Ryd> & all",
                "2024-05-02 06:05 Jonas Ryd: Thursday 21:00",
                "# 2024-05-02 08:53 Alerts",
                "Disk",
                "91 percent",
            ],
        ),
        (
            TELEGRAM,
            [
                "# Board",
                "2025-02-01 10:00 Pelle: create",
                "2025-02-01 10:02 Pelle: Decision: sold for 84.",
                "# 2025-02-03 18:20 Runa",
                "Due",
                "soon.",
            ],
        ),
        (DISCORD, ["# crane", "# 2023-05-01 12:00 Runa", "See this.", "a.pdf", "b.pdf"]),
        (MESSENGER, ["# Runa", "2023-05-01 12:00 René: Où?"]),
        (
            CHATGPT,
            [
                "# Varnish",
                "2023-11-14 22:13 user: How many coats?",
                "2023-11-14 22:13 assistant: Six.",
            ],
        ),
        (CLAUDE, ["# Ferry", "2026-01-02 03:04 human: When?"]),
    ],
    ids=["Slack", "Telegram", "Discord", "Messenger", "ChatGPT", "Claude"],
)
def test_an_export_of_a_chat_is_read_as_turns_with_names_and_times(
    export: object, lines: list[str]
) -> None:
    body = json.dumps(export).encode()
    assert [line for line in shown(body, "a.json").splitlines() if line] == lines
    assert readers.read(body, name="a.json").page.notes[0].startswith("chat: ")


DAY: Final = [
    {"type": "message", "user": "U0ABCDEF1", "ts": "1714629600.0", "text": "Window? <@U0ABCDEF2>"},
    {"type": "message", "user": "U0ABCDEF2", "ts": "1714629900.0", "text": "Nine, <@U0ABCDEF1|al>"},
    {"type": "message", "user": "U0ABCDEF3", "ts": "1714630200.0", "text": "Fine."},
]
PEOPLE: Final = [
    {"id": "U0ABCDEF1", "name": "alva", "real_name": 'Alva "Al" Brink'},
    {"id": "U0ABCDEF2", "name": "jonas", "profile": {"real_name": "Jonas Ryd"}},
    {"id": "U0ABCDEF3", "name": "kit", "real_name": ""},
]
NAMED: Final = [
    '2024-05-02 06:00 Alva "Al" Brink: Window? <@Jonas Ryd>',
    '2024-05-02 06:05 Jonas Ryd: Nine, <@Alva "Al" Brink>',
    "2024-05-02 06:10 kit: Fine.",
]
UNNAMED: Final = [
    "2024-05-02 06:00 U0ABCDEF1: Window? <@U0ABCDEF2>",
    "2024-05-02 06:05 U0ABCDEF2: Nine, <@U0ABCDEF1|al>",
    "2024-05-02 06:10 U0ABCDEF3: Fine.",
]
IDS_STAY: Final = "people without a name are shown by their ids"


def slack_zip(parts: Mapping[str, object]) -> bytes:
    """Return an archive with these parts, and the lists that each export has."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in {"channels.json": [], "users.json": PEOPLE, **parts}.items():
            archive.writestr(name, part if isinstance(part, str) else json.dumps(part))
    return file.getvalue()


def slack_folder(folder: Path) -> Path:
    """Write an export as a folder; return the file of its day."""
    day = folder / "export" / "ops" / "2024-05-02.json"
    day.parent.mkdir(parents=True)
    day.write_text(json.dumps(DAY), "utf-8")
    (folder / "export" / "users.json").write_text(json.dumps(PEOPLE), "utf-8")
    return day


def test_an_export_of_slack_is_read_by_channels_and_days_with_the_names_of_its_list() -> None:
    bot = {"type": "message", "subtype": "bot_message", "ts": "1714700000.0", "text": "Disk full"}
    body = slack_zip(
        {
            "ops/2024-05-03.json": [bot | {"ts": "1714730000.0"}],
            "ops/2024-05-02.json": DAY,
            "alerts/2024-05-03.json": [bot],
            "alerts/canvas.json": [bot],
        }
    )
    document = readers.read(body, name="export.zip")
    lines = [block.text for block in document.blocks]
    assert lines == ["alerts", "2024-05-03 01:33: Disk full", "ops", *NAMED, lines[-1]]
    assert lines[-1].startswith("2024-05-03 09:53")
    assert len(document.page.notes) == 1


@pytest.mark.parametrize(
    ("parts", "unread"),
    [
        ({"ops/2024-05-02.json": DAY, "ops/2024-05-03.json": "[{"}, "1 of its parts"),
        ({"ops/2024-05-02.json": DAY, "ops/2024-05-03.json": 7}, "1 of its parts"),
        ({"ops/2024-05-02.json": DAY, "users.json": {}}, ""),
        ({"ops/2024-05-02.json": DAY, "users.json": "["}, ""),
    ],
)
def test_what_of_an_export_is_damaged_is_said_and_the_rest_read(
    parts: Mapping[str, object], unread: str
) -> None:
    page = readers.read(slack_zip(parts), name="export.zip").page
    assert "Window?" in page.html
    assert unread in page.unread
    assert bool(page.unread) == bool(unread)
    assert any(IDS_STAY in note for note in page.notes) == (not unread)


def test_an_export_without_messages_is_refused() -> None:
    with pytest.raises(SourceUnreadable, match="without messages"):
        readers.read(slack_zip({}), name="export.zip")


@pytest.mark.parametrize(
    ("opened", "lines"),
    [
        ("", NAMED),
        ("export", NAMED),
        ("export/ops", UNNAMED),
        ("export/ops/2024-05-02.json", UNNAMED),
    ],
)
def test_a_day_of_slack_has_the_names_of_a_list_that_may_be_read(
    tmp_path: Path, opened: str, lines: list[str]
) -> None:
    day = slack_folder(tmp_path)
    page = read_file(day, roots=[tmp_path / opened])
    assert [block.text for block in read_document(page).blocks if block.text] == lines
    assert sum(IDS_STAY in note for note in page.notes) == (lines is UNNAMED)


def test_a_list_linked_from_outside_of_the_folder_gives_no_names(tmp_path: Path) -> None:
    day = slack_folder(tmp_path)
    people = tmp_path / "export" / "users.json"
    people.rename(tmp_path / "users.json")
    people.symlink_to(tmp_path / "users.json")
    assert "Jonas" not in read_file(day, roots=[tmp_path / "export"]).html


@pytest.mark.anyio
async def test_a_folder_is_searched_by_the_names_of_who_wrote_and_new_names_count_at_once(
    connect: Connect, tmp_path: Path
) -> None:
    day = slack_folder(tmp_path)
    async with connect(folders=str(tmp_path)) as client:
        asked = {"question": "What did Jonas Ryd say?", "sources": [str(tmp_path)]}
        assert "Nine" in text_of(await client.call_tool("extract_relevant", asked))
        people = tmp_path / "export" / "users.json"
        people.write_text(json.dumps(PEOPLE).replace("Jonas Ryd", "Jonas Ek"), "utf-8")
        page = await client.call_tool("fetch_and_prune_html", {"sources": [str(day)]})
        assert "Jonas Ek: Nine" in text_of(page)


@pytest.mark.parametrize(
    "records",
    [
        [{"ts": number, "text": f"line {number}", "level": "warn"} for number in range(4)],
        [{"user": "ann", "created_at": "2026-01-02", "text": f"{n}", "likes": n} for n in range(4)],
    ],
)
def test_records_that_are_no_chat_stay_a_table(records: object) -> None:
    page = readers.read(json.dumps(records).encode(), name="a.json").page
    assert page.tables
    assert page.notes == ()


def test_the_lines_of_whatsapp_stay_turns() -> None:
    text = (
        "[03.08.23, 6:02:13 PM] Hana: Good. Then note:\nthe shed key hangs on the blue barrel.\n"
        "[04.08.23, 9:15:31 AM] Irma: Card is empty\n"
        "1/1/24, 3:12 AM - Ole: ok\n"
    )
    lines = [line for line in shown(text.encode(), "_chat.txt").splitlines() if line]
    assert [line.split(": ")[0] for line in lines if line.startswith(("[", "1"))] == [
        "[03.08.23, 6:02:13 PM] Hana",
        "[04.08.23, 9:15:31 AM] Irma",
        "1/1/24, 3:12 AM - Ole",
    ]
