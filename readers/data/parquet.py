"""Parquet files to HTML, by pyarrow (extra `parquet`): the columns as they are named, and
all rows for queries.

Not for: folders of Parquet files as one table, or what is encrypted."""

import io
from typing import Final

from cancellation import check_cancelled
from extra import importing
from readers.converted import DAMAGED, MAX_TABLE_CELLS, Converted, Unreadable
from readers.data.database import DataTable, cell_text, tables_to_html
from readers.ledger import Ledger

with importing("parquet", "Reading Parquet files"):
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

_BATCH: Final = 1_000
"""Rows between two looks at whether the caller has gone."""


def parquet_to_html(body: bytes) -> Converted:
    """Return the table of a file; raises `Unreadable` for one that is damaged, encrypted
    or without a row."""
    ledger = Ledger()
    try:
        file = ParquetFile(io.BytesIO(body))
        names = list(file.schema_arrow.names)
        rows = [names]
        for batch in file.iter_batches(batch_size=_BATCH, use_threads=False):
            check_cancelled()
            columns = [column.to_pylist() for column in batch.columns]
            rows += (
                [cell_text(value, ledger) for value in row]
                for row in zip(*columns, strict=True)
            )
            if len(rows) * len(names) > MAX_TABLE_CELLS:
                break
    except (ArrowException, *DAMAGED) as error:
        raise Unreadable("it is a damaged or encrypted Parquet file") from error
    return tables_to_html([DataTable("", rows)], ledger)
