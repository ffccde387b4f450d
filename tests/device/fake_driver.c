/* What runtime/cuda/driver.py calls, in main memory: it shows that calls arrive with the arguments that they were made with.
   A kernel is a C function that takes what a launch hands over; there is one, which writes its only number to its only array. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned blocks[3], threads[3], shared;
  void *stream, *attributes;
  unsigned count;
} config;

static void *current = (void *)0x10;
static unsigned long long last[8];
unsigned long long fake_last(int k) { return last[k]; }
void fake_current(void *context) { current = context; }

int cuInit(unsigned flags) { return flags; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal != 0 ? 101 : 0; }
int cuDeviceGetName(char *name, int length, int device) { (void)device; strncpy(name, "a device in main memory", length); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
  (void)device;
  *value = which == 75 ? 9 : which == 76 ? 0 : which == 115;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = (void *)0x20; return 0; }
int cuDeviceGetDefaultMemPool(void **pool, int device) { (void)device; *pool = (void *)0x30; return 0; }
int cuMemPoolSetAttribute(void *pool, int which, uint64_t *value) { last[0] = (uint64_t)pool; last[1] = which; last[2] = *value; return 0; }
int cuMemPoolTrimTo(void *pool, size_t size) { last[3] = (uint64_t)pool + size; return 0; }
int cuCtxGetCurrent(void **context) { *context = current; return 0; }
int cuCtxPushCurrent_v2(void *context) { current = context; return 0; }
int cuCtxPopCurrent_v2(void **context) { *context = current; current = (void *)0x10; return 0; }
int cuCtxSynchronize(void) { last[3] = (uint64_t)current; return 0; }
int cuMemAlloc_v2(uint64_t *address, size_t size) { *address = (uint64_t)malloc(size); return 0; }
int cuMemFree_v2(uint64_t address) { free((void *)address); return 0; }
int cuMemAllocAsync(uint64_t *address, size_t size, void *stream) {
  (void)stream;
  if (current != (void *)0x20) return 201;
  if (size > (1ull << 40)) return 2;
  *address = (uint64_t)malloc(size);
  return 0;
}
int cuMemFreeAsync(uint64_t address, void *stream) { (void)stream; free((void *)address); return 0; }
int cuMemGetInfo_v2(size_t *room, size_t *total) { *room = 7; *total = 8; return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, void *source, size_t size, void *stream) { (void)stream; memcpy((void *)to, source, size); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t source, size_t size, void *stream) { (void)stream; memcpy(to, (void *)source, size); return 0; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t source, size_t size, void *stream) { (void)stream; memcpy((void *)to, (void *)source, size); return 0; }
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t size, void *stream) { (void)stream; memset((void *)to, value, size); return 0; }
int cuPointerGetAttribute(void *value, int which, uint64_t address) {
  (void)address;
  if (which == 2) return 1;  /* not page-locked */
  *(int *)value = 0;
  return 0;
}
int cuStreamSynchronize(void *stream) { last[4] = (uint64_t)stream; return 0; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { last[5] = (uint64_t)stream + (uint64_t)event + flags; return 0; }
int cuEventCreate(void **event, unsigned flags) { (void)flags; *event = (void *)0x40; return 0; }
int cuEventRecord(void *event, void *stream) { (void)event; (void)stream; return 0; }
int cuEventDestroy_v2(void *event) { (void)event; return 0; }
int cuModuleLoadData(void **module, const char *image) { *module = (void *)image; return image[0] == 'x' ? 200 : 0; }
int cuModuleUnload(void *module) { (void)module; return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) { (void)module; *function = (void *)0x50; return strcmp(name, "write") ? 500 : 0; }
int cuLaunchKernelEx(const config *how, void *function, void **args, void **extra) {
  if (function != (void *)0x50 || extra || how->attributes || how->count || current != (void *)0x20) return 1;
  last[6] = how->blocks[0] * 1000 + how->threads[0];
  last[7] = (uint64_t)how->stream;
  **(int64_t **)args[0] = *(int64_t *)args[1];
  return 0;
}
int cuGetErrorName(int status, const char **name) { (void)status; *name = "CUDA_ERROR_FAKE"; return 0; }
int cuGetErrorString(int status, const char **text) { (void)status; *text = "it is only a fake"; return 0; }
