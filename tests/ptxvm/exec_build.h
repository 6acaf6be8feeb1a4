// SPDX-License-Identifier: Zlib
// Instruction semantics: selection of functions. Each file exec_*.cpp has a build_ function. This
// function fills the instruction and returns true, or returns false if it does not know the opcode.
#pragma once
#include "ops.h"

bool build_memory(OpCtx& c);
bool build_move(OpCtx& c);
bool build_convert(OpCtx& c);
bool build_float(OpCtx& c);
bool build_int(OpCtx& c);
bool build_bits(OpCtx& c);
bool build_control(OpCtx& c);
bool build_warp(OpCtx& c);

// The instantiation of the template f for the integer type `ty`
#define INTSEL(f)                \
  [&]() -> Fn {                  \
    switch (ty) {                \
      case T_B8:                 \
      case T_U8: return f<u8>;   \
      case T_S8: return f<s8>;   \
      case T_B16:                \
      case T_U16: return f<u16>; \
      case T_S16: return f<s16>; \
      case T_B32:                \
      case T_U32: return f<u32>; \
      case T_S32: return f<s32>; \
      case T_B64:                \
      case T_U64: return f<u64>; \
      case T_S64: return f<s64>; \
      default: return nullptr;   \
    }                            \
  }()
