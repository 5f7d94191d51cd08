# Prints the drawing of a file format as mdoc: the comment at the head of the source
# file that encodes it, from the first indented line on. `make docs` puts it into the
# man page of the format.
function escape(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text ~ /^[.']/ ? "\\\&" text : text
}
function close_block() {
    if (literal) print ".Ed"
    literal = 0
}
FNR == 1 || done { next }
/^ \*\// { done = 1; next }
{
    line = substr($0, 4)
    if (!begun && line !~ /^  /) next
    begun = 1
    if (line == "") { gap = 1; next }
    if (line ~ /^  /) {
        if (!literal) print ".Bd -literal"
        else if (gap) print ""
        literal = 1
        print escape(substr(line, 3))
    } else {
        close_block()
        if (gap) print ".Pp"
        line = escape(line)
        gsub(/\. /, ".\n", line) # in mdoc a sentence ends its line
        print line
    }
    gap = 0
}
END { close_block() }
