package ticks

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// rss returns the memory that this process has in RAM, in bytes; 0 where /proc does not have it.
func rss() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64) // 0: not known
	return pages * int64(os.Getpagesize())
}

// allocs is how many objects this process has allocated. The question stops it for a moment.
func allocs() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Mallocs)
}

// busy returns the CPU time that all processes of this machine have taken, in seconds; 0 where
// /proc does not have it.
func busy() float64 {
	text, _ := os.ReadFile("/proc/stat")
	return parseStat(string(text))
}

// parseStat sums up the first line of /proc/stat without idle time and waiting
// for disks, in hundredths of a second.
func parseStat(text string) (seconds float64) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0
	}
	for i, word := range fields[1:9] { // user nice system idle iowait irq softirq steal
		if i != 3 && i != 4 {
			n, _ := strconv.ParseFloat(word, 64)
			seconds += n / 100
		}
	}
	return seconds
}
