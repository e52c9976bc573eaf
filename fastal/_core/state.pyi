# Only for other compiled modules: see state.pxd.
