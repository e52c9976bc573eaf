// The runs test of fastal in C++: an object that frees itself.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fastal.h>

#include <memory>
#include <stdexcept>
#include <string>

static const fastal_api *fastal;

class Runs {
public:
    explicit Runs(const fastal_runs_settings &settings)
    {
        fastal_runs *made = nullptr;
        check(fastal->runs_new(&settings, &made));
        runs_.reset(made);
    }

    bool push(double r) { return check(fastal->runs_push(runs_.get(), r)) == FASTAL_STOP; }

    fastal_runs_state state() const
    {
        fastal_runs_state found;
        check(fastal->runs_query(runs_.get(), &found));
        return found;
    }

private:
    struct Free {
        void operator()(fastal_runs *runs) const { fastal->runs_free(runs); }
    };

    static int check(int status)
    {
        if (status < 0) {
            throw std::runtime_error("fastal: status " + std::to_string(status));
        }
        return status;
    }

    std::unique_ptr<fastal_runs, Free> runs_;
};

// follow(bounds, alpha) -> bounds at the stop (0: none), runs, p-value
static PyObject *follow(PyObject *, PyObject *args)
{
    Py_buffer bounds;
    fastal_runs_settings settings = FASTAL_RUNS_DEFAULTS;
    PyObject *result = nullptr;
    if (!PyArg_ParseTuple(args, "y*d", &bounds, &settings.alpha)) {
        return nullptr;
    }
    try {
        Runs runs(settings);
        const double *values = static_cast<const double *>(bounds.buf);
        for (Py_ssize_t t = 0; t < bounds.len / static_cast<Py_ssize_t>(sizeof(double)); t++) {
            if (runs.push(values[t])) {
                break;
            }
        }
        const fastal_runs_state state = runs.state();
        result = Py_BuildValue("(LLd)", static_cast<long long>(state.stopped_at),
                               static_cast<long long>(state.n_runs), state.p_value);
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
