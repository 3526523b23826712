"""Books, mail, calendars, subtitles, RTF and ODT: notes, numbers and parts that are easily lost."""

import csv
import io
import zipfile
from email.message import EmailMessage
from typing import Final

import pytest

import readers
from errors import SourceUnreadable
from readers.page import Page


def read(body: bytes | str, name: str) -> Page:
    given = body if isinstance(body, bytes) else body.encode()
    return readers.read(given, name=name).page


def text_of(page: Page) -> str:
    return " ".join(page.html.partition("<body>")[2].split())


def packed(parts: dict[str, str]) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return body.getvalue()


def book(chapters: dict[str, str], *, css: str = "", last: str = "") -> bytes:
    items = "".join(f'<item id="{name}" href="{name}.xhtml"/>' for name in chapters)
    linear = {name: "no" if name == last else "yes" for name in chapters}
    spine = "".join(f'<itemref idref="{name}" linear="{linear[name]}"/>' for name in chapters)
    html = (
        '<html xmlns="http://www.w3.org/1999/xhtml" '
        'xmlns:epub="http://www.idpf.org/2007/ops"><body>{}</body></html>'
    )
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": "<container><rootfiles><rootfile "
            'full-path="b.opf"/></rootfiles></container>',
            "b.opf": f"<package><metadata/><manifest>{items}</manifest><spine>{spine}</spine></package>",
            "b.css": css,
            **{f"{name}.xhtml": html.format(text) for name, text in chapters.items()},
        }
    )


@pytest.mark.parametrize(
    "mark",
    [
        '<a href="#n" class="noteref">1</a>',
        '<a epub:type="noteref" href="#n">1</a>',
        '<a role="doc-noteref" href="#n">[1]</a>',
        '<span class="calibre7">1</span>',
        '<sup><a class="noteref" href="#n">1</a></sup>',
    ],
)
def test_a_mark_of_a_note_in_a_book_is_no_digit_of_the_number_before_it(mark: str) -> None:
    page = read(
        book(
            {"a": f"<p>It weighs 88 kg{mark} now.</p>"}, css=".calibre7 { vertical-align: super; }"
        ),
        "a.epub",
    )
    assert page.html.count("<sup>") == 1
    assert "kg<sup>" in page.html


def test_a_book_without_any_text_is_refused_and_said_to_be_so() -> None:
    with pytest.raises(SourceUnreadable, match="chapters have no text"):
        read(book({"one": "<p/>", "two": "<img src='a.png'/>"}), "a.epub")
    assert "Tide" in read(book({"one": "<img src='a.png' alt='Tide'/>"}), "a.epub").html


def test_what_a_book_keeps_out_of_its_order_is_read_last() -> None:
    chapters = {"a": "<p>Riddle 7.</p>", "b": "<p>It is the tide.</p>", "c": "<p>Riddle 8.</p>"}
    page = read(book(chapters, last="b"), "a.epub")
    places = [page.html.index(words) for words in ("Riddle 7", "Riddle 8", "It is the tide")]
    assert places == sorted(places)


CALENDAR: Final = (
    "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Dock "
    "meeting\r\nDTSTART;TZID=Europe/Oslo:20260512T090000\r\n"
    "DTEND:20260512T103000Z\r\nLOCATION:Shed 3\\, north\r\nORGANIZER;CN=Ilse "
    "Marin:mailto:ilse@example.org\r\n"
    "DESCRIPTION:Bring the plans\\nof the mo\r\n "
    "le.\r\nBEGIN:VALARM\r\nDESCRIPTION:Alarm\r\nEND:VALARM\r\n"
    "END:VEVENT\r\nBEGIN:VTODO\r\nSUMMARY:Paint the "
    "gate\r\nDUE;VALUE=DATE:20260601\r\nEND:VTODO\r\nEND:VCALENDAR\r\n"
)


def shows_the_meeting(text: str) -> bool:
    wanted = (
        "Dock meeting",
        "2026-05-12 09:00 (Europe/Oslo)",
        "2026-05-12 10:30 UTC",
        "Shed 3, north",
        "of the mole.",
    )
    return all(words in text for words in wanted) and "Alarm" not in text


