package redlock

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
)

// fakeMasters are masters whose answer to each script is set by a test.
type fakeMasters struct {
	answer func(master int, script string) (any, error)
}

var scriptNames = map[string]string{
	acquireScript.Hash(): "acquire", renewScript.Hash(): "renew",
	releaseScript.Hash(): "release", revokeScript.Hash(): "revoke", ownerScript.Hash(): "owner",
	nodeScript.Hash(): "node",
}

// hook answers for one master.
type hook struct {
	fakes  *fakeMasters
	master int
}

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error { return h.fill(cmd) }
}

func (h hook) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			_ = h.fill(cmd)
		}
		return nil
	}
}

func (h hook) fill(cmd redis.Cmder) error {
	v, err := h.fakes.answer(h.master, scriptNames[fmt.Sprint(cmd.Args()[1])])
	cmd.SetErr(err)
	cmd.(*redis.Cmd).SetVal(v)
	return err
}

func fakeDriver(t *testing.T, answer func(master int, script string) (any, error)) *driver {
	t.Helper()
	d, err := newDriver(fakeClients(answer), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Wait)
	return d
}

func fakeClients(answer func(master int, script string) (any, error)) (clients []redis.UniversalClient) {
	for i := range 3 {
		c := redis.NewClient(redistest.ClientOptions(fmt.Sprintf("10.0.0.%d:6379", i+1)))
		c.AddHook(hook{&fakeMasters{answer}, i})
		clients = append(clients, c)
	}
	return clients
}

// reply is one of acquire.lua's.
func reply(master, code int, owner string, left int) []any {
	return []any{int64(code), int64(7), owner, int64(left), "who", fmt.Sprint("run", master)}
}
