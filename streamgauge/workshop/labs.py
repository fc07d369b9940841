"""The labs of this checkout, and the learner's copies of their exercises in `my-workshop/`, in the current directory.

The learner edits a copy, so that `git status` stays clean, an update of the project never conflicts with an edited file, and the original is
always there to compare with.
"""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from infrastructure.errors import StreamgaugeError, check_names

ROOT = Path(__file__).parents[2]
LABS = ROOT / "workshop"
MINE = Path("my-workshop")
_KEPT = "exercise.before-reset.py"


@dataclass(frozen=True)
class Lab:
    """A lab. folder: with README.md, exercise.py, test_lab.py, solution.py, discussion.md and wrong.toml."""

    folder: Path

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return int(self.folder.name[:2])

    @property
    def title(self) -> str:
        """The heading of its README, without "Lab N: "."""
        return (self.folder / "README.md").read_text().splitlines()[0].split(": ", 1)[1]

    @property
    def exercise(self) -> Path:
        """The learner's file."""
        return MINE / self.folder.name / "exercise.py"

    @property
    def state(self) -> str:
        """How far the learner is: "" before the start, "started", or "done" once a check has passed."""
        if self._passed.exists():
            return "done"
        return "started" if self.exercise.exists() else ""

    @property
    def _passed(self) -> Path:
        return self.exercise.with_name(".passed")

    def check_started(self) -> None:
        """Raises StreamgaugeError unless the learner has a file."""
        if not self.exercise.exists():
            msg = f"{self.exercise.absolute()} does not exist; `streamgauge workshop start {self.number}` creates it"
            raise StreamgaugeError(msg)

    def start(self) -> bool:
        """Copies the exercise. Returns whether it did: an exercise that is there stays as it is."""
        if self.exercise.exists():
            return False
        _copy(self.folder / "exercise.py", self.exercise)
        return True

    def reset(self) -> Path | None:
        """Puts the original exercise in place. Returns where the learner's changes are kept; None if there were none."""
        kept, original = self.exercise.with_name(_KEPT), self.folder / "exercise.py"
        is_changed = self.exercise.exists() and self.exercise.read_bytes() != original.read_bytes()
        if is_changed:
            self.exercise.replace(kept)
        _copy(original, self.exercise)
        self._passed.unlink(missing_ok=True)
        return kept if is_changed else None

    @property
    def needs_delta(self) -> bool:
        """Whether the exercise writes Delta tables."""
        return "from delta" in (self.folder / "exercise.py").read_text()

    def mark_passed(self) -> None:
        self._passed.touch()


def all_labs() -> list[Lab]:
    """The labs, in order. Raises StreamgaugeError in an installation without them."""
    labs = [Lab(folder) for folder in sorted(LABS.glob("[0-9][0-9]-*"))]
    if not labs:
        msg = f"no labs in {LABS}; they are in the project's repository: clone it, and run `make setup` there"
        raise StreamgaugeError(msg)
    return labs


def lab_of(number: int) -> Lab:
    """The lab with this number. Raises StreamgaugeError if there is none."""
    labs = {lab.number: lab for lab in all_labs()}
    check_names("lab", [number], labs)
    return labs[number]


def loaded(exercise: Path) -> ModuleType:
    """The file as module `exercise`. Raises what the file raises."""
    module = ModuleType("exercise")
    module.__file__ = str(exercise)
    sys.modules["exercise"] = module
    # Compiled here: Python's own cache takes two changes within a second for one.
    exec(compile(exercise.read_bytes(), str(exercise), "exec"), module.__dict__)  # noqa: S102 - the learner's own code
    return module


def _copy(original: Path, copy: Path) -> None:
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, copy)
    except OSError as error:
        msg = f"could not write {copy.absolute()}: {error.strerror}; run the command in a folder that you may write to"
        raise StreamgaugeError(msg) from error
