"""Labs as notebooks, for classes that use JupyterLab. `make workshop-notebooks` makes them from the README and the exercise of each lab."""

import re
import sys
from collections.abc import Iterator

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from streamgauge.workshop.labs import Lab, lab_of

LABS = [lab_of(number) for number in (1, 2, 4, 6, 9, 10)]


def main() -> None:
    """Writes each notebook next to the learner's exercise, unless it is there."""
    for lab in LABS:
        path = lab.exercise.with_name("lab.ipynb")
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook(lab), path)
        sys.stdout.write(f"{path}\n")


def notebook(lab: Lab) -> NotebookNode:
    """The README, with a cell for each command and for the exercise, which stands before the first check."""
    task, check = (lab.folder / "README.md").read_text().split("## Check\n")
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [*_cells(task), file_cell((lab.folder / "exercise.py").read_text()), *_cells(f"## Check\n{check}")]
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def file_cell(code: str) -> NotebookNode:
    """A cell that writes `code` to the learner's file."""
    return new_code_cell(f"%%writefile exercise.py\n{code.rstrip()}")


def _cells(text: str) -> Iterator[NotebookNode]:
    """Text, and a cell for each console block: its command, with the output that the block shows."""
    for place, piece in enumerate(re.split(r"```console\n\$ (.*?)```", text, flags=re.DOTALL)):
        if place % 2:
            command, output = piece.split("\n", 1)
            # A notebook runs in its own folder, my-workshop/NN-name.
            source = f"%%sh --no-raise-error\ncd ../.. && {command}"
            yield new_code_cell(source, outputs=[new_output("stream", name="stdout", text=output)])
        elif piece.strip():
            yield new_markdown_cell(piece.strip())


if __name__ == "__main__":
    main()
