import pytest
from delta.tables import DeltaTable
from text_tables import expect_rows, frame_of

FIRST = """
key    value  offset
cam-1  on     0
cam-2  on     1
cam-1  off    2
"""
SECOND = """
key    value  offset
cam-2  null   3
cam-3  on     4
"""
TABLE = """
key    value  offset
cam-1  off    2
cam-3  on     4
"""


@pytest.fixture
def batch(spark):
    return lambda table: frame_of(spark, table, "key string, value string, offset bigint")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "table")


def append(rows, path):
    """Adds a file with `rows`, as a version of its own."""
    rows.coalesce(1).write.format("delta").mode("append").save(path)


def table_at(spark, path):
    return spark.read.format("delta").load(path)


def files_of(spark, path):
    return DeltaTable.forPath(spark, path).detail().select("numFiles").first().numFiles


def test_the_first_batch_makes_a_table_with_the_newest_record_of_each_key(lab, spark, batch, path):
    """A batch may hold several records of a key, and MERGE does not choose among them: first keep only the one with the highest offset."""
    lab.upsert(batch(FIRST), path)
    expect_rows(
        table_at(spark, path),
        """
        key    value  offset
        cam-1  off    2
        cam-2  on     1
        """,
    )


def test_a_later_batch_inserts_updates_and_deletes(lab, spark, batch, path):
    """A record with a null value is a tombstone: the key's row goes. whenMatchedDelete takes a condition."""
    lab.upsert(batch(FIRST), path)
    lab.upsert(batch(SECOND), path)
    expect_rows(table_at(spark, path), TABLE)


def test_a_tombstone_of_a_key_that_the_table_lacks_is_no_row(lab, spark, batch, path):
    """whenNotMatchedInsertAll takes a condition as well."""
    lab.upsert(batch(SECOND), path)
    expect_rows(
        table_at(spark, path),
        """
        key    value  offset
        cam-3  on     4
        """,
    )


def test_an_older_batch_that_runs_again_replaces_nothing(lab, spark, batch, path):
    """The offset says which record is newer. Compare it wherever a row is replaced or deleted."""
    later = """
        key    value  offset
        cam-1  on     5
        cam-2  off    6
        cam-3  off    7
        """
    for table in (later, FIRST, SECOND):
        lab.upsert(batch(table), path)
    expect_rows(table_at(spark, path), later)


def test_small_files_become_one_and_the_rows_stay(lab, spark, batch, path):
    """Each batch adds at least one file. DeltaTable.forPath(spark, path).optimize() has two ways to rewrite them."""
    for number in range(3):
        append(batch(f"key    value  offset\ncam-{number}  on     {number}"), path)
    lab.compact(spark, path)
    files, rows = files_of(spark, path), table_at(spark, path).count()
    assert files == 1, f"came:      {files} files, after 3\nexpected:  1"
    assert rows == 3, f"came:      {rows} rows\nexpected:  3"


def test_an_earlier_version_can_still_be_read(lab, spark, batch, path):
    """Each batch makes a version. Delta's reader has the option versionAsOf, and leaves the table as it is."""
    append(batch(TABLE), path)
    append(batch(SECOND), path)
    expect_rows(lab.as_of(spark, path, 0), TABLE)
    rows = table_at(spark, path).count()
    assert rows == 4, f"the table itself, after it was read as of version 0\ncame:      {rows} rows\nexpected:  4, as before"
