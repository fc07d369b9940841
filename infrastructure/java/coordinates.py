"""Maven coordinates: group:artifact[:type[:classifier]]:version, as Maven prints them."""

from dataclasses import dataclass
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
        """Parses `group:artifact[:type[:classifier]]:version`."""
        group, artifact, *kind, version = text.split(":")
        return cls(group, artifact, version, *kind)

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
