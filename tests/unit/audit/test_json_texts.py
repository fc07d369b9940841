"""How deep a JSON text may be nested. What its values mean is told where the audit is compared with Spark: tests/spark/test_audit_values.py."""

import pytest

from audit.values.json_texts import MOST_LEVELS, json_text


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
