"""Print what `.ci/run --oldest` and `.ci/run --newest` install, as pyproject.toml says it.

`python .ci/versions.py oldest EXTRA...` prints the lower bounds, of what builds the package too, as
requirements; `newest` prints the names without bounds. An extra with a minus is left out.
"""

import re
import sys
import tomllib
from pathlib import Path

SETTINGS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]
REQUIREMENT = re.compile(r"([\w.-]+)(\[[\w,]+\])?([^\[\];]*)")


def expand(lines, left_out):
    """Yield name, extras and bounds of each requirement, with those of fastal's own extras."""
    for line in lines:
        name, extras, bounds = REQUIREMENT.fullmatch(line).groups("")
        if name == PROJECT["name"]:
            for extra in set(extras[1:-1].split(",")) - left_out:
                yield from expand(PROJECT["optional-dependencies"][extra], left_out)
        else:
            yield name, extras, bounds


def oldest(found):
    """Yield each requirement at its lower bound."""
    for name, extras, bounds in found:
        if re.match("[<!]", bounds):  # the lower bound stands in another line
            continue
        if not bounds.startswith(">="):
            raise SystemExit(f"pyproject.toml: {name} has no lower bound")
        yield f"{name}{extras}=={bounds[2:].partition(',')[0]}"


def newest(found):
    """Yield each requirement without bounds."""
    for name, extras, _ in found:
        yield name + extras


if __name__ == "__main__":
    left_out = {extra[1:] for extra in sys.argv[2:] if extra.startswith("-")}
    wanted = [extra for extra in sys.argv[2:] if not extra.startswith("-")]
    lines = [*PROJECT["dependencies"], *SETTINGS["build-system"]["requires"]]
    lines += [f"{PROJECT['name']}[{','.join(wanted)}]"]
    kind = {"oldest": oldest, "newest": newest}[sys.argv[1]]
    print(*sorted(set(kind(expand(lines, left_out)))), sep="\n")
