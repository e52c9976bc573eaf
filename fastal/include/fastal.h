/* The decision of fastal for C and C++: the bound of one label, when to stop, and the distribution
 * of the number of runs. Plain C types; nothing needs the GIL, nothing raises.
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
 */
#ifndef FASTAL_H
#define FASTAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when something that is here today changes. What is new comes at the end of fastal_api. */
#define FASTAL_ABI_VERSION 3

/* What functions return. After every negative status all is as it was. */
#define FASTAL_OK 0             /* done; of a push: go on */
#define FASTAL_STOP 1           /* of a push: it has stopped, at this bound or before */
#define FASTAL_NO_MEMORY (-1)
#define FASTAL_NOT_FINITE (-2)  /* a number is NaN or infinite, or the bound would be */
#define FASTAL_NULL (-3)        /* NULL where something must be, or there is no such stream */
#define FASTAL_NEGATIVE (-4)    /* a negative bound, variance, or a noise that is not positive */
#define FASTAL_BAD_SETTING (-5) /* a setting outside of what it may be */

/* How a tail is computed, and what counts as evidence. */
#define FASTAL_AUTO 0
#define FASTAL_EXACT 1
#define FASTAL_NORMAL 2
#define FASTAL_LESS 0
#define FASTAL_GREATER 1
#define FASTAL_TWO_SIDED 2

/* n streams of bounds under one rule, 0 to n - 1. They belong to one thread at a time, and are freed
 * once. */
typedef struct fastal_streams fastal_streams;

typedef struct fastal_api {
    int64_t abi_version;
    int64_t size;       /* of this struct */

    /* r = KL between the posteriors before and after one label (Eq. 7 without C); all of before it */
    int (*bound)(double mean, double var, double y, double noise, double *r);

    /* The runs test (Stopper): alpha in (0, 1), the level of one look; fall: 1 if a rejection counts
     * only if the bounds fell, else 0; n streams, at least 1. */
    int (*streams_new_runs)(double alpha, int method, int fall, int64_t n, fastal_streams **made);
    /* What is still to come (MovementBelow): stop when it is at most a share, in (0, 1), of all
     * movement; horizon: how many bounds a stream can have, at least 1. */
    int (*streams_new_movement)(double share, int64_t horizon, int64_t n, fastal_streams **made);
    int (*streams_push)(fastal_streams *streams, int64_t i, double r);
    /* bounds at the stop of stream i, 0 before it, or FASTAL_NULL */
    int64_t (*streams_stopped_at)(const fastal_streams *streams, int64_t i);
    /* share that is still to come; NaN before 10 bounds, for the runs test, and without a stream */
    double (*streams_left)(fastal_streams *streams, int64_t i);
    int (*streams_reset)(fastal_streams *streams, int64_t i);   /* forget the bounds of stream i */
    void (*streams_free)(fastal_streams *streams);              /* or NULL */

    /* Of the number of runs U of n0 and n1 things in random order: P(U = u), P(U <= u), P(U > u), and
     * the p-value of u runs; NaN for counts below 0 or above 2^52, or no such way to compute it. */
    double (*runs_pmf)(int64_t u, int64_t n0, int64_t n1);
    double (*runs_cdf)(int64_t u, int64_t n0, int64_t n1);
    double (*runs_sf)(int64_t u, int64_t n0, int64_t n1);
    double (*runs_p_value)(int64_t u, int64_t n0, int64_t n1, int alternative, int method);
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
