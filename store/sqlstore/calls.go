package sqlstore

// calls are all calls, made once.
type calls struct {
	ask, await, release, renew, takeSignal, reserve, breakLease, inspect, list, hold, sweep statement
}

func callsIn(e engine, schema string) calls {
	const answer = "verdict, token, spare, ends_in, owner, meta, position, ahead, waited, refreshed, at, session"
	call := func(name, columns string, args int) statement { return e.procedure(schema, name, columns, args) }
	return calls{
		ask:        call("ask", answer, 10),
		await:      call("await", answer, 5),
		release:    call("release", "done, at, session", 7),
		renew:      call("renew", "held, at", 4),
		takeSignal: call("take_signal", "taken, session", 3),
		reserve:    call("reserve", "held, token, count, waiting, at", 5),
		breakLease: call("break_lease", "broke, left_in", 6),
		inspect:    call("inspect", "position, owner, meta, token, ends_in", 2),
		list:       call("list", "name, owner, meta, token, ends_in", 3),
		hold:       call("hold", "hold", 2),
		sweep:      call("sweep", "sweep", 1),
	}
}
