# SPDX-License-Identifier: Zlib
# This is an overlay port: it builds the repository that it is in. A registry's port would download the
# archive of a release instead, with vcpkg_from_github(OUT_SOURCE_PATH SOURCE_PATH REPO ... REF ...
# SHA512 ...). packaging/README.md lists what was executed, and what was not.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

if(VCPKG_TARGET_IS_WINDOWS)
  # On Windows the port bullet3 is always static. A DLL of this library would have its own copy of
  # Bullet, in addition to the program's copy.
  vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
endif()

vcpkg_check_features(OUT_FEATURE_OPTIONS options
  FEATURES
    bullet GPULBVH_BULLET
    cuda GPULBVH_CUDA
    double GPULBVH_DOUBLE)
if("cuda" IN_LIST FEATURES)
  # vcpkg hides PATH from the build, so this option names the compiler.
  vcpkg_find_cuda(OUT_CUDA_TOOLKIT_ROOT cuda)
  list(APPEND options "-DCMAKE_CUDA_COMPILER=${cuda}/bin/nvcc${VCPKG_HOST_EXECUTABLE_SUFFIX}")
endif()

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${options}
    -DGPULBVH_INSTALL=ON
    -DGPULBVH_SAMPLES=OFF
    -DGPULBVH_TESTS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME gpulbvhbroadphase CONFIG_PATH lib/cmake/GpuLbvhBroadphase)
vcpkg_fixup_pkgconfig()
vcpkg_copy_pdbs()

file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
