"""The vocabulary of the built-in embedder of many languages, as sentencepiece cuts texts by it."""

import pytest

from models.onnx import MULTILINGUAL
from models.tokenizer import PIECES, Tokenizer, open_tokenizer
from tests.support.waiting import bounded

FILE = MULTILINGUAL / PIECES


@pytest.fixture(scope="module")
def pieces() -> Tokenizer:
    """The tokeniser of our file, which gives bare ids."""
    return open_tokenizer(FILE.read_bytes(), FILE)


@pytest.mark.parametrize("word", ["a", "中", "\u2581", "e\u0301", "qxz" * 7], ids=ascii)
def test_one_word_of_a_megabyte_is_cut_in_bounded_time(word: str, pieces: Tokenizer) -> None:
    text = word * (1_000_000 // len(word.encode()))
    with bounded():
        pieces.encode([text])


def test_a_text_is_cut_with_its_special_tokens_and_cannot_bring_any_of_its_own() -> None:
    cutting = open_tokenizer(FILE.read_bytes(), FILE, max_tokens=5)
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
