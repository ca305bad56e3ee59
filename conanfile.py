# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For Conan 2: the core, with Meson of the machine. `conan create .`"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain


class CuguestCore(ConanFile):
    name = "cuguest-core"
    description = "Guards over the CUDA context stack: the part of cuguest that needs neither Abseil nor libstdc++"
    license = "Apache-2.0 WITH LLVM-exception"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    exports_sources = ("meson.build", "meson_options.txt", "include/*", "lib/*", "subprojects/cudaimage/*", "LICENSE",
                       "!*/test/*", "!*/fuzz/*")
    test_package_folder = "packaging/conan"

    def set_version(self):
        self.version = re.search(r"^  version: '(.*)'", load(self, os.path.join(self.recipe_folder, "meson.build")), re.M)[1]

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("cuguest runs on Linux with glibc")

    def layout(self):
        basic_layout(self)

    def generate(self):
        toolchain = MesonToolchain(self)
        toolchain.project_options.update({"auto_features": "disabled", "abseil": "disabled", "install": "enabled"})
        toolchain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        Meson(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.libs = ["cuguest-core"]
        self.cpp_info.defines = ["CUGUEST_STATIC"]
        self.cpp_info.system_libs = ["dl", "pthread"]
        # find_package(cuguest) finds what Meson has installed, which also looks for the toolkit.
        self.cpp_info.builddirs = ["lib/cmake/cuguest"]
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.set_property("pkg_config_name", "cuguest-core")
