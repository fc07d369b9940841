"""Where the queries of derived tables are found."""

from pipeline.lake.derived_tables import queries

EXAMPLE = "sightings_and_trips"


def test_the_queries_of_the_current_folder_come_beside_the_installed_ones_and_before_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [*queries([])] == [EXAMPLE]
    tables = tmp_path / "data" / "tables"
    tables.mkdir(parents=True)
    for name in ("orders_per_customer", EXAMPLE):
        (tables / f"{name}.sql").write_text(f"select '{name}'")
    assert queries([]) == {name: f"select '{name}'" for name in (EXAMPLE, "orders_per_customer")}
