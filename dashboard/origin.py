"""Where the numbers of a panel come from: declared once for each panel, so that the pages can say it and a test can check it."""

from dataclasses import dataclass

from contract.topics import Topic


@dataclass(frozen=True)
class Origin:
    """A query, the topic that it writes, and the function in a file that makes the number. query: "" if every query writes the topic."""

    topic: Topic
    query: str
    function: str
    file: str

    @property
    def sentence(self) -> str:
        """One sentence in Markdown."""
        writer = f"query `{self.query}`" if self.query else "every query"
        return f"From topic `{self.topic.name}`, which {writer} writes: `{self.function}` in `{self.file}`."
