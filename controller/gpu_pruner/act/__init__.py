"""The only writer of workloads and of GPUWorkload status. One module per lever. Never decides."""
