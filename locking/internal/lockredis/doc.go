// Package lockredis is what the lock drivers on Redis have in common: namespaces, times as Redis takes and tells them, and replies of scripts.
package lockredis
