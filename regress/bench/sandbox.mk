OBJS_bench_sandbox = sandbox/shim_job.o sandbox/cgroup.o common/spool.o \
	sandbox/spawn.o $(FILTERS) $(SELF) $(COMMON)
LIBS_bench_sandbox = $(LIB_SECCOMP) $(LIB_CAPNG) $(LIB_BSD)
