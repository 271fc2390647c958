"""What stands between Headrace and the machine: threads, buffers, the allocator, denormals, float errors."""
