# SPDX-License-Identifier: BSD-3-Clause
# `make wheel` calls this with the extension that it has built.
import os
import shutil

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class Built(build_ext):
    def build_extension(self, ext):
        target = self.get_ext_fullpath(ext.name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.environ["BLOOMERY_BUILT"], target)


setup(
    version=os.environ["BLOOMERY_VERSION"],
    ext_modules=[Extension("bloomery._local", ["bloomery/_local.c"], py_limited_api=True)],
    cmdclass={"build_ext": Built},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
