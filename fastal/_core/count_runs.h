/* Runs of values below and not below a cut, and the sum of the places, from 0, of those below: one
 * pass, four values at once where the processor can. */
#include <stdint.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && defined(__OPTIMIZE__) \
    && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
__attribute__((target_clones("avx2", "default")))
#endif
static void count_runs(const double *r, int64_t n, double at, int64_t *runs, int64_t *places)
{
    int64_t i, changes = 0, sum = 0;
    for (i = 1; i < n; i++) {
        int64_t low = r[i] < at ? -1 : 0, before = r[i - 1] < at ? -1 : 0;
        changes -= low ^ before;
        sum += i & low;
    }
    *runs = 1 + changes;
    *places = sum;
}
