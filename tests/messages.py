"""What a message has to carry: names, figures, settings. How it is worded is no matter of a test."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from infrastructure.errors import StreamgaugeError


@contextmanager
def refused(*facts: str, by: type[Exception] = StreamgaugeError) -> Iterator["pytest.ExceptionInfo[Exception]"]:
    """Fails unless what is done in it raises an error whose message is one line that names each of `facts`."""
    with pytest.raises(by) as raised:
        yield raised
    text = str(raised.value)
    assert "\n" not in text, text
    assert absent(text, *facts) == [], text


def absent(text: str, *facts: str) -> list[str]:
    """Those of `facts` that `text` does not name."""
    return [fact for fact in facts if fact not in text]
