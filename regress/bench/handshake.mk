IN_bench_handshake = net/hub
