// SPDX-License-Identifier: Zlib
#include "headless.h"

#include <epoxy/egl.h>

#include <stdexcept>
#include <vector>

namespace {

/// EGL displays in the order in which they are tried: Mesa's surfaceless display, the display of
/// each GPU, and EGL's default display.
std::vector<EGLDisplay> displays() {
  std::vector<EGLDisplay> found;
  const bool canAsk = epoxy_has_egl_extension(EGL_NO_DISPLAY, "EGL_EXT_platform_base");
  if (canAsk && epoxy_has_egl_extension(EGL_NO_DISPLAY, "EGL_MESA_platform_surfaceless"))
    found.push_back(
        eglGetPlatformDisplayEXT(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr));
  if (canAsk && epoxy_has_egl_extension(EGL_NO_DISPLAY, "EGL_EXT_device_enumeration") &&
      epoxy_has_egl_extension(EGL_NO_DISPLAY, "EGL_EXT_platform_device")) {
    EGLDeviceEXT devices[8];
    EGLint count = 0;
    if (eglQueryDevicesEXT(8, devices, &count) == EGL_TRUE)
      for (EGLint i = 0; i < count; ++i)
        found.push_back(eglGetPlatformDisplayEXT(EGL_PLATFORM_DEVICE_EXT, devices[i], nullptr));
  }
  found.push_back(eglGetDisplay(EGL_DEFAULT_DISPLAY));
  return found;
}

EGLContext contextOf(EGLDisplay display) {
  if (display == EGL_NO_DISPLAY || eglInitialize(display, nullptr, nullptr) != EGL_TRUE ||
      !epoxy_has_egl_extension(display, "EGL_KHR_surfaceless_context") ||
      eglBindAPI(EGL_OPENGL_API) != EGL_TRUE)
    return EGL_NO_CONTEXT;
  const EGLint wanted[] = {EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_SURFACE_TYPE, 0, EGL_NONE};
  EGLConfig config = nullptr;
  EGLint count = 0;
  if (eglChooseConfig(display, wanted, &config, 1, &count) != EGL_TRUE || count == 0)
    return EGL_NO_CONTEXT;
  const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION,
                               3,
                               EGL_CONTEXT_MINOR_VERSION,
                               3,
                               EGL_CONTEXT_OPENGL_PROFILE_MASK,
                               EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                               EGL_NONE};
  const EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, attributes);
  if (context != EGL_NO_CONTEXT &&
      eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context) == EGL_TRUE)
    return context;
  return EGL_NO_CONTEXT;
}

}  // namespace

HeadlessContext::HeadlessContext() {
  for (const EGLDisplay display : displays()) {
    context_ = contextOf(display);
    display_ = display;
    if (context_ != EGL_NO_CONTEXT) return;
  }
  throw std::runtime_error(
      "no OpenGL 3.3 without a display: EGL offers no driver with surfaceless contexts "
      "(on Debian: apt-get install libegl1 libgl1-mesa-dri)");
}

HeadlessContext::~HeadlessContext() {
  eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  eglDestroyContext(display_, context_);
  // The display is not terminated, because it belongs to the process and may have other contexts.
}
