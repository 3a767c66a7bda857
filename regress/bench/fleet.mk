IN_bench_fleet = store/db
