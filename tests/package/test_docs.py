"""The README and the pages in docs: what they name exists, and what they show is so."""

import importlib
import importlib.util
import re
import xml.etree.ElementTree as ET
from urllib.parse import urlsplit

import page_blocks
import pytest
from page_blocks import OTHERS, PAGES, ROOT, without_blocks

import fastal
from fastal.cli.entry import main

README = ROOT / "README.md"


def resolve(dotted):
    """Import the module of a dotted name and return what it names."""
    first, *rest = dotted.split(".")
    found = importlib.import_module(first)
    for place, name in enumerate(rest, start=2):
        if not hasattr(found, name):  # a module that its package does not import by itself
            importlib.import_module(".".join(dotted.split(".")[:place]))
        found = getattr(found, name)
    return found


def unknown_names(text):
    """Dotted names of fastal in backticks that cannot be imported."""
    wrong = []
    for name in sorted(set(re.findall(r"`(fastal(?:\.\w+)+)`", text))):
        try:
            resolve(name)
        except (ImportError, AttributeError):
            wrong.append(name)
    return wrong


def unknown_tests(text):
    """Tests, as pytest names them, that are not there."""
    wrong = []
    for path, name in sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text))):
        file = ROOT / path
        if not (file.is_file() and re.search(rf"^def {name}\(", file.read_text("utf-8"), re.M)):
            wrong.append(f"{path}::{name}")
    return wrong


def anchors(text):
    """What GitHub makes of the headings; a comment in a code block is none."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(text, folder):
    """Relative links to files or headings that are not there."""
    wrong = []
    for target in re.findall(r"\]\(([^)]+)\)", without_blocks(text)):
        if re.match(r"[a-z]+:", target) or target.startswith("pictures/"):  # drawn by the build
            continue
        path, _, anchor = target.partition("#")
        file = folder / path
        there = file.exists()
        if there and anchor:
            there = anchor in anchors(file.read_text("utf-8") if path else text)
        if not there:
            wrong.append(target)
    return wrong


def external_links(text):
    """Addresses on the network, in links and in plain text."""
    return re.findall(r"https?://[^\s)>\]\"`']*", text)


def malformed_links(text):
    """Addresses that no browser could open, or that are not encrypted. Nobody is asked."""
    wrong = []
    for address in external_links(text):
        parts = urlsplit(address)
        host = re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", parts.netloc)
        if parts.scheme != "https" or host is None or re.search(r"[.,;:!?]$|\.\.", address):
            wrong.append(address)
    return wrong


def paths(text, folder):
    """The pages of each reader's path: the first table, whose rows begin in bold."""
    rows = re.findall(r"^\| \*\*(.+?)\*\*.*?\|(.*)\|$", text, re.M)
    return {
        reader: [(folder / page).resolve() for page in re.findall(r"\]\(([^)#]+)", links)]
        for reader, links in rows
    }


def test_there_are_pages():
    assert "paper.md" in {page.name for page in PAGES}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=page_blocks.name)
def test_pages_name_what_exists(page):
    text = page.read_text("utf-8")
    assert unknown_names(text) == []
    assert unknown_tests(text) == []
    assert broken_links(text, page.parent) == []


def test_addresses_are_well_formed():
    texts = [page.read_text("utf-8") for page in [*PAGES, *OTHERS, ROOT / "CHANGELOG.md"]]
    texts += [page.read_text("utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.rst"))]
    texts.append((ROOT / "CITATION.cff").read_text("utf-8"))
    assert sum(len(external_links(text)) for text in texts) > 3
    assert [wrong for text in texts for wrong in malformed_links(text)] == []


def test_three_readers_have_a_path_of_at_most_four_pages():
    found = paths((ROOT / "docs" / "index.md").read_text("utf-8"), ROOT / "docs")
    assert len(found) == 3
    for pages in found.values():
        assert 1 <= len(pages) == len(set(pages)) <= 4
        assert all(page.is_file() for page in pages)
    assert paths(README.read_text("utf-8"), ROOT) == found
    # the sidebar begins with the same paths
    trees = re.findall(
        r"^```\{toctree\}\n(.*?)^```$", (ROOT / "docs" / "index.md").read_text("utf-8"), re.M | re.S
    )
    for pages, tree in zip(found.values(), trees[:3], strict=True):
        assert [page.stem for page in pages] == [
            line for line in tree.splitlines() if line and line[0] != ":"
        ]


def test_the_paper_page_names_many():
    text = (ROOT / "docs" / "paper.md").read_text("utf-8")
    assert len(set(re.findall(r"`fastal\.[\w.]+`", text))) > 50
    assert len(set(re.findall(r"`tests/[\w/]+\.py::\w+`", text))) > 40


