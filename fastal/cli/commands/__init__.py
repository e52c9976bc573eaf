"""One module per command; each adds its own parser."""
