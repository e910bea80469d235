// Package scale measures a namespace with very many jobs: how long nodes take to start, their
// traffic, the memory of a job, and how long each list takes.
package scale
