/* An NVML with two accelerators, as a driver ships it; FAKE_NVML_BROKEN makes every call fail, and
   the second one is lost while the file that FAKE_NVML_LOST names is there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  unsigned long long total, free, used;
} memory_t;

static int status(void) { return getenv("FAKE_NVML_BROKEN") ? 999 : 0; }

int nvmlInit_v2(void) { return status(); }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return status();
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  const char* lost = getenv("FAKE_NVML_LOST");
  *handle = (void*)(size_t)(index + 1);
  return index == 1 && lost && access(lost, F_OK) == 0 ? 15 : status();
}

int nvmlDeviceGetMemoryInfo(void* handle, memory_t* memory) {
  memory->total = 150ULL << 30;
  memory->used = (unsigned long long)(size_t)handle << 30;
  memory->free = memory->total - memory->used;
  return status();
}

typedef struct {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
} process_t;

/* Our parent and we on each; what the second has, this driver does not tell. */
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, process_t* found) {
  found[0] = (process_t){(unsigned)getpid(), (unsigned long long)(size_t)handle << 30, 0, 0};
  found[1] = (process_t){(unsigned)getppid(), ~0ULL, 0, 0};
  *count = 2;
  return status();
}

int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  snprintf(text, size, "GPU-%zu", (size_t)handle - 1);
  return status();
}

int nvmlDeviceGetName(void* handle, char* text, unsigned size) {
  (void)handle;
  snprintf(text, size, "NVIDIA H200");
  return status();
}
