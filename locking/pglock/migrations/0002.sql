-- The functions. Each is one call of a driver, or part of one. migrate.go replaces @x as in 0001.sql, and @+ by
-- OPERATOR(pg_catalog.+): another role that may create in a schema of the caller's search_path could otherwise plant
-- *(bigint, interval), which PostgreSQL prefers to its own operator, as no conversion is needed. So all operators
-- and functions are qualified, and the functions that drivers call pin search_path for themselves and for those that
-- they call, with pg_temp last. All @ operators bind alike: nested ones stand in parentheses.
--
-- A lock changes hands under the row lock of its row in @locks: a function first locks the row, and then
-- reads the clock. Waiters join and keep their places without that lock, because PostgreSQL does not serve
-- row locks in the order in which they were asked for. Durations are microseconds, as tokens.

-- @lock_timeline identifies the server's history: a promoted standby has another one. Where these
-- functions are not to be had, replace it by one that returns a constant: a replaced one stays.
DO $do$ BEGIN
	IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_proc p WHERE p.oid @= pg_catalog.to_regprocedure('@lock_timeline()')
		AND pg_catalog.btrim(p.prosrc, E' \t\n') @<> 'SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)') THEN
		CREATE OR REPLACE FUNCTION @lock_timeline() RETURNS text LANGUAGE sql AS $$
			SELECT pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
		$$;
	END IF;
END $do$;

