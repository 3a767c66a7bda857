OBJS_bench_parse = $(FRAME) $(COMMON)
LIBS_bench_parse = $(LIB_JSONC) $(LIB_BSD)
