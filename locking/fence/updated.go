package fence

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/escapement/escapement/locking"
)

// Updated judges an UPDATE of yours on a row that has its fence in a column of
// its own, NOT NULL DEFAULT 0:
//
//	UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//
// res is its result. When no row was changed, Updated asks stored for the
// column, in the same transaction:
//
//	SELECT fence FROM accounts WHERE id = $1
//
// It returns nil when a row was changed; a *StaleError when the stored token is
// larger; an error that wraps sql.ErrNoRows when there is no such row; another
// error when the token is not the reason. The name of the fence is for messages.
//
// With MySQL set clientFoundRows=true, so that a row counts that was found and
// held the new values already.
func Updated(res sql.Result, fence string, token locking.Token, stored func() *sql.Row) error {
	if err := Valid(fence, token); err != nil {
		return err
	}
	changed, err := res.RowsAffected()
	if err != nil {
		return explain(fmt.Sprintf("fence %q: how many rows token %d has changed", fence, token), err)
	}
	if changed > 0 {
		return nil
	}
	var highest sql.Null[locking.Token]
	err = stored().Scan(&highest)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("fence %q: nothing to update with token %d: %w: insert the row first, with its fence", fence, token, err)
	case err != nil:
		return explain(fmt.Sprintf("fence %q: read what has refused token %d", fence, token), err)
	case !highest.Valid:
		return fmt.Errorf("fence %q: nothing was updated with token %d: the column is NULL, which no token exceeds; make it NOT NULL DEFAULT 0", fence, token)
	}
	if err := judge(fence, token, highest.V); err != nil {
		return err
	}
	return fmt.Errorf("fence %q: nothing was updated with token %d, and the row's is %d: look at the other conditions of the UPDATE", fence, token, highest.V)
}
