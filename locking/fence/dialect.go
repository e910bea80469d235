package fence

import (
	"fmt"
	"regexp"
	"strings"
)

// Dialect is the kind of a SQL database.
type Dialect uint8

const (
	// Postgres is PostgreSQL 9.5 or newer, with placeholders $1.
	Postgres Dialect = iota + 1
	// SQLite is SQLite 3.35 or newer, with placeholders ?.
	SQLite
	// MySQL is MySQL 8.0 or newer, with placeholders ?. It follows MySQL's manual and is not tested.
	MySQL
)

// String returns the name of the database.
func (d Dialect) String() string {
	switch d {
	case Postgres:
		return "PostgreSQL"
	case SQLite:
		return "SQLite"
	case MySQL:
		return "MySQL"
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// tableName matches a plain identifier, with or without a schema. With the suffix of the second table it stays
// below PostgreSQL's 63 bytes.
var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,49}\.)?[A-Za-z_][A-Za-z0-9_]{0,49}$`)

// statements are the SQL for one dialect and one pair of tables: <table> has the largest tokens, <table>_ticks the
// rows of Once.
type statements struct {
	schema string
	claim  string // (fence, token); stores the larger token, and locks the row
	read   string // (fence) -> the larger token; "": claim returns it
	once   string // (job, tick, shard); affects no row when the row exists
	forget string // (tick)
	drop   string // (seconds since 1970)
}

const (
	schemaText = `CREATE TABLE IF NOT EXISTS <table> (
	fence <text> NOT NULL PRIMARY KEY,
	token BIGINT NOT NULL,
	seen BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS <table>_ticks (
	tick BIGINT NOT NULL,
	job <text> NOT NULL,
	shard INTEGER NOT NULL,
	PRIMARY KEY (tick, job, shard)
);
`
	// claimText is one statement, so that the row is locked, or made, when it is compared.
	claimText = `INSERT INTO <table> AS f (fence, token, seen) VALUES (?, ?, <now>)
ON CONFLICT (fence) DO UPDATE SET token = <larger>(f.token, excluded.token), seen = excluded.seen
RETURNING token`
	onceText   = `INSERT INTO <table>_ticks (job, tick, shard) VALUES (?, ?, ?) ON CONFLICT (tick, job, shard) DO NOTHING`
	forgetText = `DELETE FROM <table>_ticks WHERE tick <below> ?`
	dropText   = `DELETE FROM <table> WHERE seen <below> ?`

	// In MySQL an upsert returns no row, but it locks the row. FOR UPDATE reads the row itself, not a snapshot.
	claimMySQL = `INSERT INTO <table> (fence, token, seen) VALUES (?, ?, <now>)
ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token)), seen = VALUES(seen)`
	readMySQL = `SELECT token FROM <table> WHERE fence = ? FOR UPDATE`
	onceMySQL = `INSERT IGNORE INTO <table>_ticks (job, tick, shard) VALUES (?, ?, ?)`
)

// replacements returns the dialect's values for <name> in the texts above. The time is the database's, in seconds.
// In PostgreSQL each name has its schema: another role may create functions, operators and types in a schema of the
// session's search_path.
func (d Dialect) replacements(table string) []string {
	w := map[Dialect][]string{
		Postgres: {
			"<text>", "pg_catalog.text", "<larger>", "GREATEST", "<below>", "OPERATOR(pg_catalog.<)",
			"<now>", "pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp()))::bigint",
		},
		SQLite: {"<text>", "TEXT", "<larger>", "max", "<below>", "<", "<now>", "CAST(strftime('%s', 'now') AS INTEGER)"},
		MySQL:  {"<text>", "VARBINARY(512)", "<below>", "<", "<now>", "unix_timestamp()"},
	}[d]
	return append(w, "<table>", table)
}

func (d Dialect) statements(table string) statements {
	r := strings.NewReplacer(d.replacements(table)...)
	s := statements{schema: schemaText, claim: claimText, once: onceText, forget: forgetText, drop: dropText}
	if d == MySQL {
		s.claim, s.read, s.once = claimMySQL, readMySQL, onceMySQL
	}
	for _, text := range []*string{&s.schema, &s.claim, &s.read, &s.once, &s.forget, &s.drop} {
		*text = d.numbered(r.Replace(*text))
	}
	return s
}

// numbered numbers the placeholders for PostgreSQL.
func (d Dialect) numbered(text string) string {
	if d != Postgres {
		return text
	}
	parts := strings.Split(text, "?")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			fmt.Fprintf(&b, "$%d", i)
		}
		b.WriteString(part)
	}
	return b.String()
}
