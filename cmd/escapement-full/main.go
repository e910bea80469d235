// Command escapement-full is the program escapement, with drivers for locks in ZooKeeper, etcd and
// PostgreSQL besides locks in Redis: escapement-full lock --driver etcd, and locks.driver in
// config.yaml. Their clients make it three times as large. It is a module of its own, so that the
// root module does not require them.
package main

import (
	"github.com/escapement/escapement/cmd/internal/cli"
	"github.com/escapement/escapement/cmd/internal/lockstore"
)

func main() {
	cli.Main(map[string]lockstore.Driver{"zookeeper": zookeeper, "etcd": etcd, "postgres": postgres})
}
