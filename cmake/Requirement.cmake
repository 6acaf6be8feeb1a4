# SPDX-License-Identifier: Zlib
# gpulbvh_require(PACKAGE DEBIAN FEDORA ARCH HOMEBREW [WITHOUT]) finds a package, or says how to get it. The four
# names are from cmake/system_packages.txt. WITHOUT is the option that makes the package unnecessary.
macro(gpulbvh_require package debian fedora arch homebrew)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    set(_without "")
    if(${ARGC} GREATER 5)
      set(_without "\n   without it:     ${ARGV5}")
    endif()
    set(_unfit "")
    if(${package}_CONSIDERED_CONFIGS)
      set(_unfit "\n   not fit:        ${${package}_CONSIDERED_CONFIGS}")
    endif()
    message(FATAL_ERROR "There is no ${package}. To get it:
   Debian, Ubuntu: apt-get install ${debian}
   Fedora:         dnf install ${fedora}
   Arch:           pacman -S ${arch}
   Homebrew:       brew install ${homebrew}
   elsewhere:      -D ${package}_DIR=FOLDER, the one with its CMake configuration${_without}${_unfit}")
  endif()
endmacro()
