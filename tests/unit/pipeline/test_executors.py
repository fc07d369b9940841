"""Executors that end: what is seen one look after the other, and the alerts that follow."""

from pipeline.monitoring.executors import Executor, ExecutorWatch

KILLED = "Command exited with code 137"


def alerts(*looks):
    """(look, level, text) of each alert; looks are counted from 0."""
    watch = ExecutorWatch()
    return [(number, *alert) for number, look in enumerate(looks) for alert in watch.look(look)]


def test_an_executor_that_ends_is_an_alert_once_and_resolved_when_another_takes_its_place():
    first, ended, second = Executor("0", "10.0.0.4"), Executor("0", "10.0.0.4", KILLED), Executor("1", "10.0.0.4")
    assert alerts([first], [ended], [ended], [ended, second], [ended, second]) == [
        (
            1,
            "warning",
            "executor 0 on 10.0.0.4 has ended: Command exited with code 137 (killed by signal 9, most likely by the kernel because memory ran out); 0 of 1 run",
        ),
        (3, "resolved", "1 of 1 executors run"),
    ]


def test_each_executor_that_ends_is_an_alert_also_if_its_successor_already_runs():
    started, lost = [Executor("0", "a"), Executor("1", "b")], Executor("0", "a", "worker lost")
    assert alerts(started, [lost, Executor("1", "b"), Executor("2", "a")]) == [
        (1, "warning", "executor 0 on a has ended: worker lost; 2 of 2 run"),
        (1, "resolved", "2 of 2 executors run"),
    ]


def test_a_reason_of_several_lines_is_one_line_and_no_reason_is_said():
    assert alerts([Executor("0", "a", "Remote RPC client\n disassociated"), Executor("1", "b", "")]) == [
        (0, "warning", "executor 0 on a has ended: Remote RPC client disassociated; 0 of 0 run"),
        (0, "warning", "executor 1 on b has ended: Spark gives no reason; 0 of 0 run"),
    ]


def test_executors_that_join_are_no_alert():
    assert alerts([], [Executor("0", "a")], [Executor("0", "a"), Executor("1", "b")]) == []
