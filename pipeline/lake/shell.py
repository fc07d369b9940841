"""The shell of `streamgauge sql`: reads statements, answers them, prints tables."""

import re
import time
from functools import cached_property

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from pyspark.sql import SparkSession

from contract.errors import StreamgaugeError
from contract.row_formats import as_table, cut_at
from contract.settings import Settings
from contract.terminal import out
from pipeline.lake.ad_hoc_sql import answer
from pipeline.lake.sql_tables import sql_tables

HELP = "a query ends with ; and Enter. Tab completes, the up arrow repeats, `tables` lists the tables, Ctrl-C stops a query, Ctrl-D ends"
_ENDS = ("exit", "quit")
_TABLES = "tables"


class Shell:
    """Asks for statements in the terminal, one after the other, on one Spark session. The history is in STREAMGAUGE_HOME."""

    def __init__(self, spark: SparkSession, settings: Settings, limit: int) -> None:
        """limit: how many rows of an answer to print at most."""
        self._spark, self._settings, self._limit = spark, settings, limit
        self._prompt: PromptSession[str] = PromptSession(
            "sql> ",
            history=FileHistory(settings.home / "sql_history"),
            multiline=Condition(lambda: not _is_whole(get_app().current_buffer.text)),
            prompt_continuation="  -> ",
            completer=WordCompleter(lambda: self._words, ignore_case=True, pattern=re.compile(r"\w+")),
            complete_while_typing=False,
            complete_in_thread=True,
        )

    def run(self) -> None:
        """Answers statements until Ctrl-D, `exit` or `quit`. An error is one line, and the shell goes on."""
        out.print(HELP)
        while True:
            try:
                statement = self._prompt.prompt().strip().removesuffix(";").strip()
                if statement.lower() in _ENDS:
                    return
                if statement:
                    self._answer(statement)
            except StreamgaugeError as error:
                out.print(f"error: {error}")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return

    def _answer(self, statement: str) -> None:
        tables = sql_tables(self._settings)  # again each time: queries that run add tables
        if statement.lower() == _TABLES:
            out.print(as_table(["table", "format", "path"], [[table.name, table.format, str(table.path)] for table in tables]))
            return
        began = time.monotonic()
        result = answer(self._spark, statement, tables, self._limit)
        out.print(as_table(result.columns, result.rows))
        rows = cut_at(self._limit) if result.is_cut else f"{len(result.rows)} row{'s' * (len(result.rows) != 1)}"
        out.print(f"{rows}; {time.monotonic() - began:.1f} s")

    @cached_property
    def _words(self) -> list[str]:
        """What Tab completes: tables, their columns, and SQL's keywords. Tables that cannot be read now are only named."""
        # The function sql_keywords() parses each word to find out whether it is reserved: seconds for what is not asked here.
        keywords = self._spark._jvm.org.apache.spark.sql.catalyst.util.SQLKeywordUtils.keywords()  # type: ignore[union-attr]
        words = keywords.mkString(" ").lower().split()
        for table in sql_tables(self._settings):
            words.append(table.name)
            try:
                words += table.columns(self._spark).names
            except StreamgaugeError:
                continue
        return sorted(set(words))


def _is_whole(text: str) -> bool:
    """Whether Enter ends the input: a statement with its semicolon, a word of the shell, or nothing."""
    stripped = text.strip()
    return not stripped or stripped.endswith(";") or stripped.lower() in {*_ENDS, _TABLES}
