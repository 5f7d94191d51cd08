# SPDX-License-Identifier: BSD-3-Clause
#
# Reads numbers in BF commands as Rust's library and as Redis do, and writes
# doubles as valkey-bloom does. For bf_model.py.

import math
import re

I64_MAX = 2 ** 63 - 1


def rust_float(text):
    """Returns the number, or None if the text is not one."""
    if re.fullmatch(rb"(?i)[+-]?(inf|infinity|nan|\d+\.?\d*(e[+-]?\d+)?"
                    rb"|\.\d+(e[+-]?\d+)?)", text):
        return float(text)
    return None


def rust_integer(text, sign, low, high):
    if re.fullmatch(rb"[+%s]?[0-9]+" % sign, text):
        value = int(text)
        if low <= value <= high:
            return value
    return None


def redis_float(text):
    """Reads the whole text as strtod does; refuses NaN and values out of range."""
    if re.fullmatch(rb"(?i)[+-]?(inf|infinity)", text):
        return float(text)
    if re.fullmatch(rb"(?i)[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)"
                    rb"(p[+-]?\d+)?", text):
        try:
            value = float.fromhex(text.decode())
        except OverflowError:
            return None
        zero = not re.search(rb"[1-9a-f]", text[2:].lower().split(b"p")[0])
    elif re.fullmatch(rb"(?i)[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text):
        value = float(text)
        zero = not re.search(rb"[1-9]", text.lower().split(b"e")[0])
    else:
        return None
    if math.isinf(value) or (value == 0 and not zero):
        return None
    return value


def redis_integer(text):
    if re.fullmatch(rb"0|-?[1-9][0-9]*", text):
        value = int(text)
        if -I64_MAX - 1 <= value <= I64_MAX:
            return value
    return None


def double_text(value):
    """Writes the shortest digits, without an exponent if that is short."""
    digits, exponent = re.fullmatch(r"([0-9.]+)(?:e([+-]\d+))?",
                                    repr(value)).groups()
    point = digits.find(".")
    shift = int(exponent or 0)
    if point >= 0:
        shift -= len(digits) - point - 1
        digits = digits.replace(".", "")
    digits = digits.lstrip("0")
    shift += len(digits) - len(digits.rstrip("0"))
    digits = digits.rstrip("0")
    length = len(digits)
    if shift < 0 and (shift > -7 or abs(shift + length - 1) < 4):
        if -shift < length:
            return digits[:shift] + "." + digits[shift:]
        return "0." + "0" * (-shift - length) + digits
    rest = "." + digits[1:] if length > 1 else ""
    return "%s%se%d" % (digits[0], rest, shift + length - 1)
