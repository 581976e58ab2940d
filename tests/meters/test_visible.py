from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.meters.visible import plain, visible
from escala.terms.errors import EscalaError, Exit

BOARDS = (
    "GPU-ab000000-0000-0000-0000-000000000000",
    "GPU-cd111111-0000-0000-0000-000000000000",
    "GPU-cd222222-0000-0000-0000-000000000000",
    "GPU-ef333333-0000-0000-0000-000000000000",
)
SLICE = "MIG-12345678-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        ("  ", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("2,0", [2, 0]),
        (" 2 , 0 ", [2, 0]),
        ("+1", [1]),
        ("0,,1", [0]),
        ("0,2,-1,1", [0, 2]),
        ("0,4,1", [0]),
        ("99999999999999999999", []),
        ("1,1", []),
        ("GPU-ab", [0]),
        ("GPU-AB", [0]),
        ("GPU-ef,GPU-ab", [3, 0]),
        (BOARDS[2], [2]),
        ("GPU-ab,GPU-cd,GPU-ef", [0]),
        ("GPU-77,GPU-ab", []),
        ("GPU-ab,GPU-ab0", []),
        ("0,GPU-cd1", [0]),
        ("GPU-cd1,0", [1]),
        ("0,MIG-12", [0]),
    ],
)
def test_boards_are_numbered_as_the_driver_does_it(value: str | None, numbers: list[int]) -> None:
    assert visible(value, BOARDS) == tuple(BOARDS[number] for number in numbers)


@pytest.mark.parametrize("value", ["MIG-xyz", SLICE, f"{SLICE},MIG-87654321", f"{SLICE},0", "MIG-GPU-ab00/1/2"])
def test_of_slices_the_first_alone_is_numbered(value: str) -> None:
    assert visible(value, BOARDS) == (value.partition(",")[0],)


@pytest.mark.parametrize("value", ["all", "0;1", "cuda:0", "0x1", "1gpu", "gpu-ab", "0,none", "٣", "GPU_ab", "1.0"])
def test_a_form_that_nobody_knows_is_an_error_that_shows_the_variable(value: str) -> None:
    with pytest.raises(EscalaError) as caught:
        visible(value, BOARDS)
    assert caught.value.code == "ENV-VISIBLE"
    assert caught.value.exit is Exit.DEVICE
    assert "CUDA_VISIBLE_DEVICES" in str(caught.value)
    assert value in str(caught.value)


def test_what_it_shows_obeys_no_terminal_and_holds_no_secret() -> None:
    with pytest.raises(EscalaError) as caught:
        visible("\x1b[31mred\nhttp://user:hidden@host/" + "x" * 500, BOARDS)
    line = str(caught.value)
    assert line.isprintable()
    assert "hidden" not in line
    assert len(line) < 400


@given(st.lists(st.integers(-3, 9), min_size=1, max_size=8))
def test_numbers_up_to_the_first_that_is_not_valid(numbers: list[int]) -> None:
    expected = list[int]()
    for number in numbers:
        if not 0 <= number < len(BOARDS):
            break
        expected.append(number)
    if len(set(expected)) < len(expected):
        expected = []
    assert visible(",".join(map(str, numbers)), BOARDS) == tuple(BOARDS[number] for number in expected)


@given(st.text("0123456789abcdefGPUMIG-+,/ x", max_size=40) | st.text(max_size=20))
def test_any_text_is_boards_once_each_or_one_slice_or_an_error_of_ours(value: str) -> None:
    try:
        found = visible(value, BOARDS)
    except EscalaError:
        return
    assert len(set(found)) == len(found)
    assert set(found) <= set(BOARDS) or (len(found) == 1 and found[0].startswith("MIG-"))


def test_uuids_compare_without_prefix_and_case() -> None:
    assert plain("GPU-AB-cd") == plain("ab-CD") == "ab-cd"
    assert plain("MIG-AB") == "mig-ab"
