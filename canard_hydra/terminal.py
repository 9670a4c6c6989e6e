"""Tables and lines for people, readable also in a file."""

import os
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

FILE_WIDTH = 160


def stdout() -> Console:
    """As wide as the terminal; wide where there is none, so that a log is not folded."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = FILE_WIDTH
    return console


def print_line(console: Console, line: str) -> None:
    """As it is: brackets are no markup, and a path or URL is not broken over two lines."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def print_table(
    console: Console, headers: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None
) -> None:
    """Columns that hold numbers stand to the right."""
    table = Table(title=title, title_justify="left")
    for index, header in enumerate(headers):
        numeric = all(_is_number(row[index]) for row in rows)
        table.add_column(Text(header), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def shown(value: Any) -> str:
    """A value as one would type it: null, true, 0.0001, [256, 128], text as it is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    return str(value)


def _is_number(cell: str) -> bool:
    text = cell.strip().lstrip("$").replace(",", "").removesuffix(" s").removesuffix(" min")
    try:
        float(text)
    except ValueError:
        return text in ("", "-")
    return True
