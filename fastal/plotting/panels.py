"""What pictures of bounds share: panels, scales, markers, and the verdict above."""

from __future__ import annotations

import textwrap
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fastal._types import Array
from fastal.plotting.style import STOP

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.transforms import Bbox

    from fastal.stopping.verdict import Verdict

# Also in a dark style, which these colours are not made for.
PAPER: dict[str, Any] = {"facecolor": "white", "labelcolor": STOP}

GAP = 0.04  # of the height, between two panels

EXTREME = 1e150  # matplotlib computes ranges and ratios, which overflow for larger numbers

MANY = 1000  # bounds; a line between more of them would be a blot


def split(ax: Axes, *shares: float) -> list[Axes]:
    """Move axes to the upper part of their place, and make panels of the same x axis below.

    Parameters
    ----------
    ax : matplotlib axes
        The upper panel.
    *shares : float
        Share of the height of each panel below, from above, with the gap over it.

    Returns
    -------
    list of matplotlib axes
        The panels below, from above. In ``ax.child_axes`` the lowest comes first.
    """
    if ax.get_axes_locator() is None or isinstance(ax.get_axes_locator(), _UpperPart):
        ax.set_axes_locator(_UpperPart(ax, sum(shares)))
    upper = 1 - sum(shares)
    panels: list[Axes] = []
    for count in range(len(shares), 0, -1):
        height = (shares[count - 1] - GAP) / upper
        panel = ax.inset_axes((0.0, -sum(shares[:count]) / upper, 1.0, height))
        # Not a shared axis: its limits would outlive `ax.clear()`.
        ax.callbacks.connect("xlim_changed", partial(_follow, panel))
        panels.insert(0, panel)
    return panels


def _follow(lower: Axes, upper: Axes) -> None:
    lower.set_xlim(upper.get_xlim())


class _UpperPart:
    """Locates the panel of the bounds in the place that the axes have in the figure."""

    def __init__(self, ax: Axes, below: float) -> None:
        self._ax = ax
        self._below = below

    def __call__(self, ax: Any, renderer: RendererBase | None) -> Bbox:
        from matplotlib.transforms import Bbox

        # The place before any locator: what is drawn again must not shrink again.
        place = ax.get_position(original=True)
        bottom = place.y0 + self._below * place.height
        return Bbox.from_extents(place.x0, bottom, place.x1, place.y1)

    def get_subplotspec(self) -> Any:
        """Return what the tight layout asks a locator for."""
        return self._ax.get_subplotspec()


def finish(panels: list[Axes], count: int, stop: int | None, label: str = "bounds") -> None:
    """Mark the stop in all panels, give them one x axis, and say so if there are no bounds.

    Parameters
    ----------
    panels : list of matplotlib axes
        From above; the first has the bounds.
    count : int
        Number of bounds.
    stop : int or None
        Number of bounds at the stop.
    label : str
        Of the x axis.
    """
    from matplotlib.ticker import MaxNLocator

    for ax in panels:
        if stop is not None:
            ax.axvline(stop, color=STOP, linewidth=1.4, label="stop", gid="stop", zorder=1.6)
        ax.grid(False)
        ax.set_facecolor(PAPER["facecolor"])
    for ax in panels[:-1]:
        ax.tick_params(labelbottom=False)
    for ax in panels:
        ax.set_xlim(0.5, max(count, 2) + 0.5)
        # Long numbers need room: fewer of them.
        bins: Any = "auto" if count < 10_000 else 6
        ax.xaxis.set_major_locator(MaxNLocator(bins, integer=True, steps=[1, 2, 5, 10]))
    panels[-1].set_xlabel(label)
    if not count:
        note(panels[0], "no bounds yet")


def note(ax: Axes, text: str) -> None:
    """Put a text into the middle of empty axes.

    Parameters
    ----------
    ax : matplotlib axes
        The axes.
    text : str
        What to say.
    """
    ax.text(0.5, 0.5, text, color=STOP, ha="center", va="center", transform=ax.transAxes)


