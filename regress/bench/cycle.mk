OBJS_bench_cycle = $(addprefix regress/bench/load/,link.o proc.o)
LIBS_bench_cycle = $(LIB_SSL) $(LIB_CRYPTO) $(LIB_BSD)
