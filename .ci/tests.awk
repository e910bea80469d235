# Reads `go test -v ./...`. Shows one line for each package and, of a package that
# failed, everything its tests printed; ends with what ran and what did not, by name.

BEGIN { named = skips = ran = failed = n = 0 }

/^=== (RUN|CONT|NAME)/ { test = $3; next }
/^=== / { next }

/^ *--- PASS/ { ran++; next }

/^ *--- SKIP/ { name = $0; sub(/^ *--- SKIP: /, "", name); sub(/ \([0-9.]+s\)$/, "", name); skipped[skips++] = name " -" reason[name] }

/^(ok|FAIL|\?)[ \t]/ {
	if ($1 == "FAIL") {
		failed++
		for (i = 0; i < n; i++) print kept[i]
	}
	for (; named < skips; named++) skipped[named] = $2 " " skipped[named]
	n = 0
	delete reason
	print
	fflush()
	next
}

{
	kept[n++] = $0
	why = $0
	if (sub(/^ +[^ ]+\.go:[0-9]+:/, "", why)) reason[test] = why # the last line a skipped test logs
}

END {
	for (i = 0; i < n; i++) print kept[i]
	for (i = 0; i < skips; i++) print "did not run: " skipped[i]
	printf "tests: %d passed, %d packages failed, %d tests did not run\n", ran, failed, skips
}
