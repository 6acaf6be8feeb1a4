// SPDX-License-Identifier: Zlib
// Lists the modifiers that each opcode allows ("*": any modifier). An instruction with another modifier is
// reported and not executed.
#include "ops.h"
using std::string;

bool known_modifiers(const OpCtx& c) {
  static const char
      *fr = " rn rz rm rp ftz sat ",
      *ap = " approx full rn rz rm rp ftz ",
      *sp = " global shared shared::cta local const param param::entry param::func ",
      *mem =
          " global shared shared::cta local const param param::entry param::func weak relaxed acquire "
          "release acq_rel volatile mmio cta cluster gpu sys nc ca cg cs lu cv wb wt v2 v4 v8 unified ",
      *cmps = " eq ne lt le gt ge equ neu ltu leu gtu geu num nan lo ls hi hs and or xor ftz ";
  static const std::unordered_map<string, string> ok = {
      {"ld", mem},
      {"ldu", mem},
      {"st", mem},
      {"atom", string(mem) + "add exch cas min max and or xor inc dec noftz "},
      {"red", string(mem) + "add min max and or xor inc dec noftz "},
      {"cvta", string(sp) + "to "},
      {"isspacep", sp},
      {"mov", ""},
      {"cvt", " rn rz rm rp rni rzi rmi rpi ftz sat "},
      {"setp", cmps},
      {"set", cmps},
      {"selp", ""},
      {"slct", " ftz "},
      {"add", string(fr) + "cc "},
      {"sub", string(fr) + "cc "},
      {"addc", " cc "},
      {"subc", " cc "},
      {"mul", string(fr) + "wide hi lo "},
      {"mad", string(fr) + "wide hi lo cc "},
      {"fma", fr},
      {"madc", " hi lo cc "},
      {"mul24", " hi lo "},
      {"mad24", " hi lo "},
      {"div", ap},
      {"rem", ""},
      {"min", " ftz NaN "},
      {"max", " ftz NaN "},
      {"neg", " ftz "},
      {"abs", " ftz "},
      {"sqrt", ap},
      {"rcp", ap},
      {"rsqrt", ap},
      {"sin", ap},
      {"cos", ap},
      {"ex2", ap},
      {"lg2", ap},
      {"tanh", ap},
      {"copysign", ""},
      {"testp", " finite infinite number notanumber normal subnormal "},
      {"and", ""},
      {"or", ""},
      {"xor", ""},
      {"not", ""},
      {"cnot", ""},
      {"shl", ""},
      {"shr", ""},
      {"shf", " l r wrap clamp "},
      {"lop3", ""},
      {"popc", ""},
      {"clz", ""},
      {"brev", ""},
      {"bfind", " shiftamt "},
      {"bfe", ""},
      {"bfi", ""},
      {"bmsk", " clamp wrap "},
      {"szext", " clamp wrap "},
      {"fns", ""},
      {"prmt", " f4e b4e rc8 ecl ecr rc16 "},
      {"sad", ""},
      {"dp4a", ""},
      {"dp2a", " lo hi "},
      {"exit", ""},
      {"ret", " uni "},
      {"trap", ""},
      {"brkpt", ""},
      {"membar", "*"},
      {"fence", "*"},
      {"prefetch", "*"},
      {"prefetchu", "*"},
      {"griddepcontrol", "*"},
      {"discard", "*"},
      {"applypriority", "*"},
      {"pmevent", "*"},
      {"createpolicy", "*"},
      {"setmaxnreg", "*"},
      {"nanosleep", ""},
      {"bar", " warp cta sync red arrive popc and or aligned "},
      {"barrier", " warp cta sync red arrive popc and or aligned "},
      {"vote", " sync all any uni ballot "},
      {"shfl", " sync up down bfly idx "},
      {"match", " sync all any "},
      {"redux", " sync add min max and or xor "},
      {"elect", " sync "},
      {"activemask", ""},
      {"cp", " async ca cg shared shared::cta global commit_group wait_group wait_all "}};
  auto it = ok.find(c.base);
  if (it == ok.end()) return false;
  if (it->second == "*") return true;
  for (auto& m : c.mods) {
    if (parse_ty(m) != T_NONE || m.compare(0, 4, "L1::") == 0 || m.compare(0, 4, "L2::") == 0) continue;
    if (it->second.find(" " + m + " ") == string::npos) return false;
  }
  return true;
}
