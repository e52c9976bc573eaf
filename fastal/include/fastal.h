/* The decision of fastal for C and C++: the bound of one label, the runs test of a growing sequence
 * of bounds, and what is still to come. Plain C types; nothing needs the GIL, nothing raises.
 *
 * In an extension module of Python, include Python.h first:
 *
 *     #include <Python.h>
 *     #include <fastal.h>
 *     static const fastal_api *fastal;
 *     ...
 *     fastal = fastal_import();             (in the module's init function; NULL: an exception is set)
 *
 * Code that knows no Python includes fastal.h alone and is given the pointer by code that does.
 * fastal.get_include() names the folder of this file.
 *
 * An object belongs to one thread at a time, and is freed once. A function that is given NULL for an
 * object, or for a result, returns FASTAL_NULL. After every negative status all is as it was.
 */
#ifndef FASTAL_H
#define FASTAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when something that is here today changes. What is new comes at the end of fastal_api. */
#define FASTAL_ABI_VERSION 2

/* What functions return. */
#define FASTAL_OK 0             /* done; of a push: go on */
#define FASTAL_STOP 1           /* of a push: it has stopped, at this bound or before */
#define FASTAL_NO_MEMORY (-1)
#define FASTAL_NOT_FINITE (-2)  /* a number is NaN or infinite, or the bound would be */
#define FASTAL_NULL (-3)
#define FASTAL_NEGATIVE (-4)    /* a negative bound, variance, or a noise that is not positive */
#define FASTAL_BAD_SETTING (-5) /* a setting outside of what it may be */

/* How a tail is computed, and what counts as evidence. */
#define FASTAL_AUTO 0
#define FASTAL_EXACT 1
#define FASTAL_NORMAL 2
#define FASTAL_LESS 0
#define FASTAL_GREATER 1
#define FASTAL_TWO_SIDED 2

typedef struct fastal_runs fastal_runs;   /* the runs test of a growing sequence: Stopper */
typedef struct fastal_still fastal_still; /* what is still to come: StillToCome */

typedef struct fastal_runs_settings {
    double alpha;       /* level of one look, in (0, 1) */
    int64_t window;     /* test the last so many bounds, at least 2; 0: all */
    int64_t min_bounds; /* no stop before */
    int64_t patience;   /* rejections in a row that stop, at least 1 */
    int32_t method;
    int32_t alternative;
    int32_t fall;       /* 1: a rejection counts only if the bounds fell (FASTAL_LESS only); or 0 */
    int32_t reserved;   /* 0 */
} fastal_runs_settings;

/* The rule of the paper: fastal_runs_settings settings = FASTAL_RUNS_DEFAULTS; */
#define FASTAL_RUNS_DEFAULTS { 1e-3, 0, 0, 1, FASTAL_AUTO, FASTAL_LESS, 1, 0 }

typedef struct fastal_runs_state {
    int64_t n_bounds;   /* all that were pushed */
    int64_t stopped_at; /* bounds at the stop; 0: none yet */
    int64_t n_runs;     /* these are the window's */
    int64_t n_below;
    int64_t n_above;
    double median;      /* NaN without bounds */
    double p_value;     /* 1 with fewer than two */
    int32_t fell;
    int32_t reserved;
} fastal_runs_state;

typedef struct fastal_still_state {
    int64_t n_bounds;
    int64_t stopped_at;
    double left;        /* share of all movement up to the horizon that is still to come, or NaN */
    double level;       /* how much less a label moves the model than at the peak, or NaN */
} fastal_still_state;

typedef struct fastal_api {
    int64_t abi_version;
    int64_t size;       /* of this struct */

    /* r = KL between the posteriors before and after one label (Eq. 7 without C); all of before it */
    int (*bound)(double mean, double var, double y, double noise, double *r);

    int (*runs_new)(const fastal_runs_settings *settings, fastal_runs **made);
    int (*runs_push)(fastal_runs *runs, double r);
    int (*runs_query)(fastal_runs *runs, fastal_runs_state *state);
    int (*runs_reset)(fastal_runs *runs);
    void (*runs_free)(fastal_runs *runs);

    /* share in (0, 1); horizon: how many bounds there can be, at least 1; window: at least 2, or 0
     * for a fifth of the bounds, 10 to 20 */
    int (*still_new)(double share, int64_t horizon, int64_t window, fastal_still **made);
    int (*still_push)(fastal_still *still, double r);
    int (*still_query)(fastal_still *still, fastal_still_state *state);
    int (*still_reset)(fastal_still *still);
    void (*still_free)(fastal_still *still);
} fastal_api;

#ifdef Py_PYTHON_H
/* Imports fastal and returns its functions; NULL with an ImportError if they do not fit this file.
 * Needs the GIL. */
static inline const fastal_api *fastal_import(void)
{
    const fastal_api *api = NULL;
    PyObject *capsule = NULL;
    PyObject *module = PyImport_ImportModule("fastal._core.capi");
    if (module == NULL) {
        return NULL;
    }
    capsule = PyObject_GetAttrString(module, "API");
    Py_DECREF(module);
    if (capsule == NULL) {
        return NULL;
    }
    api = (const fastal_api *)PyCapsule_GetPointer(capsule, "fastal._core.capi.API");
    Py_DECREF(capsule); /* the module keeps it */
    if (api == NULL) {
        return NULL;
    }
    if (api->abi_version != FASTAL_ABI_VERSION || api->size < (int64_t)sizeof(fastal_api)) {
        PyErr_Format(PyExc_ImportError,
                     "fastal has version %d of its C interface with %d bytes, this extension was "
                     "built for version %d with %d: build it anew",
                     (int)api->abi_version, (int)api->size, FASTAL_ABI_VERSION,
                     (int)sizeof(fastal_api));
        return NULL;
    }
    return api;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
