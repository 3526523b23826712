"""Tokens that are spent are gone, and never more than there were."""

from pipeline.evidence.show import Sheet
from pipeline.text.tokens import Budget, count_tokens


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
