// The runs test of fastal in C++: an object that frees itself.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fastal.h>

#include <memory>
#include <stdexcept>
#include <string>

static const fastal_api *fastal;

// One stream under the runs test: exact where that is cheap, and a stop only where bounds fell.
class Runs {
public:
    explicit Runs(double alpha)
    {
        fastal_streams *made = nullptr;
        check(fastal->streams_new_runs(alpha, FASTAL_AUTO, 1, 1, &made));
        streams_.reset(made);
    }

    bool push(double r) { return check(fastal->streams_push(streams_.get(), 0, r)) == FASTAL_STOP; }

    long long stopped_at() const { return fastal->streams_stopped_at(streams_.get(), 0); }

private:
    struct Free {
        void operator()(fastal_streams *streams) const { fastal->streams_free(streams); }
    };

    static int check(int status)
    {
        if (status < 0) {
            throw std::runtime_error("fastal: status " + std::to_string(status));
        }
        return status;
    }

    std::unique_ptr<fastal_streams, Free> streams_;
};

// follow(bounds, alpha) -> bounds at the stop (0: none)
static PyObject *follow(PyObject *, PyObject *args)
{
    Py_buffer bounds;
    double alpha;
    PyObject *result = nullptr;
    if (!PyArg_ParseTuple(args, "y*d", &bounds, &alpha)) {
        return nullptr;
    }
    try {
        Runs runs(alpha);
        const double *values = static_cast<const double *>(bounds.buf);
        for (Py_ssize_t t = 0; t < bounds.len / static_cast<Py_ssize_t>(sizeof(double)); t++) {
            if (runs.push(values[t])) {
                break;
            }
        }
        result = PyLong_FromLongLong(runs.stopped_at());
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_ValueError, error.what());
    }
    PyBuffer_Release(&bounds);
    return result;
}

static PyMethodDef methods[] = {
    {"follow", follow, METH_VARARGS, "Push bounds until the runs test stops."},
    {nullptr, nullptr, 0, nullptr},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "cpp_caller", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr,
};

PyMODINIT_FUNC PyInit_cpp_caller(void)
{
    fastal = fastal_import();
    return fastal == nullptr ? nullptr : PyModule_Create(&module);
}