def test_a_calendar_says_what_is_when_and_where() -> None:
    text = text_of(read(CALENDAR, "plan.ics"))
    assert shows_the_meeting(text)
    assert "Paint the gate" in text
    assert "2026-06-01" in text
    assert "Ilse Marin (ilse@example.org)" in text


def mail(*, attached: dict[str, bytes], calendar: str = "") -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.org", "b@example.org", "Papers"
    message["Date"] = "Tue, 5 May 2026 08:12:00 +0200"
    message.set_content("Please see what is attached.")
    if calendar:
        message.add_alternative(calendar, subtype="calendar")
    for name, body in attached.items():
        message.add_attachment(body, maintype="application", subtype="octet-stream", filename=name)
    return bytes(message)


def test_an_invitation_in_mail_is_read() -> None:
    assert shows_the_meeting(text_of(read(mail(attached={}, calendar=CALENDAR), "a.eml")))


def test_attachments_are_read_by_the_readers_of_their_kinds() -> None:
    table = io.StringIO()
    csv.writer(table).writerows([("ship", "fee"), ("Tern", 12)])
    attached = {"fees.csv": table.getvalue().encode(), "note.txt": b"The gate is green."}
    page = read(mail(attached=attached | {"b.epub": book({"a": "<p>Tide.</p>"})}), "a.eml")
    assert "<td>Tern</td><td>12</td>" in page.html
    assert "The gate is green." in page.html
    assert "Tide." in page.html
    assert page.unread == ""


@pytest.mark.parametrize(
    ("attached", "unread"),
    [
        ({"a.bin": bytes(range(256)) * 9}, "1 attachment"),
        ({"a.eml": mail(attached={"x.txt": b"inner"})}, "1 attachment"),
        ({f"{number}.txt": b"text" for number in range(25)}, "5 attachments"),
        ({"k.txt": b"PuTTY-User-Key-File-3: ssh-ed25519\n"}, "1 attachment"),
    ],
)
def test_attachments_that_are_not_read_are_counted(attached: dict[str, bytes], unread: str) -> None:
    page = read(mail(attached=attached), "a.eml")
    assert page.unread == unread
    assert "PuTTY" not in page.html


@pytest.mark.parametrize("name", ["To", "Cc", "Content-Type", "X-Note"])
def test_a_header_without_end_is_read_as_far_as_it_costs_little_and_marked(name: str) -> None:
    addresses = ",\n ".join(f'"N {number}" <a{number}@example.org>' for number in range(40_000))
    body = f"From: b@example.org\nSubject: Tide\n{name}: {addresses}\n\nThe gate is green.\n"
    page = read(body.encode(), "a.eml")
    assert "The gate is green." in page.html
    assert "a39999@" not in page.html
    assert name not in {"To", "Cc"} or "…" in page.html


ROLLED: Final = """WEBVTT

00:00:00.000 --> 00:00:02.000
the lock opens
at six

00:00:02.000 --> 00:00:02.010
at six

00:00:02.010 --> 00:00:04.000
at six
and closes at dusk

00:00:04.000 --> 00:00:06.000
and closes at dusk
every day
"""


def test_captions_that_roll_are_said_once() -> None:
    assert "the lock opens at six and closes at dusk every day" in text_of(read(ROLLED, "a.vtt"))


def test_captions_that_grow_are_said_once() -> None:
    grown = (
        "WEBVTT\n\n00:01.000 --> 00:02.000\nthe lock\n\n00:02.000 --> 00:03.000\nthe lock opens\n"
    )
    assert ">the lock opens<" in text_of(read(grown, "a.vtt"))


