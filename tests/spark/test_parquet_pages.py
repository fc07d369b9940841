"""A Parquet file whose bytes have changed: an error that names the file, and no wrong number."""

import struct

import pytest

from pipeline.spark.errors import SparkFailure, first_line


def test_a_page_that_is_not_what_its_checksum_says_is_an_error_that_names_the_file(spark, tmp_path):
    plain = {"compression": "none", "parquet.enable.dictionary": "false"}
    spark.range(1000).coalesce(1).write.options(**plain).parquet(str(tmp_path / "table"))
    (file,) = (tmp_path / "table").glob("*.parquet")
    for checksums in (tmp_path / "table").glob(".*.crc"):  # those of Hadoop, which another reader or store does not have
        checksums.unlink()
    file.write_bytes(file.read_bytes().replace(struct.pack("<q", 500), struct.pack("<q", 501)))
    with pytest.raises(SparkFailure) as failure:
        spark.read.parquet(str(tmp_path / "table")).groupBy().sum().collect()
    assert file.name in first_line(failure.value)
