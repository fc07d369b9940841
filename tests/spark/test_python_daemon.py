"""The processes that run state in Python."""

import gc
import sys
from zipimport import zipimporter

import pyspark


def told(_):
    archives = [path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]
    return [(archives, pyspark.__file__, gc.get_freeze_count(), sys.modules.keys() >= {"pandas", "pyarrow"})]


def test_they_use_no_archive_and_have_imported_what_they_need_before_they_are_forked(spark):
    archives, package, frozen, has_imported = spark.sparkContext.parallelize([1], 1).mapPartitions(told).first()
    assert archives == [], "each task would read their directories again"
    assert package == pyspark.__file__
    assert frozen > 0, "each task would collect garbage among all modules"
    assert has_imported
