package cli

import (
	"maps"
	"slices"

	"github.com/escapement/escapement/jobs"
)

// allHandlers turns the handlers into functions and judges each.
func (c *checker) allHandlers() {
	c.handlers = make(map[string]jobs.Func, len(c.Handlers))
	for _, name := range slices.Sorted(maps.Keys(c.Handlers)) {
		path := "handlers." + name
		if c.faults.has(path) {
			continue
		}
		for _, f := range fieldErrors(probe(jobs.Job{Handler: name})) {
			if f.Field == "handler" {
				c.fault(path, "%s", f.Msg)
			}
		}
		c.handlers[name] = c.work(path, c.Handlers[name])
	}
}
