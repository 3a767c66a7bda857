OBJS_bench_enroll = $(addprefix regress/bench/load/,link.o proc.o)
IN_bench_enroll = store/db
