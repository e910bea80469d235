//go:build unix

package pglock_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/pglock"
)

// firstVersion is the migration as it was first shipped, with names as in migrations.
//
//go:embed testdata/0001-first.sql
var firstVersion string

// plantAll creates in schema planted: for each operator of PostgreSQL over the types of the locks one with the same
// operands, for each function that SQL of this package could mean one with the same arguments, types of the names
// of PostgreSQL's, and operators that PostgreSQL would prefer to its own, because they need no conversion. All of
// them raise an exception.
const plantAll = `
DO $do$
DECLARE
	o record;
	n int := 0;
	types oid[] := ARRAY['bool', 'int4', 'int8', 'float8', 'numeric', 'text', 'name', 'date', 'timestamptz', 'timestamp', 'interval', 'text[]']::regtype[]::oid[];
BEGIN
	FOR o IN SELECT oprname, oprleft::regtype AS l, oprright::regtype AS r, oprresult::regtype AS result FROM pg_operator
			WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprleft = ANY (types) AND oprright = ANY (types)
		UNION SELECT '*', 'bigint', 'interval', 'interval' UNION SELECT '*', 'numeric', 'integer', 'numeric'
		UNION SELECT '*', 'float8', 'integer', 'float8' UNION SELECT '||', 'text', 'text[]', 'text[]'
	LOOP
		n := n + 1;
		EXECUTE format('CREATE FUNCTION planted.planted_%s(l %s, r %s) RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''planted operator %s (%s, %s)''; END $f$',
			n, o.l, o.r, o.result, replace(o.oprname, '%', '%%'), o.l, o.r);
		EXECUTE format('CREATE OPERATOR planted.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = planted.planted_%s)', o.oprname, o.l, o.r, n);
	END LOOP;
	FOR o IN SELECT DISTINCT proname, pg_get_function_identity_arguments(oid) AS args, prorettype::regtype AS result FROM pg_proc
		WHERE pronamespace = 'pg_catalog'::regnamespace AND provariadic = 0 AND NOT 'internal'::regtype::oid = ANY (proargtypes)
		AND proname = ANY (ARRAY['current_setting', 'set_config', 'left', 'pg_walfile_name', 'pg_current_wal_lsn', 'clock_timestamp',
			'statement_timestamp', 'pg_notify', 'unnest', 'array_agg', 'array_prepend', 'array_append', 'array_cat', 'count', 'max', 'btrim',
			'date_part', 'extract', 'timezone', 'floor', 'to_regclass', 'to_regnamespace', 'to_regprocedure', 'pg_has_role'])
		AND (SELECT bool_and(t <> '"any"'::regtype AND t <> 'anynonarray'::regtype) FROM unnest(proargtypes) t) IS NOT false
		AND pg_get_function_identity_arguments(oid) !~ 'VARIADIC|ORDER BY' AND prorettype NOT IN (SELECT oid FROM pg_type WHERE typname = 'anyelement')
	LOOP
		EXECUTE format('CREATE FUNCTION planted.%I(%s) RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''planted function %s(%s)''; END $f$',
			o.proname, o.args, o.result, o.proname, o.args);
	END LOOP;
	CREATE FUNCTION planted.refuse(what text) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION 'planted type %', what; END $f$;
	CREATE DOMAIN planted.text AS pg_catalog.text CHECK (planted.refuse('text'));
	CREATE DOMAIN planted.date AS pg_catalog.date CHECK (planted.refuse('date'));
	CREATE DOMAIN planted.timestamptz AS pg_catalog.timestamptz CHECK (planted.refuse('timestamptz'));
	CREATE TABLE planted.pg_proc (oid oid);
	CREATE TABLE planted.pg_class (relname name);
END $do$`

// hostile is a database of the test's own in the shared server, with a role mallory that may create in schema
// planted, a role owner of schema locks, and a role app.
type hostile struct {
	tb    testing.TB
	dsn   string
	admin *pgxpool.Pool
}

var hostileRoles sync.Once