def listed(index):
    """Pages that the toctrees of a page list."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", index, re.M | re.S)
    return [line for tree in trees for line in tree.splitlines() if line and line[0] != ":"]


def test_the_index_lists_every_page():
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    names = {page.relative_to(ROOT / "docs").with_suffix("").as_posix() for page in PAGES} - {
        "index"
    }
    assert names - set(listed(index)) == set()


def test_the_readme_is_one_screen_and_a_bit():
    lines = README.read_text("utf-8").splitlines()
    assert len(lines) <= 190
    picture = re.search(r"^!\[[^\]]+\]\((docs/run\.svg)\)$", "\n".join(lines[:45]), re.M)
    assert picture is not None
    assert (ROOT / picture[1]).stat().st_size < 150_000
    # the commands that .ci/run takes from there
    for heading in ("## Install and run", "## Install and test"):
        assert lines[lines.index(heading) :].index("```sh") < 8


def test_no_page_borrows_from_the_readme():
    assert [page.name for page in PAGES if "{include} ../README" in page.read_text("utf-8")] == []


def test_the_demo_prints_and_draws_what_is_shown(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--plot", "demo.png"]) == 0
    printed = capsys.readouterr().out
    for page in (README, ROOT / "docs" / "commands.md"):
        assert f"```text\n{printed}```" in page.read_text("utf-8")
    # the committed picture is of the same run
    drawn = "".join(ET.parse(ROOT / "docs" / "run.svg").getroot().itertext())
    verdict = re.search(r"stop after \d+ bounds:.*?\)", " ".join(printed.split()))
    assert verdict is not None
    assert verdict[0] in " ".join(drawn.split())  # both in lines of their own
    assert "the model at the stop: 24 of 50 labels" in drawn


def drawing(path):
    """Texts of an SVG picture, and the corners of all that it draws."""
    root = ET.parse(path).getroot()
    texts = [" ".join(one.split()) for one in root.itertext() if one.strip()]
    numbers = []
    for one in root.iter():
        kind = one.tag.rpartition("}")[2]
        if kind == "path":
            numbers.append([float(number) for number in re.findall(r"-?\d+\.?\d*", one.get("d"))])
        elif kind == "use":
            numbers.append([float(one.get(name, 0)) for name in "xy"])
    return texts, numbers


def differences(ours, theirs):
    """What two pictures do not share; corners may differ by a twentieth of a point."""
    (texts, corners), (other_texts, others) = ours, theirs
    wrong = sorted(set(texts) ^ set(other_texts))
    if [len(one) for one in corners] != [len(one) for one in others]:
        return [*wrong, "other shapes"]
    apart = max(
        abs(a - b)
        for one, other in zip(corners, others, strict=True)
        for a, b in zip(one, other, strict=True)
    )
    return [*wrong, f"corners are {apart:g} apart"] if apart > 0.05 else wrong


def test_the_picture_of_the_readme_is_what_the_script_draws(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("draw_run", ROOT / "docs" / "draw_run.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PICTURE == ROOT / "docs" / "run.svg"
    assert script.draw(tmp_path / "run.svg") == 0
    made, kept = drawing(tmp_path / "run.svg"), drawing(script.PICTURE)
    drawn_by = next(text for text in kept[0] if text.startswith("Matplotlib v"))
    if drawn_by not in made[0]:  # releases differ in where they put the ticks
        pytest.skip(f"the picture was drawn by {drawn_by.partition(',')[0]}")
    made[0][:] = [text for text in made[0] if not re.match(r"\d{4}-\d\d-\d\dT", text)]  # today
    kept[0][:] = [text for text in kept[0] if not re.match(r"\d{4}-\d\d-\d\dT", text)]
    assert len(kept[1]) > 100
    assert differences(made, kept) == []
    # planted: another text, one corner moved, a shape too many
    assert differences((["x"], made[1]), (["y"], made[1])) == ["x", "y"]
    moved = [[made[1][0][0] + 1, *made[1][0][1:]], *made[1][1:]]
    assert differences((made[0], moved), made) == ["corners are 1 apart"]
    assert differences((made[0], [*made[1], [0.0]]), made) == ["other shapes"]


def test_every_public_name_is_in_the_reference():
    text = "".join(
        page.read_text("utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.rst"))
    )
    documented = re.findall(r"^\.\. auto(?:class|function):: fastal\.(\w+)$", text, re.M)
    assert sorted(documented) == sorted(fastal._HOME)


def test_the_checks_can_fail():
    assert unknown_names("`fastal.bound.gp_kl` `fastal.bound.nothing` `fastal.nowhere.gp_kl`") == [
        "fastal.bound.nothing",
        "fastal.nowhere.gp_kl",
    ]
    names = "`tests/package/test_docs.py::test_there_are_pages` `tests/package/test_docs.py::test_there` `tests/test_no.py::test_a`"
    assert unknown_tests(names) == [
        "tests/package/test_docs.py::test_there",
        "tests/test_no.py::test_a",
    ]
    links = "# A page\n## 1. Two, three\n[a](#1-two-three) [b](#2) [c](paper.md#nothing) [d](no.md) [e](https://x.y)\n```sh\n# 2\n```\n"
    assert broken_links(links, ROOT / "docs") == ["#2", "paper.md#nothing", "no.md"]
    addresses = "[a](https://pypi.org/project/shtab/) http://pypi.org https://pypi https://pypi..org/a https://pypi.org/a."
    assert malformed_links(addresses) == [
        "http://pypi.org",
        "https://pypi",
        "https://pypi..org/a",
        "https://pypi.org/a.",
    ]
    table = "| you have | read |\n|---|---|\n| **one** of them | [a](a.md), [b](b.md#c) |\n| two | [d](d.md) |\n"
    assert paths(table, ROOT) == {"one": [ROOT / "a.md", ROOT / "b.md"]}
    tree = "listed\n```{toctree}\n:caption: Guides\n\npaper\napi/jit\n```\n\nlimits\n"
    assert listed(tree) == ["paper", "api/jit"]
