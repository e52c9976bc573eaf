"""Any network's last layer: its hidden units are the features, fastal says when to stop.

A small network is trained on what is labelled so far. Its last hidden layer, frozen, feeds a
BayesianLogistic, which chooses digits and gives the bounds. When the labels have grown by a half,
the network is trained again: features change, so all bounds are computed anew under the new ones.
"""

from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

from fastal import BayesianLogistic, StillToCome

torch.manual_seed(0)
torch.set_num_threads(1)
X, y = load_digits(return_X_y=True)
X = X / 16
pool, rest = np.arange(300), np.arange(300, 900)
HIDDEN = 16


def train(rows: list[int]) -> Any:
    """Return a network of one hidden layer, trained on some rows."""
    hidden = torch.nn.Sequential(torch.nn.Linear(64, HIDDEN), torch.nn.Tanh())
    network = torch.nn.Sequential(hidden, torch.nn.Linear(HIDDEN, 10))
    inputs = torch.tensor(X[rows], dtype=torch.float32)
    classes = torch.tensor(y[rows])
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02, weight_decay=1e-3)
    for _ in range(150):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(inputs), classes).backward()
        optimiser.step()
    return hidden


def features(hidden: Any, rows: Any) -> Any:
    """Return the last hidden layer, and a one for the intercept."""
    with torch.no_grad():
        units = hidden(torch.tensor(X[rows], dtype=torch.float32)).numpy()
    return np.column_stack((units.astype(float), np.ones(len(rows))))


initial = 20
labelled = np.random.default_rng(0).permutation(pool)[:initial].tolist()
stopper = StillToCome(0.2, horizon=len(pool) - initial)
while not stopper.stopped and len(labelled) < len(pool):
    hidden = train(labelled)
    model = BayesianLogistic(HIDDEN + 1, 10, prior=4.0)
    bounds = model.add_batch(features(hidden, labelled), y[labelled])
    stopper.after_refit(bounds[initial:])
    # as many labels as make half again, with these features
    more = 0 if stopper.stopped else min(len(labelled) // 2, len(pool) - len(labelled))
    for _ in range(more):
        left = np.setdiff1d(pool, labelled)
        p = np.sort(model.predict_proba(features(hidden, left)), axis=1)
        row = left[np.argmin(p[:, -1] - p[:, -2])]
        stopper.push(model.add(features(hidden, [row])[0], y[row]))
        labelled.append(int(row))

print(stopper.verdict)
print(f"stopped: {stopper.stopped}, {len(labelled)} of {len(pool)} labels")
right = (model.predict(features(hidden, rest)) == y[rest]).mean()
print(f"of {len(rest)} other digits {right:.0%} are read correctly")
