"""Which tables there are, by the folders of the lake."""

import pytest
from messages import refused

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from pipeline.lake.tables import LakeTable, named_tables, tables


@pytest.fixture
def lake(tmp_path):
    """Settings, and what makes the folder of a table there."""
    settings = Settings(home=tmp_path)

    def table(where, mark="_spark_metadata"):
        (settings.lake / where / mark).mkdir(parents=True)
        (settings.lake / where / "date=2026-01-01").mkdir()

    return settings, table


def test_names_are_the_folders_below_the_lake(lake):
    settings, table = lake
    table("nest/cameras")
    table("nyc_taxi", "_delta_log")
    table("a.b-c/d e", "_delta_log")
    assert tables(settings) == [
        LakeTable("a_b_c_d_e", settings.lake.absolute() / "a.b-c" / "d e", "delta"),
        LakeTable("nest_cameras", settings.lake.absolute() / "nest" / "cameras", "parquet"),
        LakeTable("nyc_taxi", settings.lake.absolute() / "nyc_taxi", "delta"),
    ]


def test_internal_folders_and_what_is_inside_of_a_table_are_no_tables(lake):
    settings, table = lake
    table("trips")
    table("trips/date=2026-01-02/inner")
    table("_internal/trips")
    table("nest/.hidden/trips")
    (settings.lake / "empty").mkdir()
    assert [one.name for one in tables(settings)] == ["trips"]


def test_no_lake_has_no_tables_and_says_what_to_run(tmp_path):
    settings = Settings(home=tmp_path)
    assert tables(settings) == []
    with refused(str(settings.lake), "streamgauge run"):
        named_tables([], settings)


@pytest.mark.parametrize("other", ["nest_cameras", "nest-cameras", "Nest/Cameras"])
def test_two_folders_of_one_name_are_told_both(lake, other):
    settings, table = lake
    table("nest/cameras")
    table(other, "_delta_log")
    with pytest.raises(StreamgaugeError) as told:
        tables(settings)
    assert str(settings.lake / "nest" / "cameras") in str(told.value)
    assert str(settings.lake / other) in str(told.value)


def test_tables_by_name(lake):
    settings, table = lake
    table("a")
    table("b")
    assert [one.name for one in named_tables([], settings)] == ["a", "b"]
    assert [one.name for one in named_tables(["b", "b"], settings)] == ["b"]
    with refused(" c", "a, b"):
        named_tables(["c"], settings)
