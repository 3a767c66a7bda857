OBJS_bench_enroll = $(addprefix regress/bench/load/,link.o proc.o) \
	$(STORE) $(COMMON)
LIBS_bench_enroll = $(LIB_SSL) $(LIB_SQLITE) $(LIB_CRYPTO) $(LIB_BSD)
