"""How Sphinx builds the documentation: `sphinx-build -W docs build/site`.

Three things are our own. A page that shows ``![text](pictures/name.svg)`` has the picture drawn by
its own examples: they are run from the top of the page down to that line, and the figure drawn last
is the picture. A notebook is a page: its texts, its code, and what it printed and drew when it was
last run (``python docs/run_notebook.py``). And formulas become MathML, which browsers draw without
scripts.
"""

import contextlib
import doctest
import io
import json
import logging
import re
from pathlib import Path

from docutils.nodes import SkipNode, Text, literal_block
from latex2mathml.converter import convert
from matplotlib import pyplot as plt
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.errors import ExtensionError

import fastal

project = "fastal"
author = "The fastal developers"
project_copyright = author
release = version = fastal.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc"]
exclude_patterns = ["pictures"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

default_role = "py:obj"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"fastal {release}"
html_static_path = ["style"]
html_css_files = ["style.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False

PICTURE = re.compile(r"!\[[^\]]*\]\((pictures/[\w-]+\.svg)\)")


def draw_pictures(app):
    """Draw the pictures of all pages."""
    plt.switch_backend("agg")
    # A handler of Sphinx's would print how each campaign on the pages ended.
    logging.getLogger("fastal").setLevel(logging.WARNING)
    folder = Path(app.srcdir)
    (folder / "pictures").mkdir(exist_ok=True)
    for page in sorted(folder.glob("*.md")):
        draw_page(page.read_text(encoding="utf-8"), folder)


def draw_page(text, folder):
    """Run the examples of a page down to its last picture, and save what they draw."""
    last = max((match.end() for match in PICTURE.finditer(text)), default=0)
    names = {"__name__": "__main__"}
    there = True  # the data set that the page loads, if it does
    for piece in doctest.DocTestParser().parse(text[:last]):
        if isinstance(piece, doctest.Example):
            try:
                if there:
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(piece.source, "<example>", "single"), names)
            except OSError:
                if "load(" not in piece.source:
                    raise
                there = False
            continue
        for match in PICTURE.finditer(piece):
            if not there:
                note = "This picture is drawn where the data set can be downloaded."
                plt.figure(figsize=(7, 1)).text(0.02, 0.5, note)
            if not plt.get_fignums():
                raise ExtensionError(f"nothing has been drawn above {match[0]}")
            plt.gcf().savefig(folder / match[1])
            plt.close("all")


def notebook_page(notebook, name, folder):
    """Return a notebook as Markdown; its pictures go to files of the folder."""
    parts, pictures = [], 0
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        # a line for the notebook's own ears, not Python
        shown = "\n".join(line for line in text.split("\n") if not line.startswith("%"))
        parts.append(f"```python\n{shown}\n```")
        for output in cell["outputs"]:
            drawn = output.get("data", {}).get("image/svg+xml")
            if drawn is not None:
                pictures += 1
                file = f"pictures/{name}-{pictures}.svg"
                (folder / file).write_text("".join(drawn), encoding="utf-8")
                parts.append(f"![{cell['metadata']['alt']}]({file})")
                continue
            if output["output_type"] == "error":
                raise ExtensionError(f"{name}.ipynb ended with an error: {output['evalue']}")
            printed = output.get("text") or output["data"]["text/plain"]
            parts.append(f"```text\n{''.join(printed).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


class NotebookParser(MystParser):
    """Reads notebooks as pages."""

    supported = ("notebook",)

    def parse(self, inputstring, document):
        """Parse the page that a notebook makes."""
        source = Path(document["source"])
        super().parse(notebook_page(json.loads(inputstring), source.stem, source.parent), document)


def trim_examples(app, doctree):
    """Drop the empty line that ends a doctest before its fence."""
    for block in doctree.findall(literal_block):
        block.rawsource = block.rawsource.rstrip()
        block[:] = [Text(block.rawsource)]


def write_formula(display):
    """Return what writes a formula into a page."""

    def visit(translator, node):
        translator.body.append(convert(node.astext(), display=display))
        raise SkipNode

    return visit, None


def setup(app):
    """Tell Sphinx about the pictures, the notebook and the formulas."""
    app.connect("builder-inited", draw_pictures)
    app.connect("doctree-read", trim_examples)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.add_html_math_renderer("mathml", write_formula("inline"), write_formula("block"))
