// Package lockredis holds what the lock drivers on Redis share: namespaces, times in milliseconds, and replies of scripts.
package lockredis
