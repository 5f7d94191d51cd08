# SPDX-License-Identifier: BSD-3-Clause
# `make wheel` calls this with the flags and libraries of libbloomery-local.
import os

from setuptools import Extension, setup

setup(
    version=os.environ["BLOOMERY_VERSION"],
    ext_modules=[Extension("bloomery._local", ["bloomery/_local.c"], py_limited_api=True,
                           extra_compile_args=os.environ["BLOOMERY_CFLAGS"].split(),
                           extra_link_args=os.environ["BLOOMERY_LIBS"].split())],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
