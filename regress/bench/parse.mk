IN_bench_parse = net/codec
