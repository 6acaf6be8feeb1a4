// SPDX-License-Identifier: Zlib
// The renderer's shaders in GLSL, for OpenGL 3.3. renderer.cpp compiles them.
#pragma once

namespace shaders {

/// An instance's three axes may be scaled. Normals are rotated, and scaled by the inverse factors.
inline constexpr const char* solidVertex = R"(#version 330 core
layout(location = 0) in vec3 place;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec3 axisX;
layout(location = 3) in vec3 axisY;
layout(location = 4) in vec3 axisZ;
layout(location = 5) in vec3 origin;
layout(location = 6) in vec4 tint;
uniform mat4 viewProjection;
out vec3 worldPlace;
out vec3 worldNormal;
flat out vec4 colour;
void main() {
  mat3 model = mat3(axisX, axisY, axisZ);
  vec3 squares = vec3(dot(axisX, axisX), dot(axisY, axisY), dot(axisZ, axisZ));
  worldPlace = model * place + origin;
  worldNormal = model * (normal / squares);
  colour = tint;
  gl_Position = viewProjection * vec4(worldPlace, 1);
}
)";

inline constexpr const char* solidFragment = R"(#version 330 core
in vec3 worldPlace;
in vec3 worldNormal;
flat in vec4 colour;
uniform vec3 eye;
uniform vec3 toSun;
uniform vec3 haze;
uniform float hazeDistance;
uniform sampler2DShadow shadows;
uniform mat4 light;
uniform float shadowTexel;  // metres; offset by this, or surfaces would shade themselves
out vec4 result;

float sunlight(vec3 normal) {
  vec3 place = (light * vec4(worldPlace + normal * shadowTexel, 1)).xyz * 0.5 + 0.5;
  if (any(greaterThan(abs(place - 0.5), vec3(0.5)))) return 1.0;
  float aside = 0.6 / float(textureSize(shadows, 0).x);
  return (texture(shadows, place + vec3(aside, aside, 0)) +
          texture(shadows, place - vec3(aside, aside, 0))) / 2.0;
}

/// The part of this pixel that lines of a grid cover, by the size of the pixel on the ground.
float gridLine(vec2 at, float spacing) {
  vec2 width = max(fwidth(at / spacing), 1e-6);
  vec2 away = abs(fract(at / spacing - 0.5) - 0.5) / width;
  float far = clamp(1.5 - 3.0 * max(width.x, width.y), 0.0, 1.0);
  return (1.0 - min(min(away.x, away.y), 1.0)) * far;
}

void main() {
  vec3 normal = dot(worldNormal, worldNormal) > 1e-6
                    ? normalize(worldNormal)
                    : normalize(cross(dFdx(worldPlace), dFdy(worldPlace)));
  vec3 toEye = normalize(eye - worldPlace);
  if (dot(normal, toEye) < 0.0) normal = -normal;  // a mesh may be seen from both sides
  float facing = dot(normal, toSun);
  vec3 sky = vec3(0.50, 0.54, 0.62), ground = vec3(0.24, 0.22, 0.21);
  vec3 ambient = mix(ground, sky, normal.y * 0.5 + 0.5);
  vec3 sun = vec3(0.80, 0.74, 0.64) * max(facing, 0.0);
  if (facing > 0.0) sun *= sunlight(normal);
  float edge = pow(1.0 - max(dot(normal, toEye), 0.0), 3.0) * 0.10;
  vec3 base = colour.rgb;
  if (colour.a < 0.9) {
    base *= 0.62;
    if (normal.y > 0.5) {
      float line = max(gridLine(worldPlace.xz, 1.0) * 0.35, gridLine(worldPlace.xz, 10.0) * 0.7);
      base = mix(base, base * 1.6, line);
    }
  }
  vec3 lit = base * (ambient + sun) + edge * sky;
  float far = 1.0 - exp(-pow(distance(eye, worldPlace) / hazeDistance, 2.0));
  result = vec4(mix(lit, haze, far), 1);
}
)";

inline constexpr const char* shadowFragment = R"(#version 330 core
void main() {}
)";

/// Each instance is a line. Four corners make it a strip a few pixels wide.
inline constexpr const char* lineVertex = R"(#version 330 core
layout(location = 0) in vec3 from;
layout(location = 1) in vec4 fromColour;
layout(location = 2) in vec3 to;
layout(location = 3) in vec4 toColour;
uniform mat4 viewProjection;
uniform vec2 pixel;  // half a line's width, in units of the picture
uniform vec3 eye;
uniform float lift;  // metres by which a line is moved to the eye for the depth test
out vec4 colour;
float liftedDepth(vec3 place) {
  vec4 lifted = viewProjection * vec4(place + normalize(eye - place) * lift, 1);
  return max(lifted.z / max(lifted.w, 1e-3), -1.0);
}
void main() {
  vec4 a = viewProjection * vec4(from, 1), b = viewProjection * vec4(to, 1);
  float near = 1e-3;  // the part of a line behind the eye is cut off
  if (a.w < near && b.w < near) { gl_Position = vec4(2, 2, 2, 1); return; }
  if (a.w < near) a = mix(a, b, (near - a.w) / (b.w - a.w));
  if (b.w < near) b = mix(b, a, (near - b.w) / (a.w - b.w));
  vec2 along = (b.xy / b.w - a.xy / a.w) / pixel;
  along = dot(along, along) > 0.0 ? normalize(along) : vec2(1, 0);
  vec2 aside = vec2(-along.y, along.x) * ((gl_VertexID & 1) == 0 ? 1.0 : -1.0);
  bool isEnd = gl_VertexID >= 2;
  gl_Position = isEnd ? b : a;
  gl_Position.xy += aside * pixel * gl_Position.w;
  if (lift > 0.0) gl_Position.z = liftedDepth(isEnd ? to : from) * gl_Position.w;
  colour = isEnd ? toColour : fromColour;
}
)";

inline constexpr const char* lineFragment = R"(#version 330 core
in vec4 colour;
uniform float opacity;
out vec4 result;
void main() { result = vec4(colour.rgb, colour.a * opacity); }
)";

/// One triangle over the whole picture.
inline constexpr const char* backgroundVertex = R"(#version 330 core
out float height;
void main() {
  vec2 corner = vec2(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1);
  height = corner.y * 0.5 + 0.5;
  gl_Position = vec4(corner, 0, 1);
}
)";

inline constexpr const char* backgroundFragment = R"(#version 330 core
in float height;
uniform vec3 haze;
out vec4 result;
void main() { result = vec4(mix(haze, haze * 0.45, smoothstep(0.35, 1.0, height)), 1); }
)";

}  // namespace shaders
