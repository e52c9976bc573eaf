# Only for other compiled modules: see still.pxd.
