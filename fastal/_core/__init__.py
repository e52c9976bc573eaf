"""The compiled core: validates nothing, allocates as little as it can, raises nothing."""
