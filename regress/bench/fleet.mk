OBJS_bench_fleet = $(STORE) $(COMMON)
LIBS_bench_fleet = $(LIB_SQLITE) $(LIB_CRYPTO) $(LIB_BSD)
