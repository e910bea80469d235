package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// TxPipelined runs the commands that queue adds in a transaction. Where Redis refuses one of them, the error is that
// refusal, such as READONLY or NOPERM: by itself the client returns EXECABORT, which has no reason.
func TxPipelined(ctx context.Context, client redis.UniversalClient, queue func(redis.Pipeliner) error) error {
	cmds, err := client.TxPipelined(ctx, queue)
	if !redis.IsExecAbortError(err) {
		return err
	}
	for _, cmd := range cmds {
		if refusal := cmd.Err(); refusal != nil && !redis.IsExecAbortError(refusal) {
			return refusal
		}
	}
	return err
}
