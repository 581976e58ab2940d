from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from escala.execution.blocks import block_at, blocks, fewest, sizes, start_of

ROWS = st.integers(1, 500)
UNITS = st.integers(1, 40)


@given(ROWS, UNITS)
def test_blocks_tile_the_rows_and_none_is_a_lone_row(rows: int, unit: int) -> None:
    found = sizes(rows, unit)
    assert sum(found) == rows
    assert len(found) == blocks(rows, unit) >= 1
    assert set(found[:-1]) <= {unit}
    assert 1 <= found[-1] <= unit + (unit > 1)
    if rows > 1 and unit > 1:
        assert found[-1] >= 2


@given(ROWS, UNITS)
def test_a_block_is_found_at_its_start(rows: int, unit: int) -> None:
    for block in range(blocks(rows, unit) + 1):
        assert block_at(start_of(block, rows, unit), rows, unit) == block


@given(ROWS, UNITS)
def test_fewest_is_the_first_number_of_rows_with_so_many_blocks(many: int, unit: int) -> None:
    rows = fewest(many, unit)
    assert blocks(rows, unit) == many
    assert rows == 1 or blocks(rows - 1, unit) < many or many == 1


def test_a_last_row_joins_the_block_before_it() -> None:
    assert sizes(17, 8) == [8, 9]
    assert sizes(18, 8) == [8, 8, 2]
    assert sizes(1, 8) == [1]
    assert sizes(3, 1) == [1, 1, 1]