def marker_size(count: int) -> float:
    """Return the size in points at which so many markers can still be told apart.

    Parameters
    ----------
    count : int
        Number of markers.

    Returns
    -------
    float
        From 1 to 5.5.
    """
    return float(np.clip(100 / np.sqrt(count + 1), 1.0, 5.5))


def say(verdict: Verdict, ax: Axes, pixels: float, size: float) -> None:
    """Put a verdict with its warnings above the axes, in lines that fit a width.

    Where no layout makes room for them, the letters become smaller until the lines fit below the
    upper edge of the figure.

    Parameters
    ----------
    verdict : Verdict
        What to say.
    ax : matplotlib axes
        The axes.
    pixels : float
        The width.
    size : float
        Of the letters, in points.
    """
    sentences = [str(verdict)]
    # what the verdict itself says is not said twice
    if warnings := [warning for warning in verdict.warnings if warning not in sentences[0]]:
        sentences.append(f"warning: {'; '.join(warnings)}")
    points = 72 / ax.figure.dpi
    room = np.inf
    if ax.figure.get_layout_engine() is None:
        room = (ax.figure.bbox.y1 - ax.get_window_extent().y1) * points - 6.0  # the title's pad
    while True:
        text = "\n".join(fill(sentence, ax, pixels, size) for sentence in sentences)
        if size <= 6 or 1.2 * size * (text.count("\n") + 1) <= room:
            break
        size -= 0.5
    ax.set_title(text, fontsize=size, loc="left")


def fill(text: str, ax: Axes, pixels: float, size: float) -> str:
    """Return a text in lines that fit a width.

    Parameters
    ----------
    text : str
        The text.
    ax : matplotlib axes
        Where it will stand.
    pixels : float
        The width.
    size : float
        Of the letters, in points.

    Returns
    -------
    str
        The text with line breaks.
    """
    letters = 72 * pixels / ax.figure.dpi / (0.58 * size)
    return textwrap.fill(text, max(20, int(letters)))


def width_of(ax: Axes) -> float:
    """Return about how wide axes in a given place will be, in pixels.

    Parameters
    ----------
    ax : matplotlib axes
        The axes.

    Returns
    -------
    float
        Their width; where a layout will move them, an estimate from below.
    """
    now = ax.get_window_extent().width
    if ax.figure.get_layout_engine() is None:
        return now
    # Of the 77.5 % that margins leave by default a layout makes all but the room for labels.
    return max(0.85 * now, 0.98 * now / 0.775 - 0.8 * ax.figure.dpi)


NARROW = 2.8  # inches


def scale_of(bounds: Array) -> tuple[dict[str, Any], Callable[[Array], Array]]:
    """Choose a scale that suits bounds.

    Parameters
    ----------
    bounds : array
        The bounds.

    Returns
    -------
    scale : dict
        Arguments of ``ax.set_yscale``.
    drawable : callable
        What brings extreme values to the ends of the scale.
    """
    if (bounds > 0).all():
        return {"value": "log"}, lambda r: np.clip(r, 1 / EXTREME, EXTREME)
    sizes = np.clip(np.abs(bounds[bounds != 0]), 1 / EXTREME, EXTREME)
    # On a linear scale all but the largest bounds would look like zero if they are so unlike.
    if len(sizes) and sizes.max() > 100 * np.median(sizes):
        scale: dict[str, Any] = {"value": "symlog", "linthresh": float(np.quantile(sizes, 0.05))}
    else:
        scale = {"value": "linear"}
    return scale, lambda r: np.clip(r, -EXTREME, EXTREME)


def halo() -> list[Any]:
    """Return what keeps a text or a line legible where it crosses others.

    Returns
    -------
    list
        Path effects.
    """
    from matplotlib.patheffects import Normal, Stroke

    return [Stroke(linewidth=2.5, foreground="white"), Normal()]
