"""Choices of the records from which facts may be taken, by patterns in their JSON values. The others are not parsed, which would take most of the time.

The patterns are those of RE2. A choice may contain too many records, never too few.
"""

from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Holding:
    """Records whose value contains the pattern, or a backslash, with which names and values can be spelled differently."""

    pattern: str

    def of(self, records: pa.Table, database: duckdb.DuckDBPyConnection) -> pa.Array:  # noqa: ARG002 - for the other choice
        """Whether a record is chosen."""
        values = records["value"]
        return pc.or_(pc.match_substring_regex(values, self.pattern), pc.match_substring_regex(values, r"\\"))


@dataclass(frozen=True)
class WithoutForm:
    """Records that do not have the form (see `forms`) or do not meet the condition: SQL over those that have it, with their text in `document`."""

    form: str
    condition: str

    def of(self, records: pa.Table, database: duckdb.DuckDBPyConnection) -> pa.Array:
        """Whether a record is chosen."""
        numbers = pa.array(range(len(records)), pa.int64())
        formed = records.append_column("number", numbers).filter(pc.match_substring_regex(records["value"], rf"\A{self.form}\z"))
        database.register("formed", formed.append_column("document", formed["value"].cast(pa.string())))
        sql = f"SELECT number FROM formed WHERE problem IS NULL AND clock IS NOT NULL AND {self.condition}"
        in_order = database.sql(sql).to_arrow_table()["number"]
        return pc.invert(pc.is_in(numbers, in_order))


Choice = Holding | WithoutForm
