"""Tables that ship with fastal, and the scripts that made them."""
