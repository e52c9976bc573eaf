"""small-text queries; a criterion of fastal says when predictions have stopped changing."""

import numpy as np
from scipy.sparse import csr_matrix
from small_text import (
    ConfidenceEnhancedLinearSVC,
    PoolBasedActiveLearner,
    RandomSampling,
    SklearnClassifierFactory,
    SklearnDataset,
)

from fastal.adapters.loops.small_text import stopping_criterion
from fastal.criteria import StabilizingPredictions

rng = np.random.default_rng(0)
truth = rng.integers(0, 2, 400)
words = rng.poisson(0.3 + 1.5 * (truth[:, None] == np.arange(30) % 2))  # counts of 30 words
dataset = SklearnDataset(csr_matrix(words.astype(float)), truth, target_labels=np.arange(2))

factory = SklearnClassifierFactory(ConfidenceEnhancedLinearSVC(), 2)
learner = PoolBasedActiveLearner(factory, RandomSampling(), dataset)
first = np.arange(10)
learner.initialize_data(first, truth[first])

own = StabilizingPredictions(cutoff=0.98, window=3)
rule = stopping_criterion(own)
asked = len(first)
while asked < 400:
    indices = learner.query(num_samples=10)
    learner.update(truth[indices])  # here a person would answer
    asked += len(indices)
    if rule.stop(predictions=learner.classifier.predict(dataset)):
        break
print(f"stopped: {own.stopped}, with {asked} of 400 labels")
