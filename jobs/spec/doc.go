// Package spec is the table of a job's settings. [All] has one row for each: name, field, form,
// bounds, default, one sentence. Everything that handles settings one by one reads the table: jobs
// validates and stores by it, the program decodes files and flags by it, the API and the console
// show it, and the documents print it.
//
// A setting has a path as its name. The setting retry.max is max in the section retry of a
// document:
//
//	{name: report, schedule: "0 6 * * *", ttl: 20s, retry: {max: 2, backoff: 5s}}
//
// A document is written in one way everywhere: in config.yaml, in files of stored jobs, in the API
// and in the output of tools. A duration is 90s, 5m or 2d, an instant is RFC 3339.
//
// [Binding] reads and writes the fields of a Go struct by the table. The package jobs binds its
// type Job, the only binding.
package spec
