# The bound of one label. Plain C types; nothing needs the GIL, nothing raises.

# r_t without C; -1 for what is no posterior: not finite, negative variance, noise not positive; inf
# if it overflows.
cdef double bound_of(double mean, double var, double y, double noise) noexcept nogil

# 1/2 var d^2 / (noise (var + noise)), of which only the result can leave the range of doubles.
cdef double square_term(double var, double noise, double d) noexcept nogil
