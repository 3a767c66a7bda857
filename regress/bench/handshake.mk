OBJS_bench_handshake = net/tlsio.o net/tlsio_ctx.o net/tlskey.o common/pin.o \
	sandbox/spawn.o $(SELF) $(COMMON)
LIBS_bench_handshake = $(DAEMON_LIBS) $(LIB_SSL) $(LIB_CRYPTO)
