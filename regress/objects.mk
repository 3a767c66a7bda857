# What a unit test or a fuzz target links besides itself.  Without a line
# here: $(COMMON).  LIBS_ adds libraries to libbsd.  A test that includes a
# .c file must not list its object.

#OBJS_test_ws = net/ws.o $(COMMON)
#LIBS_test_token = $(LIB_CRYPTO)
