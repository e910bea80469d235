-- The tables. migrate.go replaces @x by the quoted name of the object x in the schema and the namespace.
-- Times are the server's. The functions are in the latest file; version 1 had its own.

-- One row for each lock, from its first acquisition until it was idle for a day.
CREATE TABLE @locks (
	name     text COLLATE "C" PRIMARY KEY,
	owner    text NOT NULL DEFAULT '',                 -- '' when released
	holder   text NOT NULL DEFAULT '',                 -- the holder's text
	token    bigint NOT NULL DEFAULT 0,                -- of the last grant
	timeline text NOT NULL DEFAULT '',                 -- of the server that gave the token
	until    timestamptz NOT NULL DEFAULT '-infinity', -- end of the lease, its delay included
	revoked  boolean NOT NULL DEFAULT false,
	released text[] NOT NULL DEFAULT '{}',             -- the last eight owners who released
	day      date NOT NULL DEFAULT '-infinity'         -- of until, UTC; it is indexed and rarely changes
) WITH (fillfactor = 50);
CREATE INDEX ON @locks (day);

CREATE TABLE @lock_waiters (
	name    text COLLATE "C" NOT NULL,
	owner   text NOT NULL,
	place   bigint NOT NULL,      -- the microsecond in which the waiter came
	alive   timestamptz NOT NULL, -- until when the waiter keeps its place
	channel text NOT NULL,        -- for its notification; '' for none
	PRIMARY KEY (name, owner)
) WITH (fillfactor = 50);
CREATE INDEX ON @lock_waiters (name, place);