def test_subtitles_in_ass_are_read_in_their_order() -> None:
    script = (
        "[Script Info]\nTitle: x\n\n[V4+ Styles]\nFormat: Name\n\n[Events]\n"
        "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        "Dialogue: 0,0:00:09.00,0:00:12.00,D,Holt,0,0,0,,{\\i1}At dusk,{\\i0}\\Nas always.\n"
        "Dialogue: 0,0:00:01.00,0:00:04.00,D,Ilse,0,0,0,,When does it close?\n"
        "Dialogue: 0,0:00:02.00,0:00:03.00,D,,0,0,0,,{\\p1}m 0 0 l 9 9{\\p0}\n"
        "Comment: 0,0:00:02.00,0:00:03.00,D,,0,0,0,,not shown\n"
    )
    text = text_of(read(script, "a.ass"))
    assert text.index("Ilse: When does it close?") < text.index("Holt: At dusk, as always.")
    assert "not shown" not in text
    assert "m 0 0" not in text


@pytest.mark.parametrize(
    "note",
    [
        r"{\super\chftn}{\footnote\pard\plain {\super\chftn} The last gate was hung.}",
        r"{\super\chftn}{\*\footnote\chftn\~\plain\pard The last gate was hung.\par}",
        r"{\footnote\ftnalt {\super\chftn} The last gate was {\b hung}.}",
    ],
)
def test_a_note_of_rtf_follows_the_text_under_its_mark(note: str) -> None:
    body = rf"{{\rtf1\ansi The dam was finished in 1931.{note} It feeds {{\super 3}} mills.\par}}"
    text = text_of(read(body, "a.rtf"))
    assert "1931.[1]" in text
    assert text.index("mills") < text.index("The last gate was hung")
    assert text.count("[1]") == 2
    assert "^3 mills" in text


def test_items_of_rtf_keep_their_numbers() -> None:
    text = text_of(
        read(
            r"{\rtf1\ansi 7.\tab No fires.\par 8.\tab No nets.\par b)\tab Nor ropes.\par}", "a.rtf"
        )
    )
    assert "7. No fires." in text
    assert "8. No nets." in text
    assert "b) Nor ropes." in text


def odt(body: str, styles: str = "") -> bytes:
    names = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for short, name in (("office", "office"), ("text", "text"), ("style", "style"))
    )
    content = (
        f"<office:document-content "
        f"{names}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    return packed({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


RULES: Final = (
    '<text:list-style style:name="L"><text:list-level-style-number text:level="1" '
    'style:num-format="1" '
    'style:num-suffix="." text:start-value="4"/><text:list-level-style-number text:level="2" '
    'style:num-format="a" '
    'style:num-suffix=")"/><text:list-level-style-number text:level="3" style:num-format="i" '
    'style:num-suffix="." '
    'text:display-levels="3"/></text:list-style><style:style style:name="S"><style:text-properties '
    'style:text-position="super 58%"/></style:style>'
)


def item(text: str, inner: str = "", more: str = "") -> str:
    return f"<text:list-item{more}><text:p>{text}</text:p>{inner}</text:list-item>"


def test_ordered_lists_of_odt_have_the_numbers_that_a_reader_sees() -> None:
    deep = f"<text:list>{item('Row')}{item('Sail')}</text:list>"
    inner = f"<text:list>{item('Ropes', deep)}</text:list>"
    first = f'<text:list text:style-name="L">{item("Fires")}{item("Nets", inner)}</text:list>'
    going_on = (
        f'<text:list text:style-name="L" text:continue-numbering="true">{item("Dogs")}</text:list>'
    )
    cats = item("Cats", more=' text:start-value="9"')
    given = f'<text:list text:style-name="L">{cats}</text:list>'
    text = text_of(read(odt(f"{first}<text:p>Between.</text:p>{going_on}{given}", RULES), "a.odt"))
    for shown in (
        "4. Fires",
        "5. Nets",
        "a) Ropes",
        "5.a.i. Row",
        "5.a.ii. Sail",
        "6. Dogs",
        "9. Cats",
        "<p>Between.",
    ):
        assert shown in text


def test_a_note_of_odt_follows_its_paragraph_under_its_mark() -> None:
    note = (
        "<text:note><text:note-citation>3</text:note-citation><text:note-body><text:p>Gates were "
        "hung.</text:p>"
        "</text:note-body></text:note>"
    )
    power = '10<text:span text:style-name="S">2</text:span>'
    text = text_of(
        read(
            odt(f"<text:p>The sea rose{note} by {power} mm.</text:p><text:p>Next.</text:p>", RULES),
            "a.odt",
        )
    )
    assert "The sea rose[3] by 10^2 mm." in text
    assert text.index("by 10") < text.index("[3] Gates were hung.") < text.index("Next.")


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        ("WordDocument", ".docx"),
        ("Workbook", ".xlsx"),
        ("PowerPoint Document", ".pptx"),
        ("__properties_version1.0", ".eml"),
    ],
)
def test_files_of_the_old_container_are_refused_with_their_name_and_what_to_do(
    stream: str, said: str
) -> None:
    body = (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + stream.encode("utf-16-le") + bytes(600)
    )
    with pytest.raises(SourceUnreadable) as refused:
        read(body, "a.doc")
    assert said in str(refused.value)


