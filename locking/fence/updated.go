package fence

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/escapement/escapement/locking"
)

// Updated checks the result of an UPDATE on a row with its fence in a column, NOT NULL DEFAULT 0:
//
//	UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//
// When no row was changed, Updated calls stored, which reads the column in the same transaction:
//
//	SELECT fence FROM accounts WHERE id = $1
//
// It returns nil when a row was changed, and a *StaleError when the stored token is larger. The error wraps
// sql.ErrNoRows when there is no such row. Another error means that the token is not the reason. The name of the
// fence is for messages.
//
// With MySQL set clientFoundRows=true, so that a row with the new values already counts as changed.
func Updated(res sql.Result, fence string, token locking.Token, stored func() *sql.Row) error {
	if err := Valid(fence, token); err != nil {
		return err
	}
	changed, err := res.RowsAffected()
	if err != nil {
		return explain(fmt.Sprintf("fence %q: count the rows that token %d has changed", fence, token), err)
	}
	if changed > 0 {
		return nil
	}
	var highest sql.Null[locking.Token]
	err = stored().Scan(&highest)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("fence %q: no row to update with token %d: %w: insert the row first, with its fence", fence, token, err)
	case err != nil:
		return explain(fmt.Sprintf("fence %q: read the stored token", fence), err)
	case !highest.Valid:
		return fmt.Errorf("fence %q: no row was updated with token %d: the column is NULL, which no token exceeds; make it NOT NULL DEFAULT 0", fence, token)
	}
	if err := compare(fence, token, highest.V); err != nil {
		return err
	}
	return fmt.Errorf("fence %q: no row was updated with token %d, and the row's token is %d: check the other conditions of the UPDATE", fence, token, highest.V)
}
