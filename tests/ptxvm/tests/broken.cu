// SPDX-License-Identifier: Zlib
// Loads PTX text from the command line, as if nvcc had embedded it in this program. Used to test
// how malformed PTX is handled.
// Usage: broken BODY    BODY is the body of a kernel, or of the module if it begins with `;;`
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
}

int main(int, char** argv) {
  std::string text = ".version 8.0\n.target sm_75\n.address_size 64\n";
  const std::string body = argv[1];
  if (body.compare(0, 2, ";;") == 0)
    text += body.substr(2);
  else
    text += ".visible .entry k()\n{\n.reg .b32 %r<9>;\n" + body + "\nret;\n}\n";

  std::vector<unsigned char> fat(16 + 64);  // a header, an entry's header, the text
  const auto put = [&fat](size_t at, auto value) { std::memcpy(&fat[at], &value, sizeof value); };
  put(0, std::uint32_t{0xBA55ED50});
  put(6, std::uint16_t{16});
  put(8, std::uint64_t{64 + text.size()});
  put(16, std::uint16_t{1});
  put(20, std::uint32_t{64});
  put(24, std::uint64_t{text.size()});
  put(44, std::uint32_t{75});
  fat.insert(fat.end(), text.begin(), text.end());
  struct {
    int magic = 0x466243B1, version = 1;
    const void* data;
    void* names = nullptr;
  } wrapper;
  wrapper.data = fat.data();

  static char kernel;
  char name[] = "k";
  __cudaRegisterFunction(__cudaRegisterFatBinary(&wrapper), &kernel, name, name, -1, nullptr, nullptr,
                         nullptr, nullptr, nullptr);
  cudaFuncAttributes attributes;
  std::printf("loaded: %s\n", cudaGetErrorName(cudaFuncGetAttributes(&attributes, &kernel)));
}
