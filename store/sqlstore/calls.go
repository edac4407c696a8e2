package sqlstore

// calls are all calls, made once.
type calls struct {
	ask, await, release, rejoin, renew, takeSignal, breakLease, inspect, list, hold, sweep, longestTTL statement
	// These are for locks of other kinds than a mutex.
	askKind, awaitKind, releaseKind, renewKind, downgrade, resize statement
	// batch is nil if the dialect has no such procedure.
	batch statement
}

func callsIn(e engine, schema string) calls {
	const answer = "verdict, token, spare, ends_in, owner, meta, position, ahead, waited, refreshed, at, session"
	const kindAnswer = "verdict, token, spare, slot, ends_in, owner, meta, position, lim, shared, refreshed, at"
	const lease = "owner, meta, token, ends_in, lim, shared, weight, slot, held_for, broken"
	call := func(name, columns string, args int) statement { return e.procedure(schema, name, columns, args) }
	all := calls{
		ask:        call("ask", answer, 10),
		await:      call("await", answer, 5),
		release:    call("release", "done, at, session", 7),
		rejoin:     call("release_and_rejoin", "done, standing", 15),
		renew:      call("renew", "held, at", 4),
		takeSignal: call("take_signal", "taken, session", 3),
		breakLease: call("break_lease", "broke, left_in", 6),
		inspect:    call("inspect", "position, "+lease, 2),
		list:       call("list", "name, "+lease, 3),
		hold:       call("hold", "hold", 2),
		sweep:      call("sweep", "sweep", 1),
		longestTTL: call("longest_ttl", "longest_ttl", 1),

		askKind:     call("ask_kind", kindAnswer, 12),
		awaitKind:   call("await_kind", kindAnswer, 3),
		releaseKind: call("release_kind", "done, at", 6),
		renewKind:   call("renew_kind", "held, at", 4),
		downgrade:   call("downgrade", "held, token, slot, at", 4),
		resize:      call("resize", kindAnswer, 3),
	}
	if e.batches() {
		all.batch = call("batch", "step, verdict, token, spare, ends_in, owner, meta, at", 8)
	}
	return all
}
