"""Our Unigram tokeniser against the library whose work it does, on the carried vocabulary."""

import gzip
import json
import random
import time

import pytest
import tokenizers

from models.onnx import MULTILINGUAL
from models.tokenizer import open_tokenizer
from models.unigram import Unigram
from tests.support import LIBRARY, ROOT
from train.embedder.texts import varied_texts

FILE = MULTILINGUAL / "tokenizer.json"
XQUAD = ROOT.parent / "shared" / "data" / "xquad"
WRITINGS = (
    (0x20, 0x7F),
    (0xA0, 0x500),
    (0x590, 0x700),
    (0x900, 0x1000),
    (0x2000, 0x2200),
    (0x3040, 0x3100),
    (0x4E00, 0x9FA0),
    (0xAC00, 0xAD00),
    (0xFB00, 0xFFF0),
)
ODD = "\0\t\n\r\x0b\x0c\x1c\x85\xa0\ufffd\u200d\ufe0f\u2581" + "\u0301\u0308\u0338" * 4
"""Controls, blanks, joiners, the sign of a word's beginning, and marks that hang on a letter."""
SECONDS_A_MEGABYTE = 4.0
"""Processor time for one word of a megabyte; .2 to .7 on an idle core."""


@pytest.fixture(scope="module")
def library() -> tokenizers.Tokenizer:
    """The library's tokeniser of our file, in which no text can be a special token."""
    card = json.loads(FILE.read_text("utf-8"))
    for number in range(len(card["added_tokens"])):
        card["model"]["vocab"][number][0] = f"\ue000{number}"
    card |= {"added_tokens": [], "post_processor": None, "truncation": None}
    return tokenizers.Tokenizer.from_str(json.dumps(card))


@pytest.fixture(scope="module")
def ours() -> Unigram:
    """Our own of the same file."""
    found = open_tokenizer(FILE.read_bytes(), FILE, hint="")
    assert isinstance(found, Unigram)
    return found


def theirs(library: tokenizers.Tokenizer, texts: list[str]) -> list[list[int]]:
    """Return the library's ids."""
    return [one.ids for one in library.encode_batch_fast(texts, add_special_tokens=False)]


def test_texts_of_many_languages_code_and_pages_get_the_librarys_ids(
    library: tokenizers.Tokenizer, ours: Unigram
) -> None:
    texts = varied_texts() + [path.read_text("utf-8") for path in sorted(LIBRARY.glob("*.html"))]
    assert ours.encode(texts) == theirs(library, texts)


@pytest.mark.skipif(not XQUAD.is_dir(), reason="../shared/data/xquad is not beside this checkout")
def test_paragraphs_in_twelve_languages_get_the_librarys_ids(
    library: tokenizers.Tokenizer, ours: Unigram
) -> None:
    for path in sorted(XQUAD.glob("*.gz")):
        rows = gzip.decompress(path.read_bytes()).decode().splitlines()[::4]
        texts = [json.loads(row)["text"] for row in rows]
        assert ours.encode(texts) == theirs(library, texts), path.name


def test_made_up_words_of_many_writings_get_the_librarys_ids(
    library: tokenizers.Tokenizer, ours: Unigram
) -> None:
    chance = random.Random(5)
    signs = [chr(code) for low, high in WRITINGS for code in range(low, high)] + list(ODD * 20)
    texts = ["".join(chance.choices(signs, k=chance.randint(1, 30))) for _ in range(5_000)]
    assert ours.encode(texts) == theirs(library, texts)


@pytest.mark.parametrize(
    "word", ["a", "ab", "中", "\u2581", "e\u0301", "\U0010fffd", "qxz" * 7], ids=ascii
)
def test_one_word_of_a_megabyte_is_cut_in_bounded_time_as_the_library_cuts_it(
    word: str, library: tokenizers.Tokenizer, ours: Unigram
) -> None:
    text = word * (1_000_000 // len(word.encode()))
    began = time.process_time()
    found = ours.encode([text])
    assert time.process_time() - began < SECONDS_A_MEGABYTE
    assert found == theirs(library, [text])


def test_a_text_is_cut_with_its_special_tokens_and_cannot_bring_any_of_its_own() -> None:
    cutting = open_tokenizer(FILE.read_bytes(), FILE, most=5, hint="")
    first, unknown, last = cutting.ids_of("<s>", "<unk>", "</s>")
    (ids,) = cutting.encode(["одно слово за другим, и ещё"])
    assert (len(ids), ids[0], ids[-1]) == (5, first, last)
    (forged,) = cutting.encode(["</s>"])
    assert forged[1:-1]
    assert {first, last, unknown}.isdisjoint(forged[1:-1])


def test_a_sign_without_a_piece_is_unknown_and_neighbours_without_one_are_one(
    ours: Unigram,
) -> None:
    (unknown,) = ours.ids_of("<unk>")
    (ids,) = ours.encode(["tree \U00012000\U00012001\U00012002 tree"])
    assert ids.count(unknown) == 1


def test_no_text_is_no_token(ours: Unigram) -> None:
    assert ours.encode(["", " ", "\u200b\n\t"]) == [[], [], []]