def test_pictures_of_rtf_are_said_to_be_unread_once() -> None:
    picture = r"{\pict\pngblip 89504e47}"
    twice = r"{\*\shppict" + picture + r"}{\nonshppict" + picture + "}"
    page = read(r"{\rtf1\ansi The plan of the dam.\par " + twice + r"\par}", "a.rtf")
    assert page.unread == "1 image"


def test_what_rtf_has_beside_its_text_is_read_once_or_said() -> None:
    page = read(
        r"{\rtf1{\header\pard Revision D\par}{\headerf\pard Revision D\par}"
        r"{\footer Page {\field{\*\fldinst PAGE}{\fldrslt 3}}\par}Boats leave."
        r"{\*\annotation Check the tide\par}{\*\atnid A} Nets stay.\par"
        r"{\shp{\*\shpinst{\shptxt In a box\par}}}{\pntext 2.\tab}No fires\par"
        r"{\object{\*\objdata 0105}}\par}",
        "a.rtf",
    )
    text = text_of(page)
    assert "<p>Boats leave. Nets stay.</p>" in text
    assert "<p>2. No fires</p>" in text
    assert text.count("Revision D") == 1
    assert "Comment: Check the tide" in text
    assert "In a box" in text
    assert page.unread == "1 embedded object"


OPEN: Final = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in {
        "office": "office", "text": "text", "table": "table", "draw": "drawing", "style": "style",
        "chart": "chart", "svg": "svg-compatible",
    }.items()
)  # fmt: skip


def test_what_odt_has_beside_its_text_is_read_or_said() -> None:
    link = 'xmlns:xlink="http://www.w3.org/1999/xlink"'

    def frame(kind: str, target: str) -> str:
        inner = f'<draw:{kind} xlink:href="{target}"/>'
        return f'<draw:frame svg:width="6cm" svg:height="5cm">{inner}</draw:frame>'

    objects = [("object", "./Sum"), ("object", "./Bars"), ("object-ole", "./Old"), ("image", "a")]
    note = "<office:annotation><text:p>Check it</text:p></office:annotation>"
    frames = "".join(frame(*one) for one in objects)
    body = f"<text:p>Boats{note} leave.</text:p><text:p>{frames}</text:p>"
    head = "<style:header><text:p>Revision D</text:p></style:header>"
    page_of = f"<style:master-page>{head}{head}</style:master-page>"
    masters = f"<office:master-styles>{page_of}</office:master-styles>"
    page = read(
        packed(
            {
                "mimetype": "application/vnd.oasis.opendocument.text",
                "content.xml": f"<office:document-content {OPEN} {link}><office:body>"
                f"<office:text>{body}</office:text></office:body></office:document-content>",
                "styles.xml": f"<office:document-styles {OPEN}>{masters}</office:document-styles>",
            }
        ),
        "a.odt",
    )
    text = text_of(page)
    assert "<p>Boats leave.</p>" in text
    assert text.count("Revision D") == 1
    assert page.unread == "1 comment, 3 embedded objects, 1 image"
