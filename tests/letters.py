"""Dead letters as a test looks at them."""

from pyspark.sql import DataFrame


def reasons(letters: DataFrame) -> dict[int, str]:
    """The reason of each dead letter by the offset of its record; of records of one partition."""
    found: dict[int, str] = {}
    for letter in letters.collect():
        headers = {header.key: header.value for header in letter.headers}
        offset = int(headers["offset"])
        assert offset not in found, f"record {offset} is a dead letter twice"
        found[offset] = headers["reason"].decode()
    return found
