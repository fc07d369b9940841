"""The last check of labs 3, 5 and 12: what the audit finds, as a learner reads it."""

import pytest
from mock_kafka import MockKafka

from contract.topics import ALERTS
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from streamgauge.workshop import grader, product
from streamgauge.workshop.grading import Verdict, not_right
from streamgauge.workshop.labs import lab_of


def verdict(query="counts", verdict="right", compared=9, **found):
    rows = {"compared": compared, "missing": 0, "extra": 0, "different": found.pop("different", 0)}
    return {"query": query, "verdict": verdict, "rows": rows, "faults": [], "problem": None, **found}


@pytest.mark.parametrize(
    ("found", "came"),
    [
        (verdict(verdict="wrong", different=2), "counts: 2 of 9 rows are wrong"),
        (verdict(compared=0), "counts: no rows"),
        (verdict(verdict="wrong", faults=["a file is twice in it"]), "counts: a file is twice in it; 0 of 9 rows are wrong"),
        (verdict(verdict="not checked", problem="Kafka is away"), "counts: Kafka is away"),
        (verdict("letters", "wrong", different=1), "letters: 1 of 9 rows are wrong"),
    ],
)
def test_what_is_not_right_is_told_with_the_command_that_shows_it(found, came):
    failure = not_right([verdict(), found], "counts", "streamgauge")
    assert failure is not None
    assert f"came:      {came}\n" in failure.text
    assert f"`streamgauge verify {found['query']}`" in failure.hint


def test_dead_letters_need_no_rows():
    assert not_right([verdict(), verdict("letters", compared=0)], "counts", "streamgauge") is None


def test_an_audit_that_cannot_be_asked_is_a_check_that_fails_and_the_others_have_passed(monkeypatch, tmp_path):
    def last_records(*_):
        msg = "no Kafka answers at here; start one with `streamgauge up`"
        raise StreamgaugeError(msg)

    monkeypatch.setattr(product, "last_records", last_records)
    verdict = product.with_audit(lab_of(5), Verdict(5, 5), Settings(home=tmp_path))
    assert (verdict.passed, verdict.total) == (5, 6)
    assert verdict.failure.text.endswith("start one with `streamgauge up`")
    assert str(tmp_path) in verdict.failure.hint


def test_an_alert_of_another_program_does_not_end_the_check_whether_a_query_was_killed(tmp_path):
    kafka = MockKafka(tmp_path, [ALERTS.name])
    kafka.write(ALERTS.name, b"[1]", b'{"what":5}', b"no JSON", None)
    verdict = product.with_audit(lab_of(5), Verdict(5, 5), kafka.settings)
    assert verdict.failure.what == "A query that was killed goes on"


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b"\xff"])
def test_a_damaged_name_of_the_process_that_grades_deletes_nothing(monkeypatch, tmp_path, content):
    def start_process(*_):
        msg = "not to be started"
        raise StreamgaugeError(msg)

    monkeypatch.setattr(grader, "start_process", start_process)
    monkeypatch.chdir(tmp_path)
    settings = Settings(home=tmp_path / "home")
    named = grader.home(settings) / grader._NAME
    named.parent.mkdir(parents=True)
    named.write_bytes(content)
    (tmp_path / "precious").touch()
    with pytest.raises(StreamgaugeError, match="not to be started"):
        grader.ready(settings)
    assert (tmp_path / "precious").exists()
