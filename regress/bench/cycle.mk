OBJS_bench_cycle = $(addprefix regress/bench/load/,link.o proc.o)
