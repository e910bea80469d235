package pglock

import (
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/escapement/escapement/locking"
)

const (
	defaultSchema    = "public"
	defaultNamespace = "escapement"
)

// namePattern is for schemas and namespacePattern for namespaces. With 24 bytes of a namespace, the
// longest name of an object is below PostgreSQL's limit of 63 bytes.
var (
	namePattern      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
	namespacePattern = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,23}$`)
)

// objects names the tables and functions of one installation.
type objects struct{ schema, namespace string }

func newObjects(cfg Config) (objects, error) {
	o := objects{schema: cfg.Schema, namespace: cfg.Namespace}
	if o.schema == "" {
		o.schema = defaultSchema
	}
	if o.namespace == "" {
		o.namespace = defaultNamespace
	}
	if !namePattern.MatchString(o.schema) {
		return o, &locking.InputError{Field: "Config.Schema",
			Why: fmt.Sprintf("is %q; use up to 63 letters, digits and underscores", o.schema)}
	}
	if !namespacePattern.MatchString(o.namespace) {
		return o, &locking.InputError{Field: "Config.Namespace",
			Why: fmt.Sprintf("is %q; use up to 24 small letters, digits and underscores", o.namespace)}
	}
	return o, nil
}

// An object in a statement, @locks, and an operator, @=.
var (
	objectPattern   = regexp.MustCompile(`@([a-z_]+)`)
	operatorPattern = regexp.MustCompile(`@([-+*/<>=]+)`)
)

// sql returns statement with each @x replaced by the quoted name of object x, and each @= by PostgreSQL's own
// operator =: an operator without its schema is looked up in the search_path of the session.
func (o objects) sql(statement string) string {
	statement = operatorPattern.ReplaceAllString(statement, "OPERATOR(pg_catalog.$1)")
	return objectPattern.ReplaceAllStringFunc(statement, func(at string) string {
		return pgx.Identifier{o.schema, o.namespace + "_" + at[1:]}.Sanitize()
	})
}
