"""Rows of a global batch that must stay together: where they may be parted. No torch: plans are made with it.

A batch is cut into blocks of `unit` rows from its start. The last block takes what is left; a lone row that would be
left joins the block before it, because one row has no variance. With a unit of 1 every row is a block.
"""

from __future__ import annotations


def blocks(rows: int, unit: int) -> int:
    """How many blocks `rows` rows make; 1 at least."""
    return rows if unit == 1 else max(1, -(-(rows - 1) // unit))


def start_of(block: int, rows: int, unit: int) -> int:
    """The first row of a block (from 0); for the block after the last it is `rows`."""
    return rows if block == blocks(rows, unit) else block * unit


def block_at(row: int, rows: int, unit: int) -> int:
    """The block that begins at `row`; for `row == rows` the one after the last."""
    return blocks(rows, unit) if row == rows else row // unit


def sizes(rows: int, unit: int) -> list[int]:
    """Rows of each block in turn."""
    return [start_of(block + 1, rows, unit) - start_of(block, rows, unit) for block in range(blocks(rows, unit))]


def fewest(many: int, unit: int) -> int:
    """The smallest number of rows that make `many` blocks."""
    return many if unit == 1 or many == 1 else (many - 1) * unit + 2
