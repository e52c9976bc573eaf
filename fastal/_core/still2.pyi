# Only for other compiled modules: see still2.pxd.