func newHostile(tb testing.TB) *hostile {
	tb.Helper()
	s := theServer(tb)
	h := &hostile{tb: tb}
	hostileRoles.Do(func() { admin(tb, s, "CREATE ROLE mallory LOGIN; CREATE ROLE app LOGIN; CREATE ROLE owner LOGIN") })
	name := fmt.Sprintf("hostile%d", namespaces.Add(1))
	admin(tb, s, "CREATE DATABASE "+name)
	h.dsn = strings.Replace(s.dsn(), "dbname=postgres", "dbname="+name, 1)
	h.admin = connect(tb, h.dsn, nil, nil)
	h.exec(h.admin, `CREATE SCHEMA planted AUTHORIZATION mallory; GRANT USAGE ON SCHEMA planted TO PUBLIC;
		CREATE SCHEMA locks AUTHORIZATION owner; GRANT USAGE ON SCHEMA locks TO app, mallory`)
	return h
}

// as returns a pool of a role with a search_path.
func (h *hostile) as(role, path string) *pgxpool.Pool {
	h.tb.Helper()
	return connect(h.tb, strings.Replace(h.dsn, "user=postgres", "user="+role, 1)+" search_path="+path, nil, nil)
}

func (h *hostile) exec(pool *pgxpool.Pool, statements string) {
	h.tb.Helper()
	if _, err := pool.Exec(h.tb.Context(), statements, pgx.QueryExecModeSimpleProtocol); err != nil {
		h.tb.Fatalf("%s: %v", statements, err)
	}
}

// value returns the only value that a query returns.
func (h *hostile) value(query string) (value string) {
	h.tb.Helper()
	if err := h.admin.QueryRow(h.tb.Context(), "SELECT ("+query+")::text").Scan(&value); err != nil {
		h.tb.Fatalf("%s: %v", query, err)
	}
	return value
}

func (h *hostile) plant() { h.exec(h.as("mallory", "pg_catalog"), plantAll) }

// grant gives app the grants listed in doc.go.
func (h *hostile) grant() {
	h.exec(h.admin, `GRANT SELECT, INSERT, UPDATE, DELETE ON locks.escapement_locks, locks.escapement_lock_waiters TO app`)
}

// asFirstVersion returns statements with the names of the objects in schema locks.
func asFirstVersion(statements string) string {
	return strings.NewReplacer("@locks", "locks.escapement_locks", "@lock_", "locks.escapement_lock_").Replace(statements)
}

// installFirst installs version 1 as role owner.
func (h *hostile) installFirst() {
	owner := h.as("owner", "pg_catalog")
	h.exec(owner, asFirstVersion(firstVersion+"CREATE TABLE @lock_version (version int NOT NULL); INSERT INTO @lock_version VALUES (1)"))
	h.grant()
}

var hostileConfig = pglock.Config{Schema: "locks", CallTimeout: 10 * time.Second}

// tour takes each branch of the functions: grants, holders, waiters, a handover, a renewal, a revocation, a
// take-over, and the removal of idle locks.
func tour(ctx context.Context, d *pglock.Driver, name string) error {
	var errs []error
	note := func(op string, err, want error) {
		if !errors.Is(err, want) {
			errs = append(errs, fmt.Errorf("%s: got %w, want %w", op, err, want))
		}
	}
	acquire := func(owner string, queue bool, from locking.Token) (locking.Grant, error) {
		r := request(name, owner)
		r.Queue, r.From = queue, from
		return d.Acquire(ctx, r)
	}
	a, err := acquire("a", false, 0)
	note("acquire", err, nil)
	_, err = acquire("a", false, 0)
	note("acquire once more", err, nil)
	for _, waiter := range []string{"b", "c", "b"} {
		_, err = acquire(waiter, true, 0)
		note("wait as "+waiter, err, locking.ErrHeld)
	}
	answers, err := d.Renew(ctx, []locking.Renewal{{Name: name, Owner: "a", Token: a.Token, TTL: time.Minute}})
	note("renew", err, nil)
	if len(answers) != 1 || answers[0] != locking.Renewed {
		errs = append(errs, fmt.Errorf("renew: %v", answers))
	}
	o, err := d.Owner(ctx, name)
	note("owner", err, nil)
	if o.Owner != "a" || o.Waiters != 2 || o.Left <= 0 || o.Left > time.Minute {
		errs = append(errs, fmt.Errorf("owner: %+v", o))
	}
	note("release", d.Release(ctx, name, "a"), nil)
	note("release once more", d.Release(ctx, name, "a"), nil)
	_, err = acquire("a", false, 0)
	note("acquire what another one holds", err, locking.ErrHeld)
	b, err := acquire("b", true, 0)
	note("acquire what was handed over", err, nil)
	note("revoke", d.Revoke(ctx, name, b.Token), nil)
	_, err = acquire("b", false, 0)
	note("acquire what was revoked", err, locking.ErrLost)
	taken, err := acquire("d", false, b.Token)
	note("take over", err, nil)
	note("release", d.Release(ctx, name, "d"), nil)
	note("release the waiter", d.Release(ctx, name, "c"), nil)
	if a.Token >= b.Token || b.Token >= taken.Token {
		errs = append(errs, fmt.Errorf("tokens %d, %d, %d do not increase", a.Token, b.Token, taken.Token))
	}
	return errors.Join(errs...)
}