CREATE OR REPLACE FUNCTION @lock_micros(t timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
	SELECT (extract(epoch FROM t)::double precision @* 1000000::double precision)::bigint
$$;

-- @lock_after returns the time some microseconds after t.
CREATE OR REPLACE FUNCTION @lock_after(t timestamptz, micros bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
	SELECT t @+ (micros::double precision @* interval '1 microsecond')
$$;

CREATE OR REPLACE FUNCTION @lock_day(t timestamptz) RETURNS date LANGUAGE sql STABLE AS $$
	SELECT (t AT TIME ZONE 'UTC')::pg_catalog.date
$$;

-- @lock_durable makes this transaction wait until it is on disk, and at the synchronous standbys.
CREATE OR REPLACE FUNCTION @lock_durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF pg_catalog.current_setting('synchronous_commit') @= ANY (ARRAY['off', 'local']) THEN
		PERFORM pg_catalog.set_config('synchronous_commit', 'on', true);
	END IF;
END $$;

-- @lock_give grants a lock and returns the token. The first token on another timeline is a minute ahead
-- of the clock, because the clocks of two servers differ.
CREATE OR REPLACE FUNCTION @lock_give(p_name text, p_owner text, p_holder text, p_lasts bigint, p_after bigint, p_now timestamptz)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	here pg_catalog.text := @lock_timeline();
	given bigint;
BEGIN
	UPDATE @locks l SET
		owner = p_owner, holder = p_holder, until = @lock_after(p_now, p_lasts), revoked = false,
		day = @lock_day(@lock_after(p_now, p_lasts)), timeline = here,
		token = greatest(l.token @+ 1, @lock_micros(p_now), p_after @+ 1) @+ CASE WHEN l.timeline @= here THEN 0 ELSE 60000000 END
		WHERE l.name @= p_name RETURNING l.token INTO given;
	RETURN given;
END $$;

-- @lock_first returns the first living waiter.
CREATE OR REPLACE FUNCTION @lock_first(p_name text, p_now timestamptz) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT w.owner FROM @lock_waiters w WHERE w.name @= p_name AND w.alive @> p_now ORDER BY w.place, w.owner LIMIT 1);
END $$;

-- @lock_hand_over gives a free lock to waiter p_first and notifies it. The lock lapses after the queue
-- timeout, 3 s, unless the waiter asks.
CREATE OR REPLACE FUNCTION @lock_hand_over(p_name text, p_first text, p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	p_channel pg_catalog.text;
BEGIN
	DELETE FROM @lock_waiters w WHERE w.name @= p_name AND w.owner @= p_first RETURNING w.channel INTO p_channel;
	PERFORM @lock_give(p_name, p_first, '', 3000000, 0, p_now);
	IF p_channel @<> '' THEN
		PERFORM pg_catalog.pg_notify(p_channel, p_first);
	END IF;
END $$;

-- @lock_join gives a waiter its place in the queue, or keeps it, and returns it: 1 is next, 0 means that
-- all 1,000 places are taken. A waiter that comes removes those that have not asked for the queue timeout.
CREATE OR REPLACE FUNCTION @lock_join(p_name text, p_owner text, p_channel text, p_now timestamptz, OUT place bigint, OUT joined boolean)
LANGUAGE plpgsql AS $$
DECLARE
	mine bigint;
BEGIN
	joined := false;
	UPDATE @lock_waiters w SET alive = p_now @+ interval '3 seconds', channel = p_channel
		WHERE w.name @= p_name AND w.owner @= p_owner AND w.alive @> p_now RETURNING w.place INTO mine;
	IF mine IS NULL THEN
		DELETE FROM @lock_waiters w USING (
			SELECT d.owner FROM @lock_waiters d WHERE d.name @= p_name AND d.alive @<= p_now FOR UPDATE SKIP LOCKED
		) dead WHERE w.name @= p_name AND w.owner @= dead.owner;
		SELECT pg_catalog.count(*) INTO place FROM @lock_waiters w WHERE w.name @= p_name;
		IF place @>= 1000 THEN
			place := 0;
			RETURN;
		END IF;
		mine := @lock_micros(p_now);
		INSERT INTO @lock_waiters VALUES (p_name, p_owner, mine, p_now @+ interval '3 seconds', p_channel)
			ON CONFLICT DO NOTHING;
		joined := true;
	END IF;
	SELECT pg_catalog.count(*) INTO place FROM @lock_waiters w
		WHERE w.name @= p_name AND w.alive @> p_now AND (w.place, w.owner) @<= (mine, p_owner);
END $$;

-- @lock_tidy removes up to two locks that were idle for a day. It is called for each new row, so the
-- table has the locks of about two days. The clock is past the tokens of the removed rows.
CREATE OR REPLACE FUNCTION @lock_tidy(p_new text, p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	WITH idle AS (
		SELECT l.name FROM @locks l
		WHERE l.day @< (@lock_day(p_now) @- 1) AND l.name @<> p_new
			AND l.until @< (p_now @- interval '1 day') AND l.token @< @lock_micros(p_now @- interval '1 day')
		ORDER BY l.day LIMIT 2 FOR UPDATE SKIP LOCKED
	), waiters AS (
		DELETE FROM @lock_waiters w USING idle WHERE w.name @= idle.name
	)
	DELETE FROM @locks l USING idle WHERE l.name @= idle.name;
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
CREATE OR REPLACE FUNCTION @lock_acquire(
	p_name text, p_owner text, p_holder text, p_lasts bigint, p_after bigint, p_from bigint, p_queue boolean, p_channel text,
	OUT code int, OUT token bigint, OUT owner text, OUT holder text, OUT remaining bigint, OUT place bigint, OUT joined boolean
) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
	l @locks;
	p_now timestamp with time zone;
	first pg_catalog.text;
BEGIN
	code := 0; token := 0; owner := ''; holder := ''; remaining := 0; place := 0; joined := false;
	SELECT * INTO l FROM @locks x WHERE x.name @= p_name;
	p_now := pg_catalog.clock_timestamp();
	IF l.owner @<> '' AND l.owner @<> p_owner AND l.until @> p_now AND l.token @<> p_from THEN
		owner := l.owner; holder := l.holder; remaining := @lock_micros(l.until) @- @lock_micros(p_now);
		IF p_queue THEN
			SELECT j.place, j.joined INTO place, joined FROM @lock_join(p_name, p_owner, p_channel, p_now) j;
		END IF;
		RETURN;
	END IF;

	PERFORM @lock_durable();
	LOOP
		SELECT * INTO l FROM @locks x WHERE x.name @= p_name FOR UPDATE;
		EXIT WHEN FOUND;
		INSERT INTO @locks (name) VALUES (p_name) ON CONFLICT DO NOTHING;
		PERFORM @lock_tidy(p_name, pg_catalog.clock_timestamp());
	END LOOP;
	p_now := pg_catalog.clock_timestamp();
	IF l.owner @<> '' AND l.until @> p_now THEN
		IF l.owner @= p_owner AND l.revoked THEN
			code := 4;
			RETURN;
		ELSIF l.owner @= p_owner AND l.token @> p_after THEN
			UPDATE @locks x SET until = @lock_after(p_now, p_lasts), holder = p_holder,
				day = @lock_day(@lock_after(p_now, p_lasts)) WHERE x.name @= p_name;
			DELETE FROM @lock_waiters w WHERE w.name @= p_name AND w.owner @= p_owner; -- it joined during the handover
			code := 1; token := l.token;
			RETURN;
		ELSIF l.owner @<> p_owner AND l.token @<> p_from THEN -- granted since the first look
			owner := l.owner; holder := l.holder; remaining := @lock_micros(l.until) @- @lock_micros(p_now);
		END IF;
		-- A lock that was handed over with a token that is not above p_after is granted anew below.
		first := p_owner; -- it may have a place
	ELSIF p_owner @<> ALL (l.released) THEN
		first := @lock_first(p_name, p_now);
		IF first @<> p_owner THEN
			PERFORM @lock_hand_over(p_name, first, p_now);
			owner := first; remaining := 3000000;
		END IF;
	END IF;
	IF owner @<> '' THEN
		IF p_queue THEN
			SELECT j.place, j.joined INTO place, joined FROM @lock_join(p_name, p_owner, p_channel, p_now) j;
		END IF;
		RETURN;
	END IF;

	IF p_owner @= ANY (l.released) THEN
		code := 2;
	ELSIF p_after @> (@lock_micros(p_now) @+ 3600000000) THEN
		code := 3;
	ELSE
		IF first @= p_owner THEN
			DELETE FROM @lock_waiters w WHERE w.name @= p_name AND w.owner @= p_owner;
		END IF;
		code := 1; token := @lock_give(p_name, p_owner, p_holder, p_lasts, p_after, p_now);
	END IF;
END $$;

-- @lock_renew extends the grants of a batch and returns their answers, in order: 1 renewed, 0 not held
-- any more, 2 held and revoked. The rows are locked by name, so that two batches cannot block each other.
CREATE OR REPLACE FUNCTION @lock_renew(p_names text[], p_owners text[], p_tokens bigint[], p_lasts bigint[]) RETURNS int[]
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	p_now timestamp with time zone;
	answers int[];
BEGIN
	PERFORM @lock_durable();
	PERFORM 1 FROM @locks l WHERE l.name @= ANY (p_names) ORDER BY l.name FOR UPDATE;
	p_now := pg_catalog.clock_timestamp();
	WITH asked AS (
		SELECT * FROM ROWS FROM (pg_catalog.unnest(p_names), pg_catalog.unnest(p_owners), pg_catalog.unnest(p_tokens), pg_catalog.unnest(p_lasts))
			WITH ORDINALITY AS a(name, owner, token, lasts, nr)
	), answered AS (
		SELECT a.nr, a.name, a.lasts, CASE WHEN l.revoked THEN 2 ELSE 1 END AS code
		FROM asked a JOIN @locks l ON l.name @= a.name AND l.owner @= a.owner AND l.token @= a.token AND l.until @> p_now
	), renewed AS (
		UPDATE @locks l SET until = @lock_after(p_now, a.lasts), day = @lock_day(@lock_after(p_now, a.lasts))
		FROM answered a WHERE a.code @= 1 AND l.name @= a.name
	)
	SELECT pg_catalog.array_agg(coalesce(b.code, 0) ORDER BY a.nr) INTO answers FROM asked a LEFT JOIN answered b ON b.nr @= a.nr;
	RETURN answers;
END $$;

-- @lock_release gives back a lock that this owner holds, or its place in the queue. It may be repeated.
-- It returns 1 released, now or before; 0 another owner holds the lock; -1 nobody does.
CREATE OR REPLACE FUNCTION @lock_release(p_name text, p_owner text) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	l @locks;
	p_now timestamp with time zone;
	first pg_catalog.text;
BEGIN
	PERFORM @lock_durable();
	SELECT * INTO l FROM @locks x WHERE x.name @= p_name FOR UPDATE;
	p_now := pg_catalog.clock_timestamp();
	DELETE FROM @lock_waiters w WHERE w.name @= p_name AND w.owner @= p_owner;
	IF l.owner @= p_owner AND l.until @> p_now THEN
		UPDATE @locks x SET owner = '', holder = '', until = p_now, revoked = false,
			released = (pg_catalog.array_prepend(p_owner, x.released))[1:8] WHERE x.name @= p_name;
		first := @lock_first(p_name, p_now);
		IF first IS NOT NULL THEN
			PERFORM @lock_hand_over(p_name, first, p_now);
		END IF;
		RETURN 1;
	END IF;
	IF p_owner @= ANY (l.released) THEN
		RETURN 1;
	END IF;
	RETURN CASE WHEN l.owner @<> '' AND l.until @> p_now THEN 0 ELSE -1 END;
END $$;
