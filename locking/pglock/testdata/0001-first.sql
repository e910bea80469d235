-- The tables and functions of version 1. migrate.go replaces @x by the quoted name of the object x in
-- the schema and the namespace. Each function is one call of a driver, or part of one.
--
-- A lock changes hands under the row lock of its row in @locks: a function first locks the row, and then
-- reads the clock. Waiters join and keep their places without that lock, because PostgreSQL does not serve
-- row locks in the order in which they were asked for. Times are the server's. Durations are microseconds,
-- as tokens.

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

-- @lock_timeline identifies the server's history: a promoted standby has another one. Where these
-- functions are not to be had, replace it by one that returns a constant.
CREATE FUNCTION @lock_timeline() RETURNS text LANGUAGE sql AS $$
	SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)
$$;

CREATE FUNCTION @lock_micros(t timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
	SELECT (extract(epoch FROM t) * 1000000)::bigint
$$;

-- @lock_after returns the time some microseconds after t.
CREATE FUNCTION @lock_after(t timestamptz, micros bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
	SELECT t + micros * interval '1 microsecond'
$$;

CREATE FUNCTION @lock_day(t timestamptz) RETURNS date LANGUAGE sql STABLE AS $$
	SELECT (t AT TIME ZONE 'UTC')::date
$$;

-- @lock_durable makes this transaction wait until it is on disk, and at the synchronous standbys.
CREATE FUNCTION @lock_durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('synchronous_commit') IN ('off', 'local') THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
END $$;

-- @lock_give grants a lock and returns the token. The first token on another timeline is a minute ahead
-- of the clock, because the clocks of two servers differ.
CREATE FUNCTION @lock_give(p_name text, p_owner text, p_holder text, p_lasts bigint, p_after bigint, p_now timestamptz)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	here text := @lock_timeline();
	given bigint;
BEGIN
	UPDATE @locks l SET
		owner = p_owner, holder = p_holder, until = @lock_after(p_now, p_lasts), revoked = false,
		day = @lock_day(@lock_after(p_now, p_lasts)), timeline = here,
		token = greatest(l.token + 1, @lock_micros(p_now), p_after + 1) + CASE WHEN l.timeline = here THEN 0 ELSE 60000000 END
		WHERE l.name = p_name RETURNING l.token INTO given;
	RETURN given;
END $$;

-- @lock_first returns the first living waiter.
CREATE FUNCTION @lock_first(p_name text, p_now timestamptz) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT w.owner FROM @lock_waiters w WHERE w.name = p_name AND w.alive > p_now ORDER BY w.place, w.owner LIMIT 1);
END $$;

-- @lock_hand_over gives a free lock to waiter p_first and notifies it. The lock lapses after the queue
-- timeout, 3 s, unless the waiter asks.
CREATE FUNCTION @lock_hand_over(p_name text, p_first text, p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	p_channel text;
BEGIN
	DELETE FROM @lock_waiters w WHERE w.name = p_name AND w.owner = p_first RETURNING w.channel INTO p_channel;
	PERFORM @lock_give(p_name, p_first, '', 3000000, 0, p_now);
	IF p_channel <> '' THEN
		PERFORM pg_notify(p_channel, p_first);
	END IF;
END $$;

-- @lock_join gives a waiter its place in the queue, or keeps it, and returns it: 1 is next, 0 means that
-- all 1,000 places are taken. A waiter that comes removes those that have not asked for the queue timeout.
CREATE FUNCTION @lock_join(p_name text, p_owner text, p_channel text, p_now timestamptz, OUT place bigint, OUT joined boolean)
LANGUAGE plpgsql AS $$
DECLARE
	mine bigint;
BEGIN
	joined := false;
	UPDATE @lock_waiters w SET alive = p_now + interval '3 seconds', channel = p_channel
		WHERE w.name = p_name AND w.owner = p_owner AND w.alive > p_now RETURNING w.place INTO mine;
	IF mine IS NULL THEN
		DELETE FROM @lock_waiters w USING (
			SELECT d.owner FROM @lock_waiters d WHERE d.name = p_name AND d.alive <= p_now FOR UPDATE SKIP LOCKED
		) dead WHERE w.name = p_name AND w.owner = dead.owner;
		SELECT count(*) INTO place FROM @lock_waiters w WHERE w.name = p_name;
		IF place >= 1000 THEN
			place := 0;
			RETURN;
		END IF;
		mine := @lock_micros(p_now);
		INSERT INTO @lock_waiters VALUES (p_name, p_owner, mine, p_now + interval '3 seconds', p_channel)
			ON CONFLICT DO NOTHING;
		joined := true;
	END IF;
	SELECT count(*) INTO place FROM @lock_waiters w
		WHERE w.name = p_name AND w.alive > p_now AND (w.place, w.owner) <= (mine, p_owner);
END $$;

-- @lock_tidy removes up to two locks that were idle for a day. It is called for each new row, so the
-- table has the locks of about two days. The clock is past the tokens of the removed rows.
CREATE FUNCTION @lock_tidy(p_new text, p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	WITH idle AS (
		SELECT l.name FROM @locks l
		WHERE l.day < @lock_day(p_now) - 1 AND l.name <> p_new
			AND l.until < p_now - interval '1 day' AND l.token < @lock_micros(p_now - interval '1 day')
		ORDER BY l.day LIMIT 2 FOR UPDATE SKIP LOCKED
	), waiters AS (
		DELETE FROM @lock_waiters w USING idle WHERE w.name = idle.name
	)
	DELETE FROM @locks l USING idle WHERE l.name = idle.name;
END $$;

-- @lock_acquire grants a lock, or gives a place in its queue, or tells who holds it. The same owner may
-- repeat it: the lock then lasts another p_lasts.
--
-- p_lasts is ttl and delay; p_after a token that the new one must exceed, or 0; p_from the token of the
-- grant to take over, or 0; p_queue whether to wait, with channel p_channel.
--
-- code  1  granted, with its token
--       0  held, by owner with text holder; others can have it in remaining; place of the caller, or 0;
--          joined when the caller has just got the place: a release under way may not have seen it, so
--          the caller asks once more
--       2  this owner has released the lock already: the request is a late copy
--       3  p_after is more than an hour ahead of this server's clock
--       4  this owner's grant was revoked before it was asked for again
CREATE FUNCTION @lock_acquire(
	p_name text, p_owner text, p_holder text, p_lasts bigint, p_after bigint, p_from bigint, p_queue boolean, p_channel text,
	OUT code int, OUT token bigint, OUT owner text, OUT holder text, OUT remaining bigint, OUT place bigint, OUT joined boolean
) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
	l @locks;
	p_now timestamptz;
	first text;
BEGIN
	code := 0; token := 0; owner := ''; holder := ''; remaining := 0; place := 0; joined := false;
	SELECT * INTO l FROM @locks x WHERE x.name = p_name;
	p_now := clock_timestamp();
	IF l.owner NOT IN ('', p_owner) AND l.until > p_now AND l.token <> p_from THEN
		owner := l.owner; holder := l.holder; remaining := @lock_micros(l.until) - @lock_micros(p_now);
		IF p_queue THEN
			SELECT j.place, j.joined INTO place, joined FROM @lock_join(p_name, p_owner, p_channel, p_now) j;
		END IF;
		RETURN;
	END IF;

	PERFORM @lock_durable();
	LOOP
		SELECT * INTO l FROM @locks x WHERE x.name = p_name FOR UPDATE;
		EXIT WHEN FOUND;
		INSERT INTO @locks (name) VALUES (p_name) ON CONFLICT DO NOTHING;
		PERFORM @lock_tidy(p_name, clock_timestamp());
	END LOOP;
	p_now := clock_timestamp();
	IF l.owner <> '' AND l.until > p_now THEN
		IF l.owner = p_owner AND l.revoked THEN
			code := 4;
			RETURN;
		ELSIF l.owner = p_owner AND l.token > p_after THEN
			UPDATE @locks x SET until = @lock_after(p_now, p_lasts), holder = p_holder,
				day = @lock_day(@lock_after(p_now, p_lasts)) WHERE x.name = p_name;
			DELETE FROM @lock_waiters w WHERE w.name = p_name AND w.owner = p_owner; -- it joined during the handover
			code := 1; token := l.token;
			RETURN;
		ELSIF l.owner <> p_owner AND l.token <> p_from THEN -- granted since the first look
			owner := l.owner; holder := l.holder; remaining := @lock_micros(l.until) - @lock_micros(p_now);
		END IF;
		-- A lock that was handed over with a token that is not above p_after is granted anew below.
		first := p_owner; -- it may have a place
	ELSIF p_owner <> ALL (l.released) THEN
		first := @lock_first(p_name, p_now);
		IF first <> p_owner THEN
			PERFORM @lock_hand_over(p_name, first, p_now);
			owner := first; remaining := 3000000;
		END IF;
	END IF;
	IF owner <> '' THEN
		IF p_queue THEN
			SELECT j.place, j.joined INTO place, joined FROM @lock_join(p_name, p_owner, p_channel, p_now) j;
		END IF;
		RETURN;
	END IF;

	IF p_owner = ANY (l.released) THEN
		code := 2;
	ELSIF p_after > @lock_micros(p_now) + 3600000000 THEN
		code := 3;
	ELSE
		IF first = p_owner THEN
			DELETE FROM @lock_waiters w WHERE w.name = p_name AND w.owner = p_owner;
		END IF;
		code := 1; token := @lock_give(p_name, p_owner, p_holder, p_lasts, p_after, p_now);
	END IF;
END $$;

-- @lock_renew extends the grants of a batch and returns their answers, in order: 1 renewed, 0 not held
-- any more, 2 held and revoked. The rows are locked by name, so that two batches cannot block each other.
CREATE FUNCTION @lock_renew(p_names text[], p_owners text[], p_tokens bigint[], p_lasts bigint[]) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	p_now timestamptz;
	answers int[];
BEGIN
	PERFORM @lock_durable();
	PERFORM 1 FROM @locks l WHERE l.name = ANY (p_names) ORDER BY l.name FOR UPDATE;
	p_now := clock_timestamp();
	WITH asked AS (
		SELECT * FROM unnest(p_names, p_owners, p_tokens, p_lasts) WITH ORDINALITY AS a(name, owner, token, lasts, nr)
	), answered AS (
		SELECT a.nr, a.name, a.lasts, CASE WHEN l.revoked THEN 2 ELSE 1 END AS code
		FROM asked a JOIN @locks l ON l.name = a.name AND l.owner = a.owner AND l.token = a.token AND l.until > p_now
	), renewed AS (
		UPDATE @locks l SET until = @lock_after(p_now, a.lasts), day = @lock_day(@lock_after(p_now, a.lasts))
		FROM answered a WHERE a.code = 1 AND l.name = a.name
	)
	SELECT array_agg(coalesce(b.code, 0) ORDER BY a.nr) INTO answers FROM asked a LEFT JOIN answered b ON b.nr = a.nr;
	RETURN answers;
END $$;

-- @lock_release gives back a lock that this owner holds, or its place in the queue. It may be repeated.
-- It returns 1 released, now or before; 0 another owner holds the lock; -1 nobody does.
CREATE FUNCTION @lock_release(p_name text, p_owner text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	l @locks;
	p_now timestamptz;
	first text;
BEGIN
	PERFORM @lock_durable();
	SELECT * INTO l FROM @locks x WHERE x.name = p_name FOR UPDATE;
	p_now := clock_timestamp();
	DELETE FROM @lock_waiters w WHERE w.name = p_name AND w.owner = p_owner;
	IF l.owner = p_owner AND l.until > p_now THEN
		UPDATE @locks x SET owner = '', holder = '', until = p_now, revoked = false,
			released = (p_owner || x.released)[1:8] WHERE x.name = p_name;
		first := @lock_first(p_name, p_now);
		IF first IS NOT NULL THEN
			PERFORM @lock_hand_over(p_name, first, p_now);
		END IF;
		RETURN 1;
	END IF;
	IF p_owner = ANY (l.released) THEN
		RETURN 1;
	END IF;
	RETURN CASE WHEN l.owner <> '' AND l.until > p_now THEN 0 ELSE -1 END;
END $$;
