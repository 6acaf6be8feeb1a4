# Finds Bullet with either precision and gives it targets, which Bullet's own config does not:
#   Bullet::LinearMath, Bullet::Collision, Bullet::Dynamics, and, where there are such libraries,
#   Bullet::SoftBody, Bullet::WorldImporter (on Debian: libbullet-extras-dev)
# In: BulletPhysics_DOUBLE for a build with BT_USE_DOUBLE_PRECISION (on Debian: lib...-float64).
# Also installed with the package, for find_dependency.
set(_bullet_suffix "")
if(BulletPhysics_DOUBLE)
  set(_bullet_suffix "-float64")
endif()

find_path(BulletPhysics_INCLUDE_DIR LinearMath/btScalar.h PATH_SUFFIXES bullet)
foreach(_part LinearMath BulletCollision BulletDynamics)
  find_library(BulletPhysics_${_part}${_bullet_suffix} ${_part}${_bullet_suffix})
  list(APPEND _bullet_libraries BulletPhysics_${_part}${_bullet_suffix})
endforeach()
foreach(_part BulletSoftBody BulletFileLoader BulletWorldImporter)
  find_library(BulletPhysics_${_part}${_bullet_suffix} ${_part}${_bullet_suffix})
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(BulletPhysics
  REQUIRED_VARS BulletPhysics_INCLUDE_DIR ${_bullet_libraries}
  REASON_FAILURE_MESSAGE "Debian: apt-get install libbullet-dev")

function(_bullet_target name library dependency)
  if(TARGET Bullet::${name} OR NOT BulletPhysics_${library}${_bullet_suffix})
    return()
  endif()
  add_library(Bullet::${name} UNKNOWN IMPORTED)
  set_target_properties(Bullet::${name} PROPERTIES
    IMPORTED_LOCATION "${BulletPhysics_${library}${_bullet_suffix}}"
    INTERFACE_INCLUDE_DIRECTORIES "${BulletPhysics_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS "$<$<BOOL:${BulletPhysics_DOUBLE}>:BT_USE_DOUBLE_PRECISION>"
    INTERFACE_LINK_LIBRARIES "${dependency}")
endfunction()

if(BulletPhysics_FOUND)
  _bullet_target(LinearMath LinearMath "")
  _bullet_target(Collision BulletCollision Bullet::LinearMath)
  _bullet_target(Dynamics BulletDynamics Bullet::Collision)
  _bullet_target(SoftBody BulletSoftBody Bullet::Dynamics)
  if(EXISTS ${BulletPhysics_INCLUDE_DIR}/BulletWorldImporter)  # not the library of another Bullet
    _bullet_target(FileLoader BulletFileLoader Bullet::LinearMath)
    _bullet_target(WorldImporter BulletWorldImporter "Bullet::Dynamics;Bullet::FileLoader")
  endif()
endif()
