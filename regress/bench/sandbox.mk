IN_bench_sandbox = sandbox/shim
