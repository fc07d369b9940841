"""The JAAS file of Java's programs, which has the login module of Kafka's clients in its section KafkaClient."""

import re
import shlex
from pathlib import Path

from infrastructure.errors import StreamgaugeError

OPTION = "-Djava.security.auth.login.config="
_TEXT = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"({_TEXT})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_SECTION = re.compile(rf"(?<![\w.])KafkaClient\s*\{{((?:{_TEXT}|[^\"{{}}])*)\}}")


def login_module_of(java_options: str) -> str | None:
    """The section KafkaClient of the file that `java_options` name, as `sasl.jaas.config` has it. None if they name no file.

    Raises StreamgaugeError if the file cannot be read or has no such section. The message contains nothing of the file.
    """
    named = [option.removeprefix(OPTION) for option in shlex.split(java_options) if option.startswith(OPTION)]
    if not named:
        return None
    path = named[-1].removeprefix("=").removeprefix("file:")  # with a second =, Java reads no other file
    try:
        text = Path(path).read_text()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        msg = f"{OPTION}{path} cannot be read ({reason}); expected a JAAS file"
        raise StreamgaugeError(msg) from error
    section = _SECTION.search(_COMMENT.sub(lambda found: found[1] or " ", text))
    if section is None:
        msg = f"{path} has no section KafkaClient; expected KafkaClient {{ com.sun.security.auth.module.Krb5LoginModule required ...; }};"
        raise StreamgaugeError(msg)
    return section[1]
