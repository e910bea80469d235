# Reads `go test -bench`. Keeps the measurements and everything that went wrong,
# ends with their number: none at all would mean that the pattern is broken.

/^(goos|goarch|cpu|pkg|PASS|ok|\?)/ { next }
/^Benchmark.*ns\/op/ { count++ }
{ print }
END { printf "benchmarks: %d ran\n", count }
