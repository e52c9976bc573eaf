# Only for other compiled modules: see looks.pxd.
