/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filter: a copy of a filter for Python programs, over <bloomery/local.h>. It
 * uses the limited API of CPython 3.11, so one binary serves all later
 * versions.
 *
 * No Python code runs in the library's thread: there, a collection of garbage
 * could free another copy, and wait for the thread that it runs in. The
 * library's events go into a queue, from which a thread of Python takes them by
 * next_event().
 */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <bloomery/local.h>
#include <pthread.h>
#include <string.h>

/* Events that nobody has taken yet. When more come, the oldest is lost: a
 * thread of Python that is behind by so many will not miss it. */
enum { QUEUE_EVENTS = 64 };

/* For so long, Control-C is not noticed. */
enum { PART_MS = 100 };

struct event {
    uintptr_t filter; /* the number that Filter() was given */
    int kind;         /* enum bloomery_local_event */
    char text[BLOOMERY_LOCAL_TEXT_BYTES];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct event events[QUEUE_EVENTS];
    unsigned first, count;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER,
            .came = PTHREAD_COND_INITIALIZER };

static PyObject *error_type; /* bloomery.Error */
static PyObject *stale_type; /* bloomery.Stale */

/* clang-format off */
struct filter {
    PyObject_HEAD
    struct bloomery_local *local; /* NULL before Filter.__init__ */
};
/* clang-format on */

/* The child of a fork has no thread of the library, and nobody holds the lock.
 */
static void
queue_begin_anew(void)
{
    pthread_mutex_init(&queue.lock, NULL);
    pthread_cond_init(&queue.came, NULL);
    queue.first = queue.count = 0;
}

/* on_event of all copies; in the library's thread. */
static void
queue_event(void *context, enum bloomery_local_event kind, const char *text)
{
    struct event *event;

    pthread_mutex_lock(&queue.lock);
    if (queue.count == QUEUE_EVENTS) {
        queue.first = (queue.first + 1) % QUEUE_EVENTS;
        queue.count--;
    }
    event = &queue.events[(queue.first + queue.count) % QUEUE_EVENTS];
    queue.count++;
    event->filter = (uintptr_t)context;
    event->kind = (int)kind;
    strncpy(event->text, text, sizeof(event->text) - 1);
    event->text[sizeof(event->text) - 1] = '\0';
    pthread_cond_signal(&queue.came);
    pthread_mutex_unlock(&queue.lock);
}

/* What a server said need not be UTF-8. */
static PyObject *
text_to_str(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *
next_event(PyObject *module, PyObject *nothing)
{
    struct event event;
    PyObject *text;

    (void)module, (void)nothing;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0) {
        pthread_cond_wait(&queue.came, &queue.lock);
    }
    event = queue.events[queue.first];
    queue.first = (queue.first + 1) % QUEUE_EVENTS;
    queue.count--;
    pthread_mutex_unlock(&queue.lock);
    Py_END_ALLOW_THREADS
    text = text_to_str(event.text);
    if (text == NULL) {
        return NULL;
    }
    return Py_BuildValue("KiN", (unsigned long long)event.filter, event.kind,
                         text);
}

/* Raises bloomery.Error with TEXT, and CODE as its attribute. */
static void
raise_error(enum bloomery_local_code code, const char *text)
{
    PyObject *message = text_to_str(text), *error, *number;

    if (message == NULL) {
        return;
    }
    error = PyObject_CallFunctionObjArgs(error_type, message, NULL);
    Py_DECREF(message);
    if (error == NULL) {
        return;
    }
    number = PyLong_FromLong((long)code);
    if (number != NULL && PyObject_SetAttrString(error, "code", number) == 0) {
        PyErr_SetObject(error_type, error);
    }
    Py_XDECREF(number);
    Py_DECREF(error);
}

/* Gives the bytes of a str (as UTF-8) or bytes, which stay valid as long as
 * ITEM does: both are immutable. */
static int
item_bytes(PyObject *item, struct bloomery_local_item *ret)
{
    Py_ssize_t bytes;
    char *data;

    if (PyUnicode_Check(item)) {
        ret->data = PyUnicode_AsUTF8AndSize(item, &bytes);
        if (ret->data == NULL) {
            return -1;
        }
    } else if (PyBytes_Check(item)) {
        if (PyBytes_AsStringAndSize(item, &data, &bytes) < 0) {
            return -1;
        }
        ret->data = data;
    } else {
        PyErr_SetString(PyExc_TypeError, "an item is a str or bytes");
        return -1;
    }
    ret->bytes = (size_t)bytes;
    return 0;
}

static int
filter_is_open(struct filter *self)
{
    if (self->local == NULL) {
        PyErr_SetString(PyExc_ValueError, "the filter was not opened");
    }
    return self->local != NULL;
}

