/* A loop in C that asks fastal after every label whether to go on. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fastal.h>

static const fastal_api *fastal;

/* The loop itself knows no Python and holds no GIL. */
static int campaign(const double *mean, const double *var, const double *y, int64_t n, double noise,
                    int64_t *stopped_at, double *left)
{
    fastal_streams *rule = NULL;
    double r;
    int64_t t;
    /* at most 5 % is still to come; one stream */
    int status = fastal->streams_new_movement(0.05, n, 1, &rule);
    for (t = 0; t < n && status == FASTAL_OK; t++) {
        status = fastal->bound(mean[t], var[t], y[t], noise, &r);
        if (status == FASTAL_OK) {
            status = fastal->streams_push(rule, 0, r);
        }
    }
    if (status >= 0) {
        *stopped_at = fastal->streams_stopped_at(rule, 0);
        *left = fastal->streams_left(rule, 0);
    }
    fastal->streams_free(rule); /* NULL is fine */
    return status;
}

static PyObject *follow(PyObject *self, PyObject *args)
{
    Py_buffer mean, var, y;
    double noise, left = 0;
    int64_t n, stopped_at = 0;
    int status = FASTAL_BAD_SETTING;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*d", &mean, &var, &y, &noise)) {
        return NULL;
    }
    n = (int64_t)(mean.len / (Py_ssize_t)sizeof(double));
    if (var.len == mean.len && y.len == mean.len) {
        Py_BEGIN_ALLOW_THREADS
        status = campaign(mean.buf, var.buf, y.buf, n, noise, &stopped_at, &left);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&mean);
    PyBuffer_Release(&var);
    PyBuffer_Release(&y);
    if (status < 0) {
        return PyErr_Format(PyExc_ValueError, "fastal: status %d", status);
    }
    return Py_BuildValue("(Ld)", (long long)stopped_at, left);
}

static PyMethodDef methods[] = {
    {"follow", follow, METH_VARARGS, "follow(mean, var, y, noise) -> bounds at the stop, share left"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "c_caller", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_c_caller(void)
{
    fastal = fastal_import();
    if (fastal == NULL) {
        return NULL; /* an ImportError is set */
    }
    return PyModule_Create(&module);
}
