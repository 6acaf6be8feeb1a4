// SPDX-License-Identifier: Zlib
// Instruction semantics: special registers, and operands that are not registers
#include <ctime>

#include "exec_operands.h"
#include "ops.h"
using std::string;
static u64 g_clock = 0;

enum SR {
  SR_TIDX,
  SR_TIDY,
  SR_TIDZ,
  SR_NTIDX,
  SR_NTIDY,
  SR_NTIDZ,
  SR_CTAX,
  SR_CTAY,
  SR_CTAZ,
  SR_NCTAX,
  SR_NCTAY,
  SR_NCTAZ,
  SR_LANE,
  SR_WARP,
  SR_NWARP,
  SR_SMID,
  SR_NSMID,
  SR_GRID,
  SR_EQ,
  SR_LE,
  SR_LT,
  SR_GE,
  SR_GT,
  SR_CLK,
  SR_CLKHI,
  SR_CLK64,
  SR_GTIME,
  SR_GTLO,
  SR_GTHI,
  SR_DYN,
  SR_TOTSH,
  SR_ZERO,
  SR_ONE,
  SR_ENV0 = 100
};
int sreg_id(const string& n) {
  static const std::unordered_map<string, int> m = {{"%tid.x", SR_TIDX},
                                                    {"%tid.y", SR_TIDY},
                                                    {"%tid.z", SR_TIDZ},
                                                    {"%ntid.x", SR_NTIDX},
                                                    {"%ntid.y", SR_NTIDY},
                                                    {"%ntid.z", SR_NTIDZ},
                                                    {"%ctaid.x", SR_CTAX},
                                                    {"%ctaid.y", SR_CTAY},
                                                    {"%ctaid.z", SR_CTAZ},
                                                    {"%nctaid.x", SR_NCTAX},
                                                    {"%nctaid.y", SR_NCTAY},
                                                    {"%nctaid.z", SR_NCTAZ},
                                                    {"%laneid", SR_LANE},
                                                    {"%warpid", SR_WARP},
                                                    {"%nwarpid", SR_NWARP},
                                                    {"%smid", SR_SMID},
                                                    {"%nsmid", SR_NSMID},
                                                    {"%gridid", SR_GRID},
                                                    {"%lanemask_eq", SR_EQ},
                                                    {"%lanemask_le", SR_LE},
                                                    {"%lanemask_lt", SR_LT},
                                                    {"%lanemask_ge", SR_GE},
                                                    {"%lanemask_gt", SR_GT},
                                                    {"%clock", SR_CLK},
                                                    {"%clock_hi", SR_CLKHI},
                                                    {"%clock64", SR_CLK64},
                                                    {"%globaltimer", SR_GTIME},
                                                    {"%globaltimer_lo", SR_GTLO},
                                                    {"%globaltimer_hi", SR_GTHI},
                                                    {"%dynamic_smem_size", SR_DYN},
                                                    {"%total_smem_size", SR_TOTSH},
                                                    {"%cluster_ctaid.x", SR_ZERO},
                                                    {"%cluster_ctaid.y", SR_ZERO},
                                                    {"%cluster_ctaid.z", SR_ZERO},
                                                    {"%cluster_ctarank", SR_ZERO},
                                                    {"%cluster_nctaid.x", SR_ONE},
                                                    {"%cluster_nctaid.y", SR_ONE},
                                                    {"%cluster_nctaid.z", SR_ONE},
                                                    {"%cluster_nctarank", SR_ONE}};
  auto it = m.find(n);
  if (it != m.end()) return it->second;
  if (n.compare(0, 7, "%envreg") == 0) return SR_ENV0 + atoi(n.c_str() + 7);
  return -1;
}
static u64 sreg(Thread& t, int id) {
  Launch& L = *L_;
  Block& b = *t.blk;
  switch (id) {
    case SR_TIDX: return t.tx;
    case SR_TIDY: return t.ty;
    case SR_TIDZ: return t.tz;
    case SR_NTIDX: return L.b.x;
    case SR_NTIDY: return L.b.y;
    case SR_NTIDZ: return L.b.z;
    case SR_CTAX: return b.cx;
    case SR_CTAY: return b.cy;
    case SR_CTAZ: return b.cz;
    case SR_NCTAX: return L.g.x;
    case SR_NCTAY: return L.g.y;
    case SR_NCTAZ: return L.g.z;
    case SR_LANE: return t.lane;
    case SR_WARP: return t.warp;
    case SR_NWARP: return b.walive.size();
    case SR_SMID: return b.lin % 4;
    case SR_NSMID: return 4;
    case SR_GRID: return L.gridid;
    case SR_EQ: return 1u << t.lane;
    case SR_LT: return (1u << t.lane) - 1;
    case SR_LE: return (u32)((2ull << t.lane) - 1);
    case SR_GE: return (u32) ~((1u << t.lane) - 1);
    case SR_GT: return (u32) ~(u32)((2ull << t.lane) - 1);
    case SR_CLK: return (u32)(++g_clock + t.nins);
    case SR_CLKHI: return 0;
    case SR_CLK64: return ++g_clock + t.nins;
    case SR_GTIME:
    case SR_GTLO:
    case SR_GTHI: {
      timespec ts;
      clock_gettime(CLOCK_REALTIME, &ts);
      u64 v = ts.tv_sec * 1000000000ull + ts.tv_nsec;
      return id == SR_GTLO ? (u32)v : id == SR_GTHI ? v >> 32 : v;
    }
    case SR_DYN: return L.dyn;
    case SR_TOTSH: return b.shsize;
    case SR_ZERO: return 0;
    case SR_ONE: return 1;
    case SR_ENV0 + 1: return L.coop ? ((u64)L.cgws.data()) >> 32 : 0;
    case SR_ENV0 + 2: return L.coop ? (u32)(u64)L.cgws.data() : 0;
  }
  return 0;
}
u64 slow(Thread& t, const Opnd& o) {
  switch (o.r) {
    case R_IMM: return o.imm;
    case R_LOCAL: return (u64)t.local + o.imm;
    case R_PARAM: return (u64)t.pmem + o.imm;
    case R_SREG: return sreg(t, (int)o.imm);
    case R_DYNSH: return t.blk->dynbase + o.imm;
  }
  return 0;
}