static PyObject *
answer_object(int answer)
{
    PyObject *object = answer == BLOOMERY_LOCAL_PRESENT  ? Py_True
                       : answer == BLOOMERY_LOCAL_ABSENT ? Py_False
                                                         : Py_None;

    Py_INCREF(object);
    return object;
}

/* Waits until the copy is loaded, in short parts: Control-C ends it. On failure
 * an exception is set, and the copy is closed. */
static int
filter_wait(struct filter *self, uint32_t left_ms)
{
    struct bloomery_local_status status = { .struct_size = sizeof(status) };
    enum bloomery_local_code code = BLOOMERY_LOCAL_LATE;

    while (code == BLOOMERY_LOCAL_LATE && left_ms > 0) {
        uint32_t part_ms = left_ms < PART_MS ? left_ms : PART_MS;

        Py_BEGIN_ALLOW_THREADS
        code = bloomery_local_wait(self->local, part_ms);
        Py_END_ALLOW_THREADS
        left_ms -= part_ms;
        if (PyErr_CheckSignals() < 0) {
            break;
        }
    }
    if (code == BLOOMERY_LOCAL_OK && PyErr_Occurred() == NULL) {
        return 0;
    }
    bloomery_local_status(self->local, &status);
    Py_BEGIN_ALLOW_THREADS
    bloomery_local_close(self->local);
    Py_END_ALLOW_THREADS
    if (PyErr_Occurred() == NULL) {
        raise_error(code, status.error_text[0] != '\0'
                              ? status.error_text
                              : bloomery_local_text(code));
    }
    return -1;
}

static int
filter_init(PyObject *object, PyObject *args, PyObject *names)
{
    struct bloomery_local_options options = { .struct_size = sizeof(options),
                                              .on_event = queue_event };
    struct bloomery_local_status status = { .struct_size = sizeof(status) };
    struct filter *self = (struct filter *)object;
    struct bloomery_local_item key;
    enum bloomery_local_code code;
    unsigned long long number, max_bytes;
    PyObject *key_object;
    uint32_t flags;

    (void)names;
    if (!PyArg_ParseTuple(
            args, "sOKIIIIKzzzzz", &options.url, &key_object, &number, &flags,
            &options.timeout_ms, &options.max_stale_ms, &options.refresh_ms,
            &max_bytes, &options.user, &options.password, &options.ca_file,
            &options.cert_file, &options.key_file) ||
        item_bytes(key_object, &key) < 0) {
        return -1;
    }
    if (self->local != NULL) {
        PyErr_SetString(PyExc_ValueError, "the filter is open");
        return -1;
    }
    options.key = key.data;
    options.key_bytes = key.bytes;
    options.max_bytes = max_bytes;
    options.flags = flags | BLOOMERY_LOCAL_NO_WAIT;
    options.context = (void *)(uintptr_t)number;
    Py_BEGIN_ALLOW_THREADS
    code = bloomery_local_open(&options, &self->local, &status);
    Py_END_ALLOW_THREADS
    if (code == BLOOMERY_LOCAL_OK) {
        return (flags & BLOOMERY_LOCAL_NO_WAIT) != 0
                   ? 0
                   : filter_wait(self, options.timeout_ms);
    }
    raise_error(code, status.error_text[0] != '\0' ? status.error_text
                                                   : bloomery_local_text(code));
    return -1;
}

static PyObject *
filter_close(PyObject *object, PyObject *nothing)
{
    struct filter *self = (struct filter *)object;

    (void)nothing;
    if (self->local != NULL) {
        Py_BEGIN_ALLOW_THREADS
        bloomery_local_close(self->local);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static void
filter_dealloc(PyObject *object)
{
    struct filter *self = (struct filter *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);

    Py_BEGIN_ALLOW_THREADS
    bloomery_local_free(self->local);
    Py_END_ALLOW_THREADS
    free_object(object);
    Py_DECREF(type);
}

/* ITEM in FILTER. */
static int
filter_in(PyObject *object, PyObject *item_object)
{
    struct filter *self = (struct filter *)object;
    struct bloomery_local_item item;
    enum bloomery_local_answer answer;

    if (!filter_is_open(self) || item_bytes(item_object, &item) < 0) {
        return -1;
    }
    answer = bloomery_local_contains(self->local, item.data, item.bytes);
    if (answer == BLOOMERY_LOCAL_UNKNOWN) {
        PyErr_SetString(stale_type, "the copy cannot know: see status()");
        return -1;
    }
    return answer == BLOOMERY_LOCAL_PRESENT;
}

static PyObject *
filter_contains(PyObject *object, PyObject *item_object)
{
    struct filter *self = (struct filter *)object;
    struct bloomery_local_item item;

    if (!filter_is_open(self) || item_bytes(item_object, &item) < 0) {
        return NULL;
    }
    return answer_object(
        (int)bloomery_local_contains(self->local, item.data, item.bytes));
}

/* Gives a list with the COUNT answers. */
static PyObject *
answer_list(const int8_t *answers, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);

    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyList_SetItem(list, i, answer_object(answers[i]));
    }
    return list;
}

