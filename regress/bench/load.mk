OBJS_bench_load = $(addprefix regress/bench/load/,agent.o agent_log.o link.o \
	proc.o wheel.o)
LIBS_bench_load = $(LIB_SSL) $(LIB_CRYPTO) $(LIB_BSD)
