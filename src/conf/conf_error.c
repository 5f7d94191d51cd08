/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The buffers are fixed, so that errors can be reported without memory.
 */
#include "conf/conf_error.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

void
conf_error_set(struct conf_error *error, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(error->text, sizeof(error->text), format, ap);
    va_end(ap);
    error->no_memory = false;
}

void
conf_error_no_memory(struct conf_error *error)
{
    conf_error_set(error, "%s", err_text(ERR_NOMEM));
    error->no_memory = true;
}

bool
conf_error_note(const struct conf_error *error, struct buf *mistakes)
{
    if (mistakes == NULL || error->no_memory) {
        return false;
    }
    buf_append_slice(mistakes, slice_of(error->text));
    buf_append(mistakes, "\n", 1);
    return !mistakes->failed;
}

void
conf_note(struct conf_notes *notes, const char *text)
{
    size_t used = notes != NULL ? strlen(notes->text) : 0;

    if (notes != NULL && used + strlen(text) + 2 <= sizeof(notes->text)) {
        (void)snprintf(notes->text + used, sizeof(notes->text) - used, "%s\n",
                       text);
    }
}

bool
conf_next_note(struct slice *notes, struct slice *ret_line)
{
    const char *end =
        notes->len > 0 ? memchr(notes->data, '\n', notes->len) : NULL;

    if (end == NULL) {
        return false;
    }
    *ret_line = (struct slice){ notes->data, (size_t)(end - notes->data) };
    notes->len -= ret_line->len + 1;
    notes->data = end + 1;
    return true;
}
