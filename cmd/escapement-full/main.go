// Command escapement-full is the program escapement, with drivers for locks in ZooKeeper, etcd and PostgreSQL besides those in
// Redis: escapement-full lock --driver etcd, and locks.driver in config.yaml. Their clients make it three times as large, and
// it is a module of its own so that nobody else needs them.
package main

import "github.com/escapement/escapement/cmd/internal/cli"

func main() {
	cli.Main(map[string]cli.Driver{"zookeeper": zookeeper, "etcd": etcd, "postgres": postgres})
}
