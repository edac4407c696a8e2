package sqlstore

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// The error for a program without a driver names the one to import.
func TestNoDriver(t *testing.T) {
	for url, driver := range map[string]string{"postgres://a/b": "pgx", "mysql://a/b": "go-sql-driver", "mariadb://a/b": "go-sql-driver"} {
		if _, err := ParseURL(url); !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), driver) {
			t.Errorf("%s: %v, want an error that names the driver %s", url, err, driver)
		}
	}
}

type serverError string

func (e serverError) Error() string    { return "server says " + string(e) }
func (e serverError) SQLState() string { return string(e) }

// The error of a server decides whether a statement had an effect, whether it is made again, and
// which outcome is reported. Without an answer of the server the outcome is unknown.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		d                        Dialect
		err                      error
		certain, again, unusable bool
		outcome                  store.Outcome
	}{
		{PostgreSQL, errors.New("broken pipe"), false, false, true, store.Unreachable},
		{PostgreSQL, driver.ErrBadConn, false, false, true, store.Unreachable},
		{PostgreSQL, serverError("40001"), true, true, false, store.Unsettled},
		{PostgreSQL, serverError("40P01"), true, true, false, store.Unsettled},
		{PostgreSQL, serverError("40003"), false, false, false, store.Refused},
		{PostgreSQL, serverError("25006"), true, true, true, store.Unsettled},
		{PostgreSQL, serverError("57P01"), false, false, true, store.Unreachable},
		{PostgreSQL, serverError("57P03"), false, false, true, store.Loading},
		{PostgreSQL, serverError("57014"), true, true, false, store.Unsettled},
		{PostgreSQL, serverError("08006"), false, false, true, store.Unreachable},
		{PostgreSQL, serverError("53300"), true, false, false, store.Unsettled},
		{PostgreSQL, serverError("53100"), true, false, false, store.Refused},
		{PostgreSQL, serverError("42501"), true, false, false, store.Refused},
		{PostgreSQL, serverError("42P05"), true, true, true, store.Refused},
		{PostgreSQL, serverError("26000"), true, true, true, store.Refused},
		{PostgreSQL, serverError("0A000"), true, true, true, store.Refused},

		{MySQL, errors.New("invalid connection"), false, false, true, store.Unreachable},
		{MySQL, driver.ErrBadConn, false, false, true, store.Unreachable},
		{MySQL, errors.New("Error 1213 (40001): Deadlock found"), true, true, false, store.Unsettled},
		{MySQL, errors.New("Error 1205 (HY000): Lock wait timeout exceeded"), true, true, false, store.Unsettled},
		{MySQL, errors.New("Error 1062 (23000): Duplicate entry"), true, true, false, store.Unsettled},
		{MySQL, errors.New("Error 1290 (HY000): the server is read-only"), true, true, true, store.Unsettled},
		{MySQL, errors.New("Error 1047: WSREP has not yet prepared node"), true, true, true, store.Unsettled},
		{MySQL, errors.New("Error 1053 (08S01): Server shutdown in progress"), false, false, true, store.Unreachable},
		{MySQL, errors.New("Error 3032 (HY000): The server is currently in offline mode"), false, false, true, store.Unreachable},
		{MySQL, errors.New("Error 3159 (HY000): Connections using insecure transport are prohibited"), true, false, false, store.Refused},
		{MySQL, errors.New("Error 1927 (70100): Connection was killed"), false, false, true, store.Unreachable},
		{MySQL, errors.New("Error 1317 (70100): Query execution was interrupted"), true, true, false, store.Unsettled},
		{MySQL, errors.New("Error 1180 (HY000): Got error 5 during COMMIT"), false, false, false, store.Refused},
		{MySQL, errors.New("Error 1040 (08004): Too many connections"), true, false, false, store.Unsettled},
		{MySQL, errors.New("Error 1142 (42000): UPDATE command denied"), true, false, false, store.Refused},
	} {
		f := engines[c.d].fault(fmt.Errorf("wrapped: %w", c.err))
		if f.certain != c.certain || f.again != c.again || f.unusable != c.unusable || f.outcome != c.outcome {
			t.Errorf("%v: %v: %+v, want certain %v, again %v, unusable %v, outcome %v", c.d, c.err, f, c.certain, c.again, c.unusable, c.outcome)
		}
	}
}

// Arguments in a statement of MySQL mean the same whatever they contain and however the session is
// set.
func TestLiterals(t *testing.T) {
	text, rest := mysql{}.bind("SELECT ?, ?, ?, ?", []any{[]byte("a'\\?\x00"), "", int64(-7), true})
	if want := "SELECT x'61275c3f00', x'', -7, true"; text != want || rest != nil {
		t.Errorf("%s, %v, want %s", text, rest, want)
	}
}

// A script names the schema in each statement that changes something.
func TestScript(t *testing.T) {
	for _, d := range []Dialect{PostgreSQL, MySQL} {
		script, err := Script(d, "mine")
		if err != nil || !strings.Contains(script, "mine.records") || strings.Contains(script, "leasehold.") {
			t.Errorf("%v: %v, %s, want the schema mine", d, err, script)
		}
	}
}

// A client that has seen the server's clock does not count a jump of it: a row is at most as old as the
// clock would say without the jump.
func TestClockJumpsAhead(t *testing.T) {
	r := &records{clock: clock.System(), ours: func() time.Duration { return 0 }, o: Options{Logger: slog.New(slog.DiscardHandler)}}
	start := time.Now().UnixMicro()
	seen := row{value: []byte("x"), version: 1, written: start, now: start}
	r.reading(r.clock.Now(), start)
	if it := r.item(&seen); it.Now.Sub(it.Written) != 0 {
		t.Errorf("a row that was written just now is %v old", it.Now.Sub(it.Written))
	}
	seen.now = start + time.Hour.Microseconds()
	r.reading(r.clock.Now(), seen.now)
	if it := r.item(&seen); it.Now.Sub(it.Written) > time.Minute {
		t.Errorf("after a jump by an hour, a row from before it is %v old, want none of the hour", it.Now.Sub(it.Written))
	}
}
