"""A campaign with a person at the terminal: how warm is it where you live, week by week?

    python label_by_hand.py [campaign.json]

fastal asks for the week it knows least about, and says when further answers would hardly change the
picture. Every answer is saved at once. Leave with Ctrl-D or Ctrl-C; start again to go on.
"""

import json
import os
import sys

import numpy as np

from fastal import ActiveLearner, GaussianProcess, Stopper

WEEKS = np.arange(1, 53)


def load(path: str) -> ActiveLearner:
    """Go on where the file ends, or begin."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return ActiveLearner.from_dict(json.load(file), WEEKS)
    # Around 10 degrees, give or take 10; weeks 8 apart are much alike; answers are good to 1.5.
    gp = GaussianProcess(lengthscale=8.0, noise=1.5**2, amplitude=10.0**2, mean=10.0)
    return ActiveLearner(WEEKS, gp=gp, criterion=Stopper(alpha=0.01), seed=0)


def save(learner: ActiveLearner, path: str) -> None:
    """Replace the file as a whole: an interruption leaves the old one or the new one."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(learner.to_dict(), file)
    os.replace(path + ".new", path)


def answer(week: int) -> float:
    """Ask until the answer is a number."""
    while True:
        text = input(f"week {week}: how many degrees Celsius at noon, usually? ")
        try:
            value = float(text.replace(",", "."))
        except ValueError:
            value = np.nan
        if np.isfinite(value):
            return value
        print(f"  a number, please; {text!r} is none")


def main(path: str = "campaign.json") -> None:
    """Ask and save until fastal says stop, the weeks are used up or the person leaves."""
    learner = load(path)
    if learner.n_labels:
        print(f"going on after {learner.n_labels} answers in {path}")
    try:
        while not learner.finished:
            verdict = learner.tell(answer(WEEKS[learner.ask()]))
            save(learner, path)
            print(f"  {verdict}")
    except (EOFError, KeyboardInterrupt):
        print(f"\nnot stopped yet: {learner.n_labels} answers so far; start again to go on")
        return
    print(f"stopped: {learner.stopped}, with {learner.n_labels} of {len(WEEKS)} answers in {path}")
    for week, degrees in zip(WEEKS[::4], learner.model.predict(WEEKS[::4]), strict=True):
        print(f"  week {week:2}: {degrees:5.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
