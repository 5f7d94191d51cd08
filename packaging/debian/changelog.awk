# Makes debian/changelog from CHANGELOG.md: an entry for each release, with its
# headings and points as plain text. An entry without a date gets that of -v now.
# What is not released yet belongs to the entry of -v release, which is the first one.
function put(first, others, text, words, line, link, i, count) {
    while (match(text, /\[[^]]*\]\([^)]*\)/)) {
        link = substr(text, RSTART, RLENGTH)
        sub(/^\[/, "", link)
        sub(/\]\(.*/, "", link)
        text = substr(text, 1, RSTART - 1) link substr(text, RSTART + RLENGTH)
    }
    gsub(/`/, "", text)
    count = split(text, words, " ")
    line = first words[1]
    for (i = 2; i <= count; i++) {
        if (length(line) + 1 + length(words[i]) > 78) {
            print line
            line = others words[i]
        } else {
            line = line " " words[i]
        }
    }
    print line
}
function flush() {
    if (point != "") put("  * ", "    ", point)
    point = ""
}
function finish() {
    flush()
    if (version != "") print "\n -- The Bloomery authors <bloomery@example.org>  " date "\n"
}
/^## / {
    heading = $2 == "Unreleased" ? release : $2
    if (heading == version) { flush(); next }
    if (version == "" && heading != release)
        print "bloomery (" release ") unstable; urgency=medium\n\n  * Changes after " heading ".\n\n -- The Bloomery authors <bloomery@example.org>  " now "\n"
    finish()
    version = heading
    date = now
    if (match($0, /[0-9]+-[0-9]+-[0-9]+/)) {
        command = "LC_ALL=C date -u -R -d " substr($0, RSTART, RLENGTH)
        command | getline date
        close(command)
    }
    print "bloomery (" version ") unstable; urgency=medium\n"
    next
}
version == "" { next }
/^\*\*/ {
    flush()
    gsub(/\*\*/, "")
    print "  [ " $0 " ]"
    next
}
/^- / { flush(); point = substr($0, 3); next }
/^  / { if (point != "") { sub(/^ */, ""); point = point " " $0 } next }
{ flush() }
END { finish() }
