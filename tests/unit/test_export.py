"""`streamgauge export` where no query has to run: on a broker without Java. tests/kafka/test_export.py has the rest."""

import orjson
from foreign_rows import example
from mock_kafka import MockKafka
from pyarrow.parquet import read_table
from running import one_line_error, streamgauge, succeed

TOPIC = "nest-camera-status"


def exported(kafka):
    succeed("export", TOPIC, settings=kafka.settings)
    return read_table(kafka.settings.lake / "results" / TOPIC / "rows.parquet").num_rows


def test_a_table_without_windows_whose_last_row_was_deleted_has_a_file_without_rows(tmp_path):
    kafka = MockKafka(tmp_path, [TOPIC])
    key = orjson.dumps({"device_id": example(TOPIC)["device_id"]})
    kafka.write(TOPIC, orjson.dumps(example(TOPIC)), key=key)
    assert exported(kafka) == 1
    kafka.write(TOPIC, None, key=key)
    assert exported(kafka) == 0


def test_a_table_that_cannot_be_read_keeps_no_other_from_being_written(tmp_path):
    kafka = MockKafka(tmp_path, [TOPIC])
    kafka.write(TOPIC, orjson.dumps(example(TOPIC)), key=orjson.dumps({"device_id": example(TOPIC)["device_id"]}))
    done = streamgauge("export", "nest-camera-stats", TOPIC, "nest-crowds", settings=kafka.settings)
    assert f"{TOPIC}: 1 rows, 1 file replaced, " in done.stdout
    told = one_line_error(done)
    assert "has no topic nest-camera-stats" in told
    assert "has no topic nest-crowds" in told
