import os

from hypothesis import settings

# ci: the same examples on every run, so that a red run means a change. fuzz: `.ci/run --long`.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("fuzz", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
