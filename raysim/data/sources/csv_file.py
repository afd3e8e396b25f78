"""Tables of CSV files, whatever is between their cells."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_BETWEEN = ",;\t|"


def read_csv(path: str, texts: Collection[str] = ()) -> pa.Table:
    """Reads a CSV file. Its line of names tells what is between cells: what cuts it into most names. Numbers may have
    decimal commas, unless commas are between them. texts: columns whose cells are texts as they stand, such as 0.50.
    Raises errors of pyarrow, which name the line."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    with pa.input_stream(path) as content:
        first = re.split(rb"[\r\n]", content.read(2**16), maxsplit=1)[0].decode()
    delimiter = max(_BETWEEN, key=lambda one: len(next(csv.reader([first], delimiter=one), [])))

    def read(decimal_point: str, threads: bool = True) -> pa.Table:
        table = pa_csv.read_csv(
            path,
            read_options=pa_csv.ReadOptions(use_threads=threads),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            # An empty cell is no label of its own.
            convert_options=pa_csv.ConvertOptions(
                strings_can_be_null=True, decimal_point=decimal_point, column_types=dict.fromkeys(texts, pa.string())
            ),
        )
        _ = table.column_names  # raises an error if they are not in UTF-8
        return table

    try:
        table = read(".")
    except pa.ArrowInvalid:
        table = read(".", threads=False)  # whose errors have the number of the line
    numbers = [table.column(at) for at, name in enumerate(table.column_names) if name not in texts]
    return read(",") if delimiter != "," and any(map(_has_decimal_commas, numbers)) else table


def _has_decimal_commas(column: pa.ChunkedArray) -> bool:
    """Whether all texts are numbers, of which some have a decimal comma."""
    import pyarrow.compute as pc
    import pyarrow.types as types

    if not types.is_string(column.type):
        return False
    numbers = pc.match_substring_regex(column, r"^\s*[-+]?\d*,?\d+([eE][-+]?\d+)?\s*$")
    return bool(pc.all(numbers).as_py()) and bool(pc.any(pc.match_substring(column, ",")).as_py())