// TestHostileSchema plays all calls where another role has planted something for each operator and function.
func TestHostileSchema(t *testing.T) {
	t.Parallel()
	const path = "planted,pg_catalog"
	h := newHostile(t)
	h.plant()
	owner := h.as("owner", path)
	if err := pglock.Migrate(t.Context(), owner, hostileConfig); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	h.grant()
	old := func() {
		h.exec(h.admin, `INSERT INTO locks.escapement_locks (name, until, day, token) VALUES ('idle', now() - interval '3 days', now()::date - 3, 1) ON CONFLICT DO NOTHING`)
	}
	old()
	if err := tour(t.Context(), pglock.NewDriver(h.as("app", path), hostileConfig), "pinned"); err != nil {
		t.Errorf("by the driver: %v", err)
	}
	// Without the pins the qualified names alone must do, and without the qualified names the pins, see TestHostileFirstVersion.
	functions := "locks.escapement_lock_acquire, locks.escapement_lock_renew, locks.escapement_lock_release"
	for f := range strings.SplitSeq(functions, ", ") {
		h.exec(h.admin, "ALTER FUNCTION "+f+" RESET search_path")
	}
	old()
	app := h.as("app", path)
	call := func(statement string, args ...any) {
		t.Helper()
		if _, err := app.Exec(t.Context(), statement, append([]any{pgx.QueryExecModeExec}, args...)...); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	const acquire = "SELECT * FROM locks.escapement_lock_acquire($1, $2, '', 60000000, 0, 0, $3, 'nobody')"
	call(acquire, "direct", "a", true)
	call(acquire, "direct", "b", true)
	call("SELECT locks.escapement_lock_renew($1, $2, ARRAY[1::bigint], ARRAY[1::bigint])", []string{"direct"}, []string{"a"})
	call("SELECT locks.escapement_lock_release($1, $2)", "direct", "a")
	call(acquire, "direct", "b", true)
	call("SELECT locks.escapement_lock_release($1, $2)", "direct", "b")
	if n := h.value("SELECT count(*) FROM locks.escapement_locks WHERE name = 'idle'"); n != "0" {
		t.Error("the idle lock is still there; the removal was not played")
	}
}

// TestHostileFirstVersion has version 1 of the functions, whose SQL another role can change: *(bigint, interval)
// makes each lease end before it began, so that two owners are granted one lock.
func TestHostileFirstVersion(t *testing.T) {
	t.Parallel()
	const path = "planted,public" // and pg_catalog before them
	h := newHostile(t)
	h.installFirst()
	h.exec(h.as("mallory", "pg_catalog"), `CREATE TABLE planted.stolen (role text); GRANT INSERT ON planted.stolen TO PUBLIC;
		CREATE FUNCTION planted.times(l bigint, r interval) RETURNS interval LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO planted.stolen VALUES (current_user); RETURN interval '-1 second'; END $$;
		CREATE OPERATOR planted.* (LEFTARG = bigint, RIGHTARG = interval, FUNCTION = planted.times)`)
	stolen := func() string { return h.value("SELECT count(*) FROM planted.stolen") }

	app := h.as("app", path)
	d := pglock.NewDriver(app, hostileConfig)
	if err := tour(t.Context(), d, "before"); err != nil || stolen() != "0" {
		t.Errorf("before Migrate: %v; the planted operator ran %s times", err, stolen())
	}

	// A program of the first version, and its statement.
	old := func(name, owner string) (code int) {
		t.Helper()
		err := app.QueryRow(t.Context(), "SELECT code FROM locks.escapement_lock_acquire($1, $2, '', 60000000, 0, 0, false, '')",
			pgx.QueryExecModeExec, name, owner).Scan(&code)
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	if a, b := old("control", "a"), old("control", "b"); a != 1 || b != 1 || stolen() == "0" {
		t.Fatalf("control: version 1 answers %d and %d to two owners; the planted operator should make it grant both", a, b)
	}
	h.exec(h.admin, "TRUNCATE planted.stolen")
	if err := pglock.Migrate(t.Context(), h.as("owner", path), hostileConfig); err != nil {
		t.Fatalf("migrate version 1: %v", err)
	}
	if a, b := old("after", "a"), old("after", "b"); a != 1 || b != 0 {
		t.Errorf("after Migrate: codes %d and %d for two owners of one lock; want 1 and 0", a, b)
	}
	if err := tour(t.Context(), d, "mended"); err != nil || stolen() != "0" {
		t.Errorf("after Migrate: %v; the planted operator ran %s times", err, stolen())
	}
}

// TestHostileDefiner has functions that an operator made SECURITY DEFINER, called by mallory, who brings a path and
// a temporary schema.
func TestHostileDefiner(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	h.plant()
	if err := pglock.Migrate(t.Context(), h.as("owner", "pg_catalog"), hostileConfig); err != nil {
		t.Fatal(err)
	}
	const pins = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'locks'::regnamespace AND proconfig = ARRAY['search_path=pg_catalog, pg_temp']"
	if n := h.value(pins); n != "3" {
		t.Errorf("%s functions pin their search_path; want those that drivers call", n)
	}
	for _, f := range []string{"acquire", "renew", "release"} {
		h.exec(h.admin, "ALTER FUNCTION locks.escapement_lock_"+f+" SECURITY DEFINER")
	}
	conn, err := h.as("mallory", "planted").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, statement := range []string{
		`CREATE TEMP TABLE seen (role text)`,
		`CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (planted.refuse('text'))`,
		`CREATE DOMAIN pg_temp.timestamptz AS pg_catalog.timestamptz CHECK (planted.refuse('timestamptz'))`,
		`CREATE TEMP TABLE pg_operator (oprname name)`,
		`SET search_path = pg_temp, planted, pg_catalog`,
		`SELECT * FROM locks.escapement_lock_acquire('x', 'a', '', 60000000, 0, 0, true, 'nobody')`,
		`SELECT * FROM locks.escapement_lock_acquire('x', 'b', '', 60000000, 0, 0, true, 'nobody')`,
		`SELECT locks.escapement_lock_renew(ARRAY['x'], ARRAY['a'], ARRAY[1::bigint], ARRAY[1::bigint])`,
		`SELECT locks.escapement_lock_release('x', 'a')`,
	} {
		if _, err := conn.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// TestMigratePlanted has tables and functions of the locks' names that mallory made before the
// first Migrate.
func TestMigratePlanted(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	h.exec(h.admin, "CREATE SCHEMA shared; GRANT CREATE, USAGE ON SCHEMA shared TO PUBLIC; CREATE TABLE public.stolen (role text); GRANT INSERT ON public.stolen TO PUBLIC")
	mallory := h.as("mallory", "pg_catalog")
	const steal = `BEGIN INSERT INTO public.stolen VALUES (current_user); RETURN %s; END`
	h.exec(mallory, `CREATE FUNCTION shared.steal() RETURNS trigger LANGUAGE plpgsql AS $$ `+fmt.Sprintf(steal, "new")+` $$;
		CREATE FUNCTION shared.one() RETURNS int LANGUAGE plpgsql AS $$ `+fmt.Sprintf(steal, "0")+` $$`)
	for name, c := range map[string]struct{ plant, kind string }{
		"trigger": {`CREATE TABLE @lock_version (version int NOT NULL); GRANT ALL ON @lock_version TO PUBLIC;
			CREATE TRIGGER t BEFORE INSERT OR UPDATE ON @lock_version FOR EACH ROW EXECUTE FUNCTION shared.steal()`, "relation"},
		"view":     {`CREATE VIEW @lock_version AS SELECT shared.one() AS version; GRANT ALL ON @lock_version TO PUBLIC`, "relation"},
		"locks":    {`CREATE TABLE @locks (name text)`, "relation"},
		"function": {`CREATE FUNCTION @lock_acquire() RETURNS int LANGUAGE sql AS 'SELECT 1'`, "function"},
		"all":      {firstVersion, "function"},
		"helper":   {`CREATE FUNCTION @lock_micros(t timestamptz) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'`, "function"},
	} {
		cfg := pglock.Config{Schema: "shared", Namespace: name}
		h.exec(mallory, strings.ReplaceAll(c.plant, "@", "shared."+name+"_"))
		for _, role := range []string{"postgres", "owner"} {
			err := pglock.Migrate(t.Context(), h.as(role, "pg_catalog"), cfg)
			if !errors.Is(err, pglock.ErrNotOwned) || !strings.Contains(err.Error(), "mallory") || !strings.Contains(err.Error(), c.kind+" shared."+name+"_lock") {
				t.Errorf("%s, migrated by %s: %v; want %v, the object and its owner", name, role, err, pglock.ErrNotOwned)
			}
			cfg.Migrate = true
			if _, err := pglock.NewDriver(h.as(role, "pg_catalog"), cfg).Acquire(t.Context(), request("x", "a")); !errors.Is(err, pglock.ErrNotOwned) {
				t.Errorf("%s, acquired by %s, who would migrate: %v; want %v", name, role, err, pglock.ErrNotOwned)
			}
		}
	}
	if n := h.value("SELECT count(*) FROM public.stolen"); n != "0" {
		t.Errorf("code of mallory ran %s times with the rights of others", n)
	}
	// The objects that a role may use: its own, a group's that it is in, a superuser's, the schema
	// owner's.
	h.exec(h.admin, "CREATE ROLE team; GRANT team TO owner; GRANT CREATE, USAGE ON SCHEMA shared TO team")
	for namespace, role := range map[string]string{"own": "owner", "of_a_group": "team", "of_a_superuser": "postgres"} {
		cfg := pglock.Config{Schema: "shared", Namespace: namespace}
		by := h.as("postgres", "pg_catalog")
		if role != "postgres" {
			by = connect(t, h.dsn+" options='-c role="+role+"'", nil, nil)
		}
		if err := pglock.Migrate(t.Context(), by, cfg); err != nil {
			t.Fatalf("%s: %v", namespace, err)
		}
		h.exec(h.admin, "GRANT SELECT ON shared."+namespace+"_lock_version TO PUBLIC")
		if err := pglock.Migrate(t.Context(), h.as("owner", "pg_catalog"), cfg); err != nil {
			t.Errorf("%s, migrated once more: %v", namespace, err)
		}
	}
}

// TestMigrateKeepsAnOwnTimeline has a timeline function of the operator's.
func TestMigrateKeepsAnOwnTimeline(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	h.installFirst()
	h.exec(h.admin, `CREATE OR REPLACE FUNCTION locks.escapement_lock_timeline() RETURNS text LANGUAGE sql AS $$ SELECT 'one' $$`)
	if err := pglock.Migrate(t.Context(), h.as("owner", "pg_catalog"), hostileConfig); err != nil {
		t.Fatal(err)
	}
	if got := h.value("SELECT locks.escapement_lock_timeline()"); got != "one" {
		t.Errorf("the operator's function was replaced by one that returns %q", got)
	}
	h.exec(h.admin, `DROP FUNCTION locks.escapement_lock_timeline`)
	h.exec(h.as("owner", "pg_catalog"), asFirstVersion("UPDATE @lock_version SET version = 1"))
	if err := pglock.Migrate(t.Context(), h.as("owner", "pg_catalog"), hostileConfig); err != nil {
		t.Fatal(err)
	}
	if got := h.value("SELECT locks.escapement_lock_timeline()"); got != "00000001" {
		t.Errorf("timeline %q of a new server", got)
	}
}
