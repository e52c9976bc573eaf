"""One module per picture; reached from .plot() and the command line only, and needs matplotlib."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.plotting.bound_gap import plot_tightness as plot_tightness
    from fastal.plotting.bound_gap import tightness_figure as tightness_figure
    from fastal.plotting.criterion import plot_criterion as plot_criterion
    from fastal.plotting.criterion import plot_member as plot_member
    from fastal.plotting.demo import plot_demo as plot_demo
    from fastal.plotting.demo import save_demo as save_demo
    from fastal.plotting.figure_one import figure1 as figure1
    from fastal.plotting.figure_one import plot_errors as plot_errors
    from fastal.plotting.predictions import plot_predictions as plot_predictions
    from fastal.plotting.refits import plot_refits as plot_refits
    from fastal.plotting.refits import refits_in_words as refits_in_words
    from fastal.plotting.refits import save_refits as save_refits
    from fastal.plotting.run import plot_run as plot_run
    from fastal.plotting.run import save_run as save_run
    from fastal.plotting.run import share_left as share_left
    from fastal.plotting.simulation import plot_simulation as plot_simulation
    from fastal.plotting.still import plot_still as plot_still
    from fastal.plotting.still import save_still as save_still
    from fastal.plotting.stopper import plot_stopper as plot_stopper
    from fastal.plotting.stopper import save_stopper as save_stopper
    from fastal.plotting.style import ABOVE as ABOVE
    from fastal.plotting.style import BELOW as BELOW
    from fastal.plotting.style import MEAN as MEAN
    from fastal.plotting.style import OUTSIDE as OUTSIDE
    from fastal.plotting.style import STOP as STOP
    from fastal.plotting.style import file_formats as file_formats
    from fastal.plotting.style import require_matplotlib as require_matplotlib

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "style": "ABOVE BELOW MEAN OUTSIDE STOP file_formats require_matplotlib",
        "criterion": "plot_criterion plot_member",
        "stopper": "plot_stopper save_stopper",
        "still": "plot_still save_still",
        "run": "plot_run save_run share_left",
        "refits": "plot_refits refits_in_words save_refits",
        "predictions": "plot_predictions",
        "demo": "plot_demo save_demo",
        "simulation": "plot_simulation",
        "figure_one": "figure1 plot_errors",
        "bound_gap": "plot_tightness tightness_figure",
    },
)
