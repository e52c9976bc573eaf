"""Run docs/notebook.ipynb from top to bottom and keep what it prints and draws.

``python docs/run_notebook.py`` needs nbclient and ipykernel (extra ``test``), matplotlib, and the
concrete data. The same numbers give the same file.
"""

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_name("notebook.ipynb")
SECONDS = 600  # for one cell; a busy machine may have to compile first

# Text stays text, which makes pictures smaller; no date, and names that do not change.
STYLE = "svg.fonttype: none\nsvg.hashsalt: fastal\n"


def run(notebook, folder):
    """Run all cells in a folder; what one of them writes stays there.

    Parameters
    ----------
    notebook : nbformat.NotebookNode
        The notebook; it gets its outputs.
    folder : path
        Where its kernel works.

    Returns
    -------
    nbformat.NotebookNode
        The same one, without what differs from run to run.
    """
    style = Path(folder, "matplotlibrc")
    style.write_text(STYLE, encoding="utf-8")
    settings = {"MATPLOTLIBRC": str(style), "SOURCE_DATE_EPOCH": "0"}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        NotebookClient(
            notebook,
            timeout=SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,
        ).execute()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    for cell in notebook.cells:
        cell.metadata = {name: text for name, text in cell.metadata.items() if name == "alt"}
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def joined(outputs):
    """Join pieces of one stream, which come as the kernel happens to send them."""
    found = []
    for one in outputs:
        if found and one.output_type == "stream" and found[-1].get("name") == one.name:
            found[-1].text += one.text
        else:
            found.append(one)
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = run(nbformat.read(NOTEBOOK, as_version=4), folder)
    nbformat.write(made, NOTEBOOK)
