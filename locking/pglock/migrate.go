package pglock

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations returns the statements of each version, the first of version 1.
func migrations() ([]string, error) {
	entries, err := migrationFiles.ReadDir("migrations") // sorted by name
	if err != nil {
		return nil, err
	}
	all := make([]string, len(entries))
	for i, e := range entries {
		text, err := migrationFiles.ReadFile("migrations/" + e.Name())
		if err != nil {
			return nil, err
		}
		all[i] = string(text)
	}
	return all, nil
}

// ErrNewerSchema is returned by Migrate when a newer version of this package has migrated the
// database. Use that version; the comment on its Migrate lists what older programs can still do.
var ErrNewerSchema = errors.New("the database has a newer version of the lock tables")

// Migrate creates the schema, the tables and functions of cfg's Schema and Namespace, or brings
// them to this package's version, in one transaction. It may be repeated, and several programs may
// run it at once. When the database is up to date, it only reads. The role needs CREATE on the
// schema, and on the database when there is no such schema; it owns the objects that it creates,
// and only this role can migrate further. Objects of these names that another role owns are refused
// with ErrNotOwned, before they are read.
func Migrate(ctx context.Context, pool *pgxpool.Pool, cfg Config) error {
	o, err := newObjects(cfg)
	if err != nil {
		return err
	}
	return migrateObjects(ctx, pool, o)
}

// raceCodes are the answers to CREATE SCHEMA or TABLE IF NOT EXISTS when another transaction creates it just now.
var raceCodes = []string{"23505", "42P06", "42P07", serializationFailure}

func migrateObjects(ctx context.Context, pool *pgxpool.Pool, o objects) error {
	for try := 0; ; try++ {
		err := migrateOnce(ctx, pool, o)
		if err == nil || try == maxTries-1 || !slices.Contains(raceCodes, code(err)) {
			return named(o, err)
		}
	}
}

func named(o objects, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("migrate the lock tables %s: %w", o.sql("@locks"), err)
}

func migrateOnce(ctx context.Context, pool *pgxpool.Pool, o objects) error {
	all, err := migrations()
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		//guard:pglock-migrate-path P4 nothing that another role planted in a schema of the session's search_path is called
		err = exec(ctx, tx, "SET LOCAL search_path = pg_catalog, pg_temp")
		if err != nil {
			return err
		}
		version, err := versionOf(ctx, tx, o, len(all))
		if err != nil || version == len(all) {
			return err
		}
		if err := prepare(ctx, tx, o); err != nil {
			return err
		}
		if version, err = versionOf(ctx, tx, o, len(all)); err != nil { // another program may have migrated meanwhile
			return err
		}
		for _, statements := range all[version:] {
			if err := exec(ctx, tx, o.sql(statements)); err != nil {
				return err
			}
		}
		// Once more: an object that was planted after the first look was replaced, and not created.
		if err := checkOwners(ctx, tx, o); err != nil {
			return err
		}
		return exec(ctx, tx, o.sql(fmt.Sprintf("UPDATE @lock_version SET version = %d", len(all))))
	})
}

// prepare creates the version table, and locks it until the transaction ends, so that one migrates at a time.
func prepare(ctx context.Context, tx pgx.Tx, o objects) error {
	var found bool
	schema := pgx.Identifier{o.schema}.Sanitize()
	err := tx.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", pgx.QueryExecModeExec, schema).Scan(&found)
	if err != nil {
		return err
	}
	if !found {
		if err := exec(ctx, tx, "CREATE SCHEMA IF NOT EXISTS "+schema); err != nil {
			return err
		}
	}
	if err := exec(ctx, tx, o.sql("CREATE TABLE IF NOT EXISTS @lock_version (version int NOT NULL)")); err != nil {
		return err
	}
	if err := checkOwners(ctx, tx, o); err != nil {
		return err
	}
	return exec(ctx, tx, o.sql(`
		LOCK TABLE @lock_version IN ACCESS EXCLUSIVE MODE;
		INSERT INTO @lock_version SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM @lock_version)`))
}

// versionOf returns the version of the tables, 0 without any. A version above known is ErrNewerSchema.
func versionOf(ctx context.Context, tx pgx.Tx, o objects, known int) (version int, err error) {
	if err := checkOwners(ctx, tx, o); err != nil {
		return 0, err
	}
	var found bool
	err = tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", pgx.QueryExecModeExec, o.sql("@lock_version")).Scan(&found)
	if err != nil || !found {
		return 0, err
	}
	err = tx.QueryRow(ctx, o.sql("SELECT coalesce(max(version), 0) FROM @lock_version"), pgx.QueryExecModeExec).Scan(&version)
	if err == nil && version > known {
		err = fmt.Errorf("%w: %d, and this package knows %d", ErrNewerSchema, version, known)
	}
	return version, err
}

// exec runs one or more statements without arguments.
func exec(ctx context.Context, tx pgx.Tx, statements string) error {
	_, err := tx.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol)
	return err
}
