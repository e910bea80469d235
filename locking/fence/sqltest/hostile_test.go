//go:build unix

package sqltest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/fence"
)

// TestPlantedNames has a schema before pg_catalog in the session's path, in which another role has made the functions,
// operators and types that a guard's SQL could mean. All of them raise an exception.
func TestPlantedNames(t *testing.T) {
	admin := open(t, fence.Postgres, "postgres", theServer(t).dsn())
	schema := "planted_" + admin.table
	operators := ""
	for _, o := range []string{"<", "<=", ">", ">=", "=", "<>"} {
		for n, types := range [][2]string{{"bigint", "bigint"}, {"bigint", "integer"}, {"text", "text"}} {
			f := fmt.Sprintf("%s.f%d_%x", schema, n, o)
			operators += fmt.Sprintf(`
				CREATE FUNCTION %s(l %s, r %s) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted %s'; END $$;
				CREATE OPERATOR %s.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = %s);`, f, types[0], types[1], o, schema, o, types[0], types[1], f)
		}
	}
	if _, err := admin.ExecContext(t.Context(), "CREATE SCHEMA "+schema+";"+operators+strings.ReplaceAll(`
		CREATE FUNCTION @.refuse() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted type'; END $$;
		CREATE FUNCTION @.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted clock_timestamp'; END $$;
		CREATE FUNCTION @.floor(numeric) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted floor'; END $$;
		CREATE FUNCTION @.date_part(text, timestamptz) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted date_part'; END $$;
		CREATE DOMAIN @.text AS pg_catalog.text CHECK (@.refuse());
		CREATE DOMAIN @.int8 AS pg_catalog.int8 CHECK (@.refuse())`, "@", schema)); err != nil {
		t.Fatal(err)
	}
	victim, err := sql.Open("postgres", theServer(t).dsn()+" search_path="+schema+",pg_catalog,public")
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close()
	// The tables' own schema too is made under that path.
	guard, err := fence.NewSQL(fence.Postgres, "public."+admin.table+"_hostile")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := victim.ExecContext(t.Context(), guard.Schema()); err != nil {
		t.Fatal(err)
	}
	d := &database{DB: victim, dialect: fence.Postgres}
	ctx := t.Context()
	for op, f := range map[string]func(tx *sql.Tx) error{
		"check": func(tx *sql.Tx) error {
			return errors.Join(guard.Check(ctx, tx, "a", 8), guard.Check(ctx, tx, "a", 8))
		},
		"once":   func(tx *sql.Tx) error { return guard.Once(ctx, tx, "a", noon, 0) },
		"drop":   func(tx *sql.Tx) error { return deletes(guard.Drop(ctx, tx, time.Now().Add(-time.Hour))) },
		"forget": func(tx *sql.Tx) error { return deletes(guard.Forget(ctx, tx, noon.Add(-time.Hour))) },
	} {
		for range 2 { // the second one finds the rows of the first ones
			if err := d.in(ctx, nil, f); err != nil && !errors.Is(err, fence.ErrDone) {
				t.Errorf("%s: %v", op, err)
			}
		}
	}
	if err := guard.Store(victim).Check(ctx, "a", 7); !errors.Is(err, fence.ErrStale) {
		t.Errorf("token 7 after 8: %v; want %v", err, fence.ErrStale)
	}
}

func deletes(_ int64, err error) error { return err }
