import pytest
from plain import one_camera
from streaming import at

from infrastructure.settings import Settings
from pipeline.domains.nest import queries

CAMERA_STATS = queries(Settings())[0]
SIGHTINGS = ([("cam-1", "10:10")], [("cam-2", "10:20"), ("cam-1", "11:10")], [("cam-2", "11:20")])
TABLE = {"2026-01-01T10:00:00Z": 2, "2026-01-01T11:00:00Z": 2}
ADDED = ({"10": 1}, {"10": 1, "11": 1}, {"11": 1})
SUMS = {"10": 2, "11": 2}


@pytest.fixture
def counting(stream):
    """The product's query: Spark's checkpoint survives each run."""
    return stream(CAMERA_STATS, settings=Settings(watermark="1 hour"))


def documents(batch):
    return [one_camera(camera, at(time)) for camera, time in batch]


class Database:
    """What survives a kill: two tables."""

    def __init__(self, lab) -> None:
        self.lab, self.table, self.notes = lab, {}, {}

    def add(self, batch, *, is_killed=False):
        table, notes = dict(self.table), dict(self.notes)
        self.lab.add(table, notes, batch, [{"hour": hour, "people": people} for hour, people in ADDED[batch].items()])
        if not is_killed:
            self.table, self.notes = table, notes


def expect_table(came, expected):
    assert came == expected, f"came:      {came}\nexpected:  {expected}"


def test_each_batch_puts_its_rows_into_the_table(lab, counting):
    """In mode update a row is the whole count of its hour so far, and not what the batch has added to it."""
    table = {}
    for batch in counting.run(*map(documents, SIGHTINGS)):
        lab.put(table, batch.rows)
    expect_table(table, TABLE)


def test_a_kill_in_the_middle_of_a_batch_changes_nothing(lab, counting):
    """The second batch was half written when the process was killed. It runs again, and writes all of its rows."""
    table = {}
    first, second = counting.run(*map(documents, SIGHTINGS[:2]))
    lab.put(table, first.rows)
    lab.put(table, second.rows[:1])
    counting.lose_last_commit()
    for batch in counting.run(documents(SIGHTINGS[2])):
        lab.put(table, batch.rows)
    expect_table(table, TABLE)


def test_sums_hold_what_all_batches_have_added(lab):
    """Batches have the numbers 0, 1 and 2."""
    database = Database(lab)
    for batch in range(3):
        database.add(batch)
    expect_table(database.table, SUMS)


def test_a_batch_that_comes_again_is_not_added_again(lab):
    """Batches 0, 1, 1 and 2: Spark was killed after the database had batch 1, and before Spark had noted that it was done."""
    database = Database(lab)
    for batch in (0, 1, 1, 2):
        database.add(batch)
    expect_table(database.table, SUMS)


def test_a_batch_that_the_database_has_lost_is_added_when_it_comes_again(lab):
    """Batches 0, 1, 1 and 2: the kill came before the first batch 1 was permanent. Where is it noted that a batch has been added, and is that note lost with it?"""
    database = Database(lab)
    database.add(0)
    database.add(1, is_killed=True)
    database.add(1)
    database.add(2)
    expect_table(database.table, SUMS)