static PyObject *
filter_contains_many(PyObject *object, PyObject *iterable)
{
    struct filter *self = (struct filter *)object;
    struct bloomery_local_item *items;
    PyObject *tuple, *list = NULL;
    Py_ssize_t count, i;
    int8_t *answers;

    if (!filter_is_open(self)) {
        return NULL;
    }
    /* The tuple keeps the items while other threads run. */
    tuple = PySequence_Tuple(iterable);
    if (tuple == NULL) {
        return NULL;
    }
    count = PyTuple_Size(tuple);
    items = PyMem_Malloc((size_t)count * (sizeof(*items) + 1));
    if (items == NULL) {
        Py_DECREF(tuple);
        return PyErr_NoMemory();
    }
    answers = (int8_t *)(items + count);
    for (i = 0; i < count; i++) {
        if (item_bytes(PyTuple_GetItem(tuple, i), &items[i]) < 0) {
            break;
        }
    }
    if (i == count) {
        Py_BEGIN_ALLOW_THREADS
        bloomery_local_contains_many(self->local, items, (size_t)count,
                                     answers);
        Py_END_ALLOW_THREADS
        list = answer_list(answers, count);
    }
    PyMem_Free(items);
    Py_DECREF(tuple);
    return list;
}

static PyObject *
filter_status(PyObject *object, PyObject *nothing)
{
    struct filter *self = (struct filter *)object;
    struct bloomery_local_status status = { .struct_size = sizeof(status) };
    PyObject *server, *error;

    (void)nothing;
    if (!filter_is_open(self)) {
        return NULL;
    }
    bloomery_local_status(self->local, &status);
    server = text_to_str(status.server);
    error = text_to_str(status.error_text);
    if (server == NULL || error == NULL) {
        Py_XDECREF(server);
        Py_XDECREF(error);
        return NULL;
    }
    return Py_BuildValue(
        "IINKKKKKKKN", (unsigned)status.state, (unsigned)status.error, error,
        (unsigned long long)status.age_ms, (unsigned long long)status.loads,
        (unsigned long long)status.connections,
        (unsigned long long)status.items, (unsigned long long)status.capacity,
        (unsigned long long)status.layers,
        (unsigned long long)status.size_bytes, server);
}

static PyMethodDef filter_methods[] = {
    { "contains", filter_contains, METH_O,
      "contains(item): True, False, or None when the copy cannot know." },
    { "contains_many", filter_contains_many, METH_O,
      "contains_many(items): a list of what contains() returns for each; other "
      "threads run meanwhile." },
    { "_status", filter_status, METH_NOARGS, NULL },
    { "close", filter_close, METH_NOARGS,
      "close(): end the copy; whoever asks it gets None from then on." },
    { NULL, NULL, 0, NULL }
};

static PyType_Slot filter_slots[] = {
    { Py_tp_init, filter_init },       { Py_tp_new, PyType_GenericNew },
    { Py_tp_dealloc, filter_dealloc }, { Py_sq_contains, filter_in },
    { Py_tp_methods, filter_methods }, { 0, NULL }
};

static PyType_Spec filter_spec = {
    .name = "bloomery._local.Filter",
    .basicsize = sizeof(struct filter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = filter_slots,
};

static PyMethodDef module_methods[] = {
    { "next_event", next_event, METH_NOARGS,
      "next_event(): wait for the next event of any filter: number, kind, "
      "text." },
    { NULL, NULL, 0, NULL }
};

static struct PyModuleDef module_definition = { PyModuleDef_HEAD_INIT,
                                                .m_name = "_local",
                                                .m_size = -1,
                                                .m_methods = module_methods };

PyMODINIT_FUNC PyInit__local(void);

PyMODINIT_FUNC
PyInit__local(void)
{
    PyObject *module = PyModule_Create(&module_definition), *type;

    if (module == NULL) {
        return NULL;
    }
    error_type = PyErr_NewExceptionWithDoc(
        "bloomery.Error",
        "What the library could not do; `code` says of which kind.", NULL,
        NULL);
    stale_type = PyErr_NewExceptionWithDoc(
        "bloomery.Stale", "The copy cannot know whether it has the item.",
        error_type, NULL);
    type = PyType_FromSpec(&filter_spec);
    if (error_type == NULL || stale_type == NULL || type == NULL ||
        PyModule_AddObjectRef(module, "Error", error_type) < 0 ||
        PyModule_AddObjectRef(module, "Stale", stale_type) < 0 ||
        PyModule_AddObjectRef(module, "Filter", type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    Py_DECREF(type);
    pthread_atfork(NULL, NULL, queue_begin_anew);
    return module;
}
