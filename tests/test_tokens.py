"""The token counter and the sheet that keeps budgets with it."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.evidence.show import Sheet, shortened
from pipeline.text.tokens import Budget, count_tokens, cut_to_tokens

WORDS = st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: " ".join(text.split()))
LINES = st.lists(WORDS.filter(bool), min_size=1)


def test_counts_follow_the_written_rule() -> None:
    assert count_tokens("") == 0
    assert count_tokens("The cat sat on the mat") == 6
    assert count_tokens("The cat sat on the mat.") == 6, (
        "a full stop and the break behind it are one token"
    )
    assert count_tokens("1234567 12") == 5
    assert count_tokens("| Danube | 1992 | 2,850 |\n| Rhine | 1970 | 2,300 |") == 25
    assert count_tokens("Donaudampfschifffahrt carries passengers") == 12
    assert count_tokens("Дунай течёт в Чёрное море") == 17
    assert count_tokens("多瑙河流入黑海") == 10
    assert count_tokens("def read(path):\n    return open(path).read()") == 10


def test_a_word_that_is_one_token_costs_one_and_an_unknown_one_of_its_length_more() -> None:
    assert count_tokens("a river of understanding") - count_tokens("a river of") == 1
    assert count_tokens("a river of undxrztandkng") - count_tokens("a river of") > 2


@given(LINES)
def test_lines_joined_cost_their_sum_plus_one_a_break(lines: list[str]) -> None:
    assert count_tokens("\n".join(lines)) == sum(map(count_tokens, lines)) + len(lines) - 1


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_a_cut_text_is_a_prefix_within_its_budget(text: str, most: int) -> None:
    kept = cut_to_tokens(text, most)
    assert count_tokens(kept) <= most
    assert text.startswith(kept)


def test_a_title_without_blanks_is_cut_between_its_characters() -> None:
    title = "姉妹都市スケルマスとオルヴァーネ湖を訪ねて"
    kept = cut_to_tokens(title, 12)
    assert 3 < len(kept) < len(title)
    assert title.startswith(kept)
    assert not cut_to_tokens("undxrztandkngundxrztandkng", 3)


@given(st.lists(st.text()), st.integers(min_value=0, max_value=80))
def test_a_sheet_never_exceeds_its_budget_whatever_is_written(parts: list[str], most: int) -> None:
    sheet = Sheet(most, reserve=most // 4)
    for part in parts:
        sheet.add_cut(part)
    sheet.release()
    for part in parts:
        sheet.add_cut(part)
    assert count_tokens(sheet.text) == sheet.tokens <= most


def test_a_part_that_does_not_fit_is_refused_whole_and_leaves_the_sheet_as_it_was() -> None:
    sheet = Sheet(5)
    assert sheet.add("one two three")
    assert not sheet.add("four five six")
    assert sheet.text == "one two three"


def test_a_shortened_text_says_that_it_was_cut() -> None:
    assert shortened("one two three four five six", 4) == "one two three …"
    assert shortened("one two", 3) == "one two"


def test_what_is_over_the_rest_is_not_spent() -> None:
    budget = Budget(10)
    assert [budget.spend(tokens) for tokens in (7, 4, 3, 1)] == [True, False, True, False]
    assert budget.left == 0


def test_what_is_set_aside_is_there_again_once_it_is_released() -> None:
    budget = Budget(10)
    budget.set_aside(4)
    assert (budget.left, budget.spend(7)) == (6, False)
    budget.release()
    assert budget.spend(7)


def test_a_sheet_has_room_for_what_it_was_asked_to_leave_room_for() -> None:
    sheet, later = Sheet(40), ("one line for later", "", "and a second one")
    sheet.add("The first line.")
    assert sheet.add(" ".join(["word"] * sheet.room_beside(*later)))
    assert all(map(sheet.add, later))
    assert sheet.tokens == count_tokens(sheet.text) <= 40
