package sqlstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// Dialect is a kind of database. The zero value is not valid.
type Dialect uint8

// PostgreSQL is PostgreSQL 14 or later.
const PostgreSQL Dialect = 1

func (d Dialect) String() string {
	if d == PostgreSQL {
		return "PostgreSQL"
	}
	return fmt.Sprintf("dialect %d", uint8(d))
}

func (d Dialect) check() error {
	if d != PostgreSQL {
		return fmt.Errorf("%w: %v: use PostgreSQL", store.ErrInvalid, d)
	}
	return nil
}

// procedure is the text of a call, with its arguments' marks.
func procedure(schema, name, columns string, args int) string {
	marks := make([]string, args)
	for i := range marks {
		marks[i] = "$" + strconv.Itoa(i+1)
	}
	return "SELECT " + columns + " FROM " + schema + "." + name + "(" + strings.Join(marks, ",") + ")"
}

// calls are the texts of all calls, made once.
type calls struct {
	ask, await, release, rejoin, renew, takeSignal, giveSignal, reserve, inspect, list, hold, sweep, server string
}

func callsIn(schema string) calls {
	// Bytes are returned in hexadecimal. The driver's own reading of them depends on
	// bytea_output.
	const name, meta = "pg_catalog.encode(name, 'hex')", "pg_catalog.encode(meta, 'hex')"
	const answer = "verdict, token, spare, ends_in, owner, " + meta + ", position, ahead, waited, refreshed, at, session"
	return calls{
		ask:        procedure(schema, "ask", answer, 10),
		await:      procedure(schema, "await", answer, 5),
		release:    procedure(schema, "release", "done, at, session", 7),
		rejoin:     procedure(schema, "release_and_rejoin", "done, standing", 15),
		renew:      procedure(schema, "renew", "held, at", 4),
		takeSignal: procedure(schema, "take_signal", "taken, session", 3),
		giveSignal: procedure(schema, "give_signal", "give_signal", 1),
		reserve:    procedure(schema, "reserve", "held, token, count, waiting, at", 5),
		inspect:    procedure(schema, "inspect", `"position", owner, `+meta+`, token, ends_in`, 2),
		list:       procedure(schema, "list", name+", owner, "+meta+", token, ends_in", 3),
		hold:       procedure(schema, "hold", "hold", 2),
		sweep:      procedure(schema, "sweep", "sweep", 1),
		server: procedure(schema, "server", "version, oldest, server_version, in_recovery, fsync, synchronous_commit, "+
			"full_page_writes, synchronous_standby_names, standbys, isolation, at, session, "+
			"pg_catalog.current_setting('transaction_read_only')::boolean", 0),
	}
}
