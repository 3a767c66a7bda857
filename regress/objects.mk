# What a unit test or a fuzz target links besides itself.  Without a line
# here: $(COMMON).  LIBS_ adds libraries to libbsd.  A test that includes a
# .c file must not list its object.

#OBJS_test_ws = net/ws.o $(COMMON)
#LIBS_test_token = $(LIB_CRYPTO)

OBJS_test_field = $(SPEC) $(COMMON)
OBJS_test_jsonw = $(SPEC) $(COMMON)
OBJS_test_spec = $(SPEC) $(COMMON)
OBJS_test_json = $(FRAME) $(COMMON)
LIBS_test_json = $(LIB_JSONC)
OBJS_test_frame = $(FRAME) $(COMMON)
LIBS_test_frame = $(LIB_JSONC)
OBJS_test_golden = $(FRAME) $(COMMON)
LIBS_test_golden = $(LIB_JSONC)
OBJS_fuzz_json = $(FRAME) $(COMMON)
LIBS_fuzz_json = $(LIB_JSONC)
OBJS_fuzz_frame = $(FRAME) $(COMMON)
LIBS_fuzz_frame = $(LIB_JSONC)
OBJS_fuzz_spec = $(SPEC) $(COMMON)

OBJS_test_canon = common/canon.o $(COMMON)
OBJS_fuzz_canon = common/canon.o $(COMMON)
OBJS_fuzz_conf = $(filter-out common/conf.o,$(COMMON))
