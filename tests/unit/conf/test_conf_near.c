/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf/conf_near.h"

#include "../test.h"

TEST(the_nearest_option_is_named)
{
    static const struct {
        const char *name, *section, *meant;
    } cases[] = {
        { "prot", "network", "port" },
        { "PROT", "network", "port" },
        { "maxmemroy", "network", "maxmemory" },
        { "max-memory", NULL, "maxmemory" },
        { "appendsync", NULL, "appendfsync" },
        { "bloom-capcity", "bf", "bf.bloom-capacity" },
        { "bf.bloom-capcity", NULL, "bf.bloom-capacity" },
        { "tls-cert", "tls", "tls-cert-file" },
        { "requirepassword", "security", "requirepass" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct conf_row *row =
            conf_near_option(slice_of(cases[i].name), cases[i].section);

        assert_non_null(row);
        assert_string_equal(row->name, cases[i].meant);
    }
}

TEST(a_name_that_is_far_from_all_means_nothing)
{
    static const char *const far[] = { "", "x", "nonsense", "colour-of-logs" };
    char longest[200];

    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        assert_null(conf_near_option(slice_of(far[i]), NULL));
        assert_null(conf_near_section(slice_of(far[i])));
    }
    memset(longest, 'p', sizeof(longest));
    assert_null(conf_near_option((struct slice){ longest, sizeof(longest) },
                                 "network"));
}

TEST(every_option_and_section_is_nearest_to_itself)
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];

        assert_ptr_equal(conf_near_option(slice_of(row->name), row->section),
                         row);
        assert_string_equal(conf_near_section(slice_of(row->section)),
                            row->section);
    }
    assert_string_equal(conf_near_section(slice_lit("netwrk")), "network");
}
