# Where a double lies in a hash table. Whole numbers differ in the high bits of the double only,
# their folded product in all. Once folded, a lattice still lies on a few: it is folded twice.

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    /* The two halves of the 128-bit product a b, one laid over the other. */
    static inline uint64_t fastal_folded_product(uint64_t a, uint64_t b)
    {
    #if defined(__SIZEOF_INT128__)
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    #else
        uint64_t low = (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
        uint64_t first = (a >> 32) * (b & 0xFFFFFFFF) + (low >> 32);
        uint64_t second = (a & 0xFFFFFFFF) * (b >> 32) + (first & 0xFFFFFFFF);
        uint64_t high = (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32);
        return ((second << 32) | (low & 0xFFFFFFFF)) ^ high;
    #endif
    }
    """
    uint64_t folded_product "fastal_folded_product"(uint64_t a, uint64_t b) noexcept nogil


cdef inline uint64_t folded_twice(double value, uint64_t secret, uint64_t factor) noexcept nogil:
    cdef uint64_t bits
    memcpy(&bits, &value, sizeof(double))
    # the last factor is 2^64 over the golden ratio
    return folded_product(folded_product(bits ^ secret, factor) ^ factor, 0x9E3779B97F4A7C15)
