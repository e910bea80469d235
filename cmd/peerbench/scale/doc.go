// Package scale measures a namespace with very many jobs: how long nodes take to start, what they send, how much memory a job
// takes, and how long each list takes.
package scale
