"""Scripts whose figures stand in the documentation; none of them is a benchmark."""
