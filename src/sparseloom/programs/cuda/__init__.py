"""The CUDA side of the runtime: NVRTC, the driver, device memory, launches. Nothing is loaded before it is used."""
