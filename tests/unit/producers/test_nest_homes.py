"""The homes, and the table of their locations."""

import csv
import io
from collections import Counter

from producers.nest.homes import TABLE, homes, write_table


def rows():
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_is_the_one_that_the_homes_give():
    made = io.StringIO()
    write_table(made)
    assert TABLE.read_text() == made.getvalue()


def test_the_table_has_each_device_once_over_some_25_zip_codes_unevenly():
    assert len({row["device_id"] for row in rows()}) == len(rows()) == 792
    sizes = Counter(row["zip_code"] for row in rows())
    assert 20 <= len(sizes) <= 30
    assert all(len(zip_code) == 5 and zip_code.isdigit() for zip_code in sizes)
    assert max(sizes.values()) > 10 * min(sizes.values())


def test_the_homes_of_fewer_cameras_are_the_first_of_those_of_more():
    few = [camera for home in homes(101) for camera in home.cameras]
    many = [camera for home in homes(500) for camera in home.cameras]
    assert len(few) == 101
    assert few == many[:101]
