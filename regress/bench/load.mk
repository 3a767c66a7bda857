OBJS_bench_load = $(addprefix regress/bench/load/,agent.o agent_log.o link.o \
	proc.o wheel.o)
