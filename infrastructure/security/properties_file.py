"""Properties files of Kafka's tools, with references such as `${env:NAME}` to values stored elsewhere.

The references are those of Kafka's config providers: `${env:NAME}` for an environment variable, `${file:/path:key}` for a value in another
properties file, `${directory:/path:name}` (or `dir`) for the content of a file. As in Kafka, resolved values are used as they are.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from infrastructure.errors import StreamgaugeError, check_names

_PROVIDERS = "org.apache.kafka.common.config.provider"
PROVIDERS = {
    "env": f"{_PROVIDERS}.EnvVarConfigProvider",
    "file": f"{_PROVIDERS}.FileConfigProvider",
    "directory": f"{_PROVIDERS}.DirectoryConfigProvider",
    "dir": f"{_PROVIDERS}.DirectoryConfigProvider",
}
"""Provider name in references to the class with which Kafka's Java clients resolve them."""
REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")


@dataclass(frozen=True)
class PropertiesFile:
    """A parsed properties file. texts: the values as written, with references, by name; never printed."""

    path: Path
    texts: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)

    @classmethod
    def read(cls, path: Path, environment: Mapping[str, str], variable: str) -> Self:
        """Reads the file named by the environment variable `variable`. Raises StreamgaugeError when it cannot be read."""
        try:
            texts = _entries(path.read_text())
        except (OSError, ValueError) as error:
            msg = f"{variable}={path} cannot be read ({_reason(error)}); expected a file of Kafka client properties"
            raise StreamgaugeError(msg) from error
        # Files for Kafka's tools configure the providers. Here they are always available.
        return cls(path, {name: value for name, value in texts.items() if not name.startswith("config.providers")}, environment)

    def value(self, name: str) -> str | None:
        """The value of a property, with references resolved. None if the file does not have it.

        Raises StreamgaugeError for a reference that cannot be resolved. The message contains no values.
        """
        return REFERENCE.sub(lambda reference: self._followed(name, reference), self.texts[name]) if name in self.texts else None

    def with_value(self, name: str, text: str) -> "PropertiesFile":
        """The properties with one more."""
        return replace(self, texts={**self.texts, name: text})

    def check_names(self, supported: Collection[str]) -> None:
        """Raises StreamgaugeError if the file has a property that is not in `supported`."""
        # The name on a line without a value may be a secret that was broken into two lines.
        shown = (name if name in supported or text else "***" for name, text in self.texts.items())
        check_names(f"supported property in {self.path}:", shown, sorted(supported))

    def error(self, problem: str) -> StreamgaugeError:
        return StreamgaugeError(f"{self.path}: {problem}")

    def _followed(self, name: str, reference: re.Match[str]) -> str:
        provider, path, key = reference.groups()
        try:
            if provider == "env":
                return self.environment[key]
            if provider == "file" and path:
                return _entries(Path(path).read_text())[key]
            if provider in {"directory", "dir"} and path:
                return self._content(name, Path(path) / key)
        except KeyError as error:
            where = "the environment has no variable" if provider == "env" else f"{path} has no property"
            msg = f"{name} refers to {reference[0]}, and {where} {key}; set it, or correct the reference"
            raise self.error(msg) from error
        except (OSError, ValueError) as error:
            msg = f"{name} refers to {reference[0]}, which cannot be read ({_reason(error)})"
            raise self.error(msg) from error
        msg = f"{name} refers to {reference[0]}; expected ${{env:NAME}}, ${{file:/path:key}} or ${{directory:/path:name}}"
        raise self.error(msg)

    def _content(self, name: str, path: Path) -> str:
        content = path.read_text()
        if content.endswith("\n"):
            msg = f"{name} refers to {path}, which ends with a line break; Kafka would make that part of the value, so write the file without one (printf, not echo)"
            raise self.error(msg)
        return content


def _entries(text: str) -> dict[str, str]:
    """Parses a properties file. Raises ValueError for a broken escape."""
    import javaproperties  # only for those who have such a file: it is slow to import

    return javaproperties.loads(text)


def _reason(error: OSError | ValueError) -> str:
    """Why a file cannot be read, without any of its contents."""
    if isinstance(error, OSError):
        return str(error.strerror)
    return "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "a \\u in it is not followed by four hexadecimal digits"
