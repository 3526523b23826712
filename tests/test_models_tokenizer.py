"""Our WordPiece against the library whose work it does, and the pieces of the other embedder."""

import gzip
import random
import re

import pytest
import tokenizers

from models.onnx import EMBEDDED, MULTILINGUAL
from models.tokenizer import PIECES, Tokenizer, WordPiece, open_tokenizer
from tests.support import LIBRARY, ROOT
from tests.support.waiting import bounded

FILE = EMBEDDED / "tokenizer.json"
SHARED = ROOT.parent / "shared" / "data" / "pages"
MARKUP = re.compile("<[^>]*>")
WRITINGS = (
    (0x20, 0x7F),
    (0xA0, 0x500),
    (0x3040, 0x3100),
    (0x4E00, 0x9FA0),
    (0xAC00, 0xAD00),
    (0x2000, 0x2070),
)
"""Code points that have been in Unicode for long: the two know different versions of it."""


@pytest.fixture(scope="module")
def library() -> tokenizers.Tokenizer:
    """The library's tokeniser of our file, to which special tokens in a text are text."""
    found = tokenizers.Tokenizer.from_file(str(FILE))
    found.no_truncation()
    found.encode_special_tokens = True
    return found


def ours(most: int | None = None) -> WordPiece:
    """Our own of the same file."""
    found = open_tokenizer(FILE.read_bytes(), FILE, max_tokens=most)
    assert isinstance(found, WordPiece)
    return found


def theirs(library: tokenizers.Tokenizer, texts: list[str]) -> list[list[int]]:
    """Return the library's ids."""
    return [one.ids for one in library.encode_batch(texts, add_special_tokens=False)]


def test_the_library_folder_gets_the_same_ids_from_both(library: tokenizers.Tokenizer) -> None:
    texts = [MARKUP.sub(" ", path.read_text("utf-8")) for path in sorted(LIBRARY.glob("*.html"))]
    assert ours().encode(texts) == theirs(library, texts)


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data/pages is not beside this checkout")
def test_real_pages_get_the_same_ids_from_both(library: tokenizers.Tokenizer) -> None:
    files = sorted(SHARED.glob("*.gz"))[::25]
    raw = [gzip.decompress(path.read_bytes()).decode("utf-8", "ignore") for path in files]
    texts = [MARKUP.sub(" ", page)[:40_000] for page in raw]
    assert len(texts) >= 10
    assert ours().encode(texts) == theirs(library, texts)


def test_made_up_words_of_many_writings_get_the_same_ids_from_both(
    library: tokenizers.Tokenizer,
) -> None:
    chance = random.Random(5)
    signs = [chr(code) for low, high in WRITINGS for code in range(low, high)] + list(
        "\0\t\n\r\x0b\x0c\x85\ufffd\u0301"
    )
    texts = ["".join(chance.choices(signs, k=chance.randint(1, 30))) for _ in range(5_000)]
    texts += ["x" * 100, "x" * 101, "#" * 120, "", " ", "naïve Ⅷ ﬁsh ŒUVRE İstanbul straße"]
    assert ours().encode(texts) == theirs(library, texts)


def test_a_text_is_cut_with_its_special_tokens_and_cannot_bring_any_of_its_own(
    library: tokenizers.Tokenizer,
) -> None:
    (ids,) = ours(4).encode(["one two three four"])
    assert [library.id_to_token(number) for number in ids] == ["[CLS]", "one", "two", "[SEP]"]
    (forged,) = ours().encode(["[SEP] obey [CLS]"])
    assert {library.token_to_id(special) for special in ("[SEP]", "[CLS]")}.isdisjoint(forged)


PIECES_FILE = MULTILINGUAL / PIECES
"""The vocabulary of the embedder of many languages, as sentencepiece cuts texts by it."""


@pytest.fixture(scope="module")
def pieces() -> Tokenizer:
    """The tokeniser of our file, which gives bare ids."""
    return open_tokenizer(PIECES_FILE.read_bytes(), PIECES_FILE)


@pytest.mark.parametrize("word", ["a", "中", "\u2581", "e\u0301", "qxz" * 7], ids=ascii)
def test_one_word_of_a_megabyte_is_cut_in_bounded_time(word: str, pieces: Tokenizer) -> None:
    text = word * (1_000_000 // len(word.encode()))
    with bounded():
        pieces.encode([text])


def test_pieces_are_cut_with_their_special_tokens_and_a_text_brings_none_of_its_own() -> None:
    cutting = open_tokenizer(PIECES_FILE.read_bytes(), PIECES_FILE, max_tokens=5)
    first, unknown, last = cutting.ids_of("<s>", "<unk>", "</s>")
    (ids,) = cutting.encode(["одно слово за другим, и ещё"])
    assert (len(ids), ids[0], ids[-1]) == (5, first, last)
    (forged,) = cutting.encode(["</s>"])
    assert forged[1:-1]
    assert {first, last, unknown}.isdisjoint(forged[1:-1])


def test_a_sign_without_a_piece_is_unknown_and_neighbours_without_one_are_one(
    pieces: Tokenizer,
) -> None:
    (unknown,) = pieces.ids_of("<unk>")
    (ids,) = pieces.encode(["tree \U00012000\U00012001\U00012002 tree"])
    assert ids.count(unknown) == 1


def test_no_text_is_no_token(pieces: Tokenizer) -> None:
    assert pieces.encode(["", " ", "\u200b\n\t"]) == [[], [], []]
