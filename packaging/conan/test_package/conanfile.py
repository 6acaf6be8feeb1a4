# SPDX-License-Identifier: Zlib
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class TestPackage(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # otherwise the presets are written into the repository
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        programs = ["core"]
        if self.dependencies[self.tested_reference_str].options.bullet:
            programs.append("adapter")
        for program in programs:
            self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")
