"""A pool whose rows live on the workers of a Dask cluster, and the selection over it.

`pool.DaskPool` stands in for the array of points, `selection.DaskSelection` is the `Selection` over
it, `rows.WorkerRows` what a worker holds. Only these import Dask, when they are needed.
"""
