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

// results refuses a result for work that has none.
func (c *checker) results(path string, e jobEntry) {
	const words = "the tick of several shards has no result; leave it out, and store it elsewhere"
	if e.settings.Shards <= 1 {
		return
	}
	if e.work.Exec != nil && e.work.Exec.Result == "file" {
		c.fault(path+".exec.result", words)
	}
	if e.work.HTTP != nil && e.work.HTTP.Result == "body" {
		c.fault(path+".http.result", words)
	}
}
