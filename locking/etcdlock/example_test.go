//go:build unix

package etcdlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/etcdlock"
)

// A program that works under a lock of a cluster with three members. It is compiled and not run.
func Example() {
	client, err := etcdlock.Connect(etcdlock.ClientConfig{
		Endpoints: []string{"etcd-1:2379", "etcd-2:2379", "etcd-3:2379"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	locker := etcdlock.New(client, etcdlock.Config{Prefix: "billing"})
	defer locker.Close()

	ctx := context.Background()
	lease, err := locker.Acquire(ctx, "order:42", locking.Options{TTL: 10 * time.Second, Wait: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = lease.Release(ctx) }()
	fmt.Println("working with token", lease.Token())
}
