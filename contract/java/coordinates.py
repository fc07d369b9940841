"""Maven coordinates: group:artifact[:type[:classifier]]:version, as Maven prints them."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Self


@dataclass(frozen=True, order=True)
class Coordinate:
    """An artifact of a Maven repository."""

    group: str
    artifact: str
    version: str
    type: str = "jar"
    classifier: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses `group:artifact[:type[:classifier]]:version`. Raises ValueError for anything else."""
        parts = text.split(":")
        if not 3 <= len(parts) <= 5:  # noqa: PLR2004 - the parts above
            msg = f"not a Maven coordinate: {text!r}; expected group:artifact[:type[:classifier]]:version"
            raise ValueError(msg)
        group, artifact, *kind, version = parts
        return cls(group, artifact, version, *kind)

    @classmethod
    def of_repository_path(cls, path: PurePath) -> Self:
        """The coordinate of a file by its `path` in a Maven repository, e.g. org/slf4j/slf4j-api/2.0/slf4j-api-2.0.jar."""
        *group, artifact, version, name = path.parts
        classifier, _, type_ = name.removeprefix(f"{artifact}-{version}").removeprefix("-").partition(".")
        return cls(".".join(group), artifact, version, type_, classifier)

    @property
    def file_name(self) -> str:
        """The file's name in a Maven repository."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.{self.type}"

    @property
    def repository_path(self) -> str:
        """The file's path relative to a Maven repository's URL."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"

    def __str__(self) -> str:
        middle = f":{self.type}:{self.classifier}" if self.classifier else ("" if self.type == "jar" else f":{self.type}")
        return f"{self.group}:{self.artifact}{middle}:{self.version}"
