/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The printed file: it is the one in conf/, and with its option lines
 * uncommented it loads and says what the defaults say.
 */
#include "conf/conf_print.h"

#include "../test.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "conf/conf_load.h"

#include <stdlib.h>
#include <unistd.h>

/* What a printer prints, ending in a NUL; freed with free. */
static char *
printed(void (*print)(FILE *))
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    assert_non_null(to);
    print(to);
    assert_int_equal(fclose(to), 0);
    return text;
}

/* A file of the repository, in whose root the tests run. */
static char *
read_whole(const char *path)
{
    FILE *from = fopen(path, "re");
    char *text = calloc(1, 1 << 17);
    size_t len;

    if (from == NULL) {
        fail_msg("%s is missing: run the tests in the repository's root", path);
    }
    assert_non_null(text);
    len = fread(text, 1, (1 << 17) - 1, from);
    assert_in_range(len, 1, (1 << 17) - 2);
    assert_int_equal(fclose(from), 0);
    return text;
}

TEST(the_stored_file_is_the_printed_one)
{
    char *stored = read_whole("conf/bloomery.conf");
    char *fresh = printed(conf_print_file);

    assert_string_equal(stored, fresh);
    free(stored);
    free(fresh);
}

TEST(the_man_page_holds_the_printed_list)
{
    char *page = read_whole("packaging/man/bloomery.conf.5");
    char *list = printed(conf_print_man);

    assert_non_null(strstr(page, list));
    free(page);
    free(list);
}

/* "# port = 7379" becomes "port = 7379"; the text of an option stays. */
static void
uncomment(char *text)
{
    char *to = text;
    char *line = text;

    while (*line != '\0') {
        size_t len = strcspn(line, "\n") + 1;
        bool is_option = false;

        for (size_t i = 0; i < CONF_OPTION_COUNT && len > 2; i++) {
            const char *key = conf_key(&conf_table[i]);

            is_option =
                is_option || (strncmp(line + 2, key, strlen(key)) == 0 &&
                              strncmp(line + 2 + strlen(key), " = ", 3) == 0);
        }
        memmove(to, line + (is_option ? 2 : 0), len - (is_option ? 2 : 0));
        to += len - (is_option ? 2 : 0);
        line += len;
    }
    *to = '\0';
}

TEST(the_printed_lines_load_and_change_nothing)
{
    char path[] = "/tmp/bloomery-conf-XXXXXX";
    char *text = printed(conf_print_file);
    int fd = mkstemp(path);
    struct conf conf;
    struct conf fresh;
    struct conf_changes changes;
    struct conf_error error = { .text = "" };

    uncomment(text);
    assert_non_null(strstr(text, "\nport = 7379\n"));
    assert_non_null(strstr(text, "\nbloom-defrag-enabled = yes\n"));
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    conf_init(&conf);
    conf_init(&fresh);
    if (!conf_load_file(&fresh, path, NULL, &error)) {
        fail_msg("%s", error.text);
    }
    conf_take(&conf, &fresh, &changes);
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        assert_false(changes.changed[i] || changes.needs_restart[i]);
    }
    conf_fini(&conf);
    conf_fini(&fresh);
    assert_int_equal(unlink(path), 0);
    free(text);
}

TEST(help_names_every_option_and_stays_within_80_columns)
{
    char *text = printed(conf_print_help);
    size_t column = 0;

    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        char name[64];

        (void)snprintf(name, sizeof(name), "  --%s ", conf_table[i].name);
        assert_non_null(strstr(text, name));
    }
    for (const char *at = text; *at != '\0'; at++) {
        column = *at == '\n' ? 0 : column + 1;
        assert_in_range(column, 0, 79);
    }
    free(text);
}
