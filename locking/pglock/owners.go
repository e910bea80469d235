package pglock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// ErrNotOwned is returned by Migrate when a table or function of the locks belongs to a role that
// could take over the caller's rights with it: the owner of a function, or of a table's trigger,
// chooses code that runs in the caller's name. The error names both.
var ErrNotOwned = errors.New("belongs to a role that the caller cannot trust with its own rights")

// ownersStatement returns the first object of the names $2 in schema $1 whose owner the current
// role does not trust, and that owner. Trusted are the role itself and superusers; a role that is
// no superuser also trusts the roles that it is a member of and the owner of the schema, who can
// replace everything in it.
const ownersStatement = `
	SELECT o.kind, o.name, owner.rolname FROM (
		SELECT 'relation', c.relname, c.relowner, c.relnamespace FROM pg_catalog.pg_class c
		UNION ALL
		SELECT 'function', p.proname, p.proowner, p.pronamespace FROM pg_catalog.pg_proc p
	) o (kind, name, owner, namespace)
		JOIN pg_catalog.pg_roles owner ON owner.oid @= o.owner
		JOIN pg_catalog.pg_namespace n ON n.oid @= o.namespace
		JOIN pg_catalog.pg_roles me ON me.rolname @= current_user
	WHERE n.nspname @= $1 AND o.name @= ANY ($2::pg_catalog.name[]) AND owner.oid @<> me.oid AND NOT owner.rolsuper
		AND (me.rolsuper OR NOT (pg_catalog.pg_has_role(owner.oid, 'USAGE') OR pg_catalog.pg_has_role(owner.oid, n.nspowner, 'USAGE')))
	ORDER BY o.kind, o.name LIMIT 1`

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// checkOwners returns ErrNotOwned when an object of the locks is another's.
func checkOwners(ctx context.Context, db querier, o objects) error {
	names, err := o.names()
	if err != nil {
		return err
	}
	var kind, name, owner string
	err = db.QueryRow(ctx, o.sql(ownersStatement), pgx.QueryExecModeExec, o.schema, names).Scan(&kind, &name, &owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	//guard:pglock-owners P4 nothing that another role planted under the names of the locks is read or called
	if err == nil {
		err = fmt.Errorf("%w: %s %s.%s of role %q: if the role is yours, migrate as that role; otherwise drop the object, "+
			"and use a schema in which no other role may create", ErrNotOwned, kind, o.schema, name, owner)
	}
	return err
}

// names returns the names of all tables and functions of all versions.
func (o objects) names() ([]string, error) {
	all, err := migrations()
	if err != nil {
		return nil, err
	}
	names := []string{o.namespace + "_lock_version"}
	for _, statements := range all {
		for _, at := range objectPattern.FindAllString(statements, -1) {
			names = append(names, o.namespace+"_"+at[1:])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
