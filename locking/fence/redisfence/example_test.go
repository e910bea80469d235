package redisfence_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/escapement/escapement/locking/fence"
	"github.com/escapement/escapement/locking/fence/redisfence"
	"github.com/escapement/escapement/locking/redistest"
)

// withdraw takes money from an account, if enough is there. It needs no compare-and-set of its own:
// only the holder of the account's lock gets here.
var withdraw = redisfence.NewScript("withdraw", `
local amount = math.min(tonumber(ARGV[1]), tonumber(redis.call('HGET', KEYS[1], 'balance') or '0'))
redis.call('HINCRBY', KEYS[1], 'balance', -amount)
return amount`)

func Example() {
	server, err := redistest.Embed() // in your program: a Redis of yours
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := server.Client() // redis.NewClient with MaxRetries: -1, ContextTimeoutEnabled: true
	defer client.Close()

	ctx := context.Background()
	guard := redisfence.New(client, redisfence.Config{})
	fmt.Println("new holder:", guard.Set(ctx, "order:42", "paid", 34, 0))
	err = guard.Set(ctx, "order:42", "open", 33, 0)
	fmt.Println("late holder refused:", errors.Is(err, fence.ErrStale))
	fmt.Println("stored:", client.Get(ctx, "order:42").Val())

	client.HSet(ctx, "account:7", "balance", 100)
	fenceKey, err := redisfence.FenceKey("account:7")
	if err != nil {
		panic(err)
	}
	got, err := guard.Run(ctx, withdraw, fenceKey, 1, []string{"account:7"}, 120)
	fmt.Println("withdrawn:", got, err)
	// Output:
	// new holder: <nil>
	// late holder refused: true
	// stored: paid
	// withdrawn: 100 <nil>
}
