# SPDX-License-Identifier: BSD-3-Clause
#
# Writes the pages on the command line to the same places below the folder `into`. A
# link stays if its file is one of these pages or of the files in `shown`. Any other
# link becomes text that names the file in the sources.

BEGIN {
    RS = "\001" # a record is a whole page
    for (i = 1; i < ARGC; i++) {
        installed[ARGV[i]] = 1
    }
    count = split(shown, files, " ")
    for (i = 1; i <= count; i++) {
        installed[files[i]] = 1
    }
}

# Returns the path of a link's file from the top of the sources.
function path_of(target,    path) {
    path = FILENAME
    sub(/[^\/]*$/, "", path)
    path = path target
    while (sub(/[^\/]+\/\.\.\//, "", path)) {
        continue
    }
    return path
}

{
    page = ""
    rest = $0
    while (match(rest, /\[[^][]*\]\([A-Za-z0-9_.\/-]+(#[A-Za-z0-9_-]*)?\)/)) {
        link = substr(rest, RSTART, RLENGTH)
        page = page substr(rest, 1, RSTART - 1)
        rest = substr(rest, RSTART + RLENGTH)
        at = index(link, "](")
        label = substr(link, 2, at - 2)
        target = substr(link, at + 2, length(link) - at - 2)
        sub(/#.*/, "", target)
        path = path_of(target)
        if (path in installed) {
            page = page link
        } else if (path == "LICENSE" || path ~ /^packaging\/man\//) {
            page = page label
        } else {
            page = page label " (`" path "` in the sources)"
        }
    }
    printf "%s%s", page, rest > (into "/" FILENAME)
    close(into "/" FILENAME)
}
