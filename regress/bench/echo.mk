LIBS_bench_echo = $(LIB_SSL) $(LIB_CRYPTO) $(LIB_BSD)
