/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/load_place.h"

#include <stdarg.h>
#include <stdio.h>

enum { WORDS_MAX = 16 };

void
load_place_init(struct load_place *place, struct load *load,
                const struct load_peer *login, const char *host, unsigned port)
{
    bool six = strchr(host, ':') != NULL;

    *place = (struct load_place){ .load = load, .peer = *login };
    if (host[0] == '/') {
        (void)snprintf(place->address, sizeof(place->address), "%s", host);
    } else {
        (void)snprintf(place->address, sizeof(place->address), "%s%s%s:%u",
                       six ? "[" : "", host, six ? "]" : "", port);
    }
}

void
load_place_close(struct load_place *place)
{
    if (place->open) {
        load_link_close(&place->link);
        place->open = false;
    }
}

bool
load_place_open(struct load_place *place)
{
    if (place->open && !place->link.failed && !place->link.ended) {
        return true;
    }
    load_place_close(place);
    place->peer.address = place->address;
    place->open = load_link_open(place->load, &place->peer, &place->link);
    return place->open;
}

/* ---- questions ----------------------------------------------------------- */

bool
load_place_ask_words(struct load_place *place, struct slice *ret_reply,
                     const struct slice *words, size_t count)
{
    if (!load_place_open(place)) {
        return false;
    }
    load_link_send(&place->link, words, count);
    if (!load_link_reply(&place->link, ret_reply)) {
        load_place_close(place);
        return false;
    }
    return true;
}

bool
load_place_ask(struct load_place *place, struct slice *ret_reply, ...)
{
    struct slice words[WORDS_MAX];
    size_t count = 0;
    va_list args;

    va_start(args, ret_reply);
    for (const char *word = va_arg(args, const char *); word != NULL;
         word = va_arg(args, const char *)) {
        CHECK(count < WORDS_MAX);
        words[count++] = slice_of(word);
    }
    va_end(args);
    return load_place_ask_words(place, ret_reply, words, count);
}

bool
load_place_tell(struct load_place *place, const struct slice *words,
                size_t count)
{
    struct slice reply;
    struct slice text;

    if (!load_place_ask_words(place, &reply, words, count)) {
        return false;
    }
    if (!load_reply_is_error(reply)) {
        return true;
    }
    text = load_reply_text(reply);
    tool_complain(&place->load->tool, LOAD_INCOMPLETE, "%s: %.*s %.*s: %.*s",
                  place->address, slice_shown(words[0]), words[0].data,
                  slice_shown(words[1]), words[1].data, slice_shown(text),
                  text.data);
    return false;
}

/* Appends the text that a subcommand of CLUSTER replies. */
static bool
read_text(struct load_place *place, const char *what, struct buf *ret_text)
{
    struct slice reply;
    struct slice text;

    if (!load_place_ask(place, &reply, "CLUSTER", what, NULL)) {
        return false;
    }
    text = load_reply_text(reply);
    if (load_reply_is_error(reply)) {
        tool_complain(&place->load->tool, LOAD_UNREADABLE,
                      "%s: CLUSTER %s: %.*s", place->address, what,
                      slice_shown(text), text.data);
        return false;
    }
    buf_append_slice(ret_text, text);
    return true;
}

bool
load_place_view(struct load_place *place, struct topology **ret_view)
{
    struct buf text[3] = { { 0 } };
    char reason[TOPOLOGY_REASON_MAX];
    bool good = read_text(place, "NODES", &text[0]) &&
                read_text(place, "INFO", &text[1]) &&
                read_text(place, "MYID", &text[2]);

    if (good && !topology_parse(buf_slice(&text[0]), buf_slice(&text[1]),
                                buf_slice(&text[2]), ret_view, reason)) {
        tool_complain(&place->load->tool, LOAD_UNREADABLE,
                      "%s: its view of the cluster cannot be used: %s",
                      place->address, reason);
        good = false;
    }
    for (int i = 0; i < 3; i++) {
        buf_free(&text[i]);
    }
    return good;
}

/* ---- texts --------------------------------------------------------------- */

struct slice
load_place_field(struct slice text, const char *name)
{
    size_t len = strlen(name);
    char end = name[len - 1] == '=' ? ',' : '\r';

    for (size_t at = 0; at + len <= text.len; at++) {
        bool begins = at == 0 || text.data[at - 1] == '\n' ||
                      text.data[at - 1] == ',' || text.data[at - 1] == ':';

        if (begins && memcmp(text.data + at, name, len) == 0) {
            struct slice value = { text.data + at + len, 0 };

            while (at + len + value.len < text.len &&
                   value.data[value.len] != end &&
                   value.data[value.len] != '\r' &&
                   value.data[value.len] != '\n') {
                value.len++;
            }
            return value;
        }
    }
    return (struct slice){ text.data, 0 };
}

uint64_t
load_place_number(struct slice text, const char *name)
{
    uint64_t value = 0;

    return slice_to_u64(load_place_field(text, name), &value) ? value : 0;
}
