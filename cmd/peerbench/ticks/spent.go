package ticks

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// spent counts the work of Redis since its start, and of the machine since its own.
type spent struct {
	cpu               float64 // seconds
	commands, scripts int     // calls; calls inside scripts are commands too
	rss               int64   // bytes, now
	machine           float64 // seconds of CPU of all processes; 0 where it is not known
}

func spentBy(ctx context.Context, client *redis.Client) (spent, error) {
	info, err := client.Info(ctx, "cpu", "memory", "commandstats").Result()
	if err != nil {
		return spent{}, err
	}
	return parseInfo(info)
}

func parseInfo(info string) (s spent, err error) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "used_cpu_user" || name == "used_cpu_sys":
			var seconds float64
			seconds, err = strconv.ParseFloat(value, 64)
			s.cpu += seconds
		case name == "used_memory_rss":
			s.rss, err = strconv.ParseInt(value, 10, 64)
		case strings.HasPrefix(name, "cmdstat_"):
			var calls int
			word, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			calls, err = strconv.Atoi(word)
			s.commands += calls
			switch strings.TrimPrefix(name, "cmdstat_") {
			case "eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro":
				s.scripts += calls
			}
		}
		if err != nil {
			return s, fmt.Errorf("INFO: %w", err)
		}
	}
	return s, nil
}
