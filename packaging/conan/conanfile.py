# SPDX-License-Identifier: Zlib
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir, save
from conan.tools.microsoft import is_msvc

required_conan_version = ">=2.0"

# A program that links the static core must also link the CUDA runtime. Conan has no package of the CUDA
# Toolkit, so the program's CMake must find it, too.
CUDART = """\
find_package(CUDAToolkit REQUIRED)
set_property(TARGET GpuLbvhBroadphase::broadphase APPEND PROPERTY
  INTERFACE_LINK_LIBRARIES CUDA::cudart_static)
"""


class GpuLbvhBroadphase(ConanFile):
    name = "gpu-lbvh-broadphase"
    description = "A drop-in broad phase for Bullet Physics over a linear bounding volume hierarchy"
    license = "Zlib"
    topics = ("physics", "collision-detection", "bullet", "cuda")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "bullet": [True, False],  # whether the adapter is built, or only the core
        "cuda": [True, False],
        "double": [True, False],
    }
    default_options = {"shared": False, "fPIC": True, "bullet": True, "cuda": False, "double": False}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        cmake = load(self, os.path.join(self.recipe_folder, "..", "..", "CMakeLists.txt"))
        self.version = re.search(r"project\(GpuLbvhBroadphase VERSION (\S+)", cmake).group(1)

    # The source is the repository that this file is in. In a registry's recipe, source() would download the
    # archive of a release instead. packaging/README.md says which steps were executed.
    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "broadphase/*", "include/*", "integration/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def configure(self):
        if not self.options.bullet:
            del self.options.double

    def requirements(self):
        self.requires("onetbb/[>=2021.8]")
        if self.options.bullet:
            options = {"double_precision": self.options.double}
            if self.options.shared:  # with a static Bullet the adapter would have its own copy of it
                options["shared"] = True
            self.requires("bullet3/3.25", transitive_headers=True, transitive_libs=True, options=options)

    def validate(self):
        if not self.options.bullet:
            return
        bullet = self.dependencies["bullet3"].options
        if bullet.double_precision != self.options.double:
            raise ConanInvalidConfiguration(f"double is {self.options.double}, but bullet3/*:double_precision is "
                                            f"{bullet.double_precision}: they must be equal")
        if self.options.shared and (is_msvc(self) or not bullet.shared):
            raise ConanInvalidConfiguration("a shared adapter needs a shared Bullet, which MSVC cannot build")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["GPULBVH_BULLET"] = bool(self.options.bullet)
        toolchain.cache_variables["GPULBVH_CUDA"] = "ON" if self.options.cuda else "OFF"
        toolchain.cache_variables["GPULBVH_DOUBLE"] = bool(self.options.get_safe("double", False))
        toolchain.cache_variables["GPULBVH_SAMPLES"] = False
        toolchain.cache_variables["GPULBVH_TESTS"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        # programs use the files that CMakeDeps and PkgConfigDeps write, not these
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        rmdir(self, os.path.join(self.package_folder, "share"))
        if self.options.cuda and not self.options.shared:
            save(self, os.path.join(self.package_folder, "lib", "cmake", "cudart.cmake"), CUDART)

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "GpuLbvhBroadphase")
        self._component("broadphase", ["onetbb::libtbb"])
        if self.options.bullet:
            self._component("bullet", ["broadphase", "bullet3::bullet3"])
        if self.options.cuda and not self.options.shared:
            self.cpp_info.set_property(
                "cmake_build_modules", [os.path.join("lib", "cmake", "cudart.cmake")])

    def _component(self, name, requires):
        component = self.cpp_info.components[name]
        component.set_property("cmake_target_name", f"GpuLbvhBroadphase::{name}")
        component.libs = [f"gpulbvh_{name}"]
        component.includedirs = [os.path.join("include", "GpuLbvhBroadphase", "include"),
                                 os.path.join("include", "GpuLbvhBroadphase")]
        component.requires = requires
        if self.options.shared:
            component.defines = ["GPULBVH_SHARED"]
        elif self.settings.os in ("Linux", "FreeBSD"):
            component.system_libs = ["pthread"]
