OBJS_bench_measure = regress/bench/load/proc.o
