"""How deep a JSON text may be nested. What its values mean is told where the audit is compared with Spark: tests/spark/test_audit_values.py."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from audit.values.json_texts import MOST_LEVELS, json_text
from audit.values.spark_texts import text_of


def nested(levels):
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize("most", [100, MOST_LEVELS])
def test_a_text_is_kept_that_is_nested_as_deep_as_is_allowed_and_no_deeper(most):
    for levels in (99, 100, 254, 255, most, most + 1):
        kept = (nested(levels), None), (None, f"not JSON, or nested more than {most} levels deep")
        assert json_text(nested(levels), most) == kept[levels > most], levels


@pytest.mark.parametrize("most", [100, MOST_LEVELS])
def test_brackets_beside_each_other_are_not_nested(most):
    text = b"[" + b",".join([b"{}"] * 2 * most) + b"]"
    assert json_text(text, most) == (text, None)


def test_threads_read_and_write_deep_texts_at_once():
    """As the recount does: one reads records, while DuckDB calls `text_of` in others."""
    deep = b"[" * 900 + b"1.50" + b"]" * 900
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as threads:
            both = [(threads.submit(json_text, deep), threads.submit(text_of, deep.decode())) for _ in range(200)]
            found = {(read.result(), written.result()) for read, written in both}
    finally:
        sys.setswitchinterval(before)
    assert found == {((deep.replace(b"1.50", b"1.5"), None), deep.decode().replace("1.50", "1.5"))}
