// Package redistest starts Redis servers for tests, for the torture program and for `escapement dev`, and simulates faults of
// the network to them.
//
// Server is a real redis-server in a process of its own, on a free loopback
// port, with its data in a directory of its own and every write in its append
// only file. It can be stopped, killed, paused and started again.
//
// Sentinels are a master, two replicas and three sentinels that watch them, six such processes. When
// the master is killed or paused, a replica takes its place within some three seconds, and the last
// writes that the old one acknowledged may be gone: they keep nothing on disk.
//
// Cluster is a Redis Cluster of three masters and a replica of each. A master that is killed or
// paused is replaced within some four seconds, and a slot can be moved from one master to another.
// It needs Redis 7. Its clients keep go-redis' redirections, which redisconn.Check permits: they
// follow a slot, and repeat a call whose connection broke, because every script may be repeated.
//
// StartMasters starts independent servers.
//
// Embedded is miniredis inside this process. It runs the very scripts that ship, and works in a
// testing/synctest bubble: no port, and its clock and expiries follow time.Now. Two answers are
// added to miniredis: INFO server with a run_id and INFO replication with a replication id, also
// inside a script, and new ones after each Restart. It differs from Redis in how Lua prints large
// numbers, it has no WAIT and no Cluster; so the tests that matter run on both.
//
// Net is a client's network: it can drop everything, and it can lose the reply to a request that the server has executed.
package redistest
